"""Rows that are older than a table's policy keeps them.

Days, hours or minutes, as the age is stated in, are told whole: with an age of 90 days a row goes when the day it is of
lies 90 days back. With whole partitions it stays until its partition is older, so that files go by metadata alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta, timezone

from hms_iceberg.errors import ConfigurationError, TypeMismatchError, UnknownColumnError
from hms_iceberg.expressions.binding import bound_reference
from hms_iceberg.expressions.tree import GreaterThanOrEqual, LessThan
from hms_iceberg.maintenance.repair.repair_journal import SERVICE_STATE
from hms_iceberg.maintenance_policy import Policy, property_of
from hms_iceberg.scan.planner import ALL_MATCH, plan_scan
from hms_iceberg.scan.tasks import ScanRequest
from hms_iceberg.spec.data_types import (
    DateType,
    IntegerType,
    LongType,
    NestedField,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
)
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.values.single_values import human_string
from hms_iceberg.table.table import Table

LOOKED_FOR = f"{SERVICE_STATE}old-rows-looked-for"
_EPOCH = datetime(1970, 1, 1)
_YEAR_1990 = 631_152_000
_OF_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_LOCAL, _INSTANTS = (TimestampType, TimestampNanoType), (TimestamptzType, TimestamptzNanoType)
_NANOSECONDS, _NUMBERS = (TimestampNanoType, TimestamptzNanoType), (IntegerType, LongType)


@dataclass(frozen=True)
class OldRows:
    """Rows of main that are older than the policy keeps them."""

    row_filter: LessThan
    before: str  # the time that they are before, as people read it
    whole_files: int  # how many data files have no other rows, as partitions and metrics tell
    other_files: int  # how many may have some of them, and have to be read
    other_bytes: int
    looked_for: str  # the end of a search for such rows: the value of `LOOKED_FOR` without its snapshot

    def delete(self, table: Table) -> str:
        """Deletes the rows by the table's `write.delete.mode`, and tells what went. Files that may have such rows and
        have none are remembered, so that they are not read again until the table or the day changes."""
        before = table.refresh().metadata.current_snapshot_id
        table.delete(self.row_filter, snapshot_properties={"hms_iceberg.retain": f"before {self.before}"})
        current = table.refresh().current_snapshot()
        assert current is not None
        is_own = current.parent_snapshot_id == before
        if self.other_files and (current.snapshot_id == before or is_own):
            table.set_properties({LOOKED_FOR: f"{current.snapshot_id} {self.looked_for}"})
        if current.snapshot_id == before:
            return f"no row is before {self.before}"
        counts = dict(current.summary or {})
        told = f"deleted the rows before {self.before}: {counts.get('deleted-data-files', 0)} data files went"
        written = [(counts.get(f"added-{kind}-files"), kind) for kind in ("data", "delete")]
        return told + "".join(f", {count} {kind} files were written" for count, kind in written if count)


def retained_column(table: Table, policy: Policy) -> NestedField | None:
    """The column that tells the age of rows; None if the policy has none. A ConfigurationError if the table has no such
    column, or one that tells no age."""
    if policy.retain_age is None:
        return None
    name, unit = policy.retain_column, policy.retain_unit
    of_column, of_unit = property_of("retain_column"), property_of("retain_unit")
    subject = f"Cannot tell which rows of table {'.'.join(table.identifier)} are too old by {of_column}={name}"
    try:
        field = bound_reference(table.schema(), table.schema().find_id(name)).field
    except (UnknownColumnError, TypeMismatchError) as error:
        raise ConfigurationError(f"{subject}: {error}") from error
    kind = field.field_type
    if isinstance(kind, _NUMBERS) and unit is None:
        raise ConfigurationError(
            f"{subject}: it is of type {kind}. Set {of_unit} to what it counts since 1970: {', '.join(_OF_SECOND)}."
        )
    if not isinstance(kind, (DateType, *_LOCAL, *_INSTANTS, *_NUMBERS)):
        raise ConfigurationError(f"{subject}: expected a date, timestamp, int or long, and it is of type {kind}.")
    if not isinstance(kind, _NUMBERS) and unit is not None:
        raise ConfigurationError(f"{subject}: {of_unit}={unit} is for numbers, and it is of type {kind}. Remove that.")
    if isinstance(kind, IntegerType) and unit != "s":
        raise ConfigurationError(f"{subject}: it is of type int, which holds seconds alone, and {of_unit} is {unit}.")
    return field


def old_rows(table: Table, policy: Policy, now_ms: int) -> OldRows | None:
    """The rows of main that are too old, from metadata alone; None if there are none, or none is too old for the
    policy."""
    field, metadata = retained_column(table, policy), table.metadata
    if field is None or metadata.current_snapshot_id is None:
        return None
    limit = _limit(metadata, policy, field, now_ms)
    before = str(limit) if isinstance(field.field_type, _NUMBERS) else human_string(field.field_type, limit)
    looked_for = f"{field.field_id} {limit}"
    if table.properties.get(LOOKED_FOR) == f"{metadata.current_snapshot_id} {looked_for}":
        return None
    row_filter = LessThan(policy.retain_column, limit if isinstance(field.field_type, _NUMBERS) else before)
    request = ScanRequest(
        metadata=metadata,
        snapshot_id=metadata.current_snapshot_id,
        row_filter=row_filter,
        schema=metadata.schema(),
        decide=True,
        table_name=".".join(table.identifier),
        all_deletes=True,
    )
    files = plan_scan(request, table.storage).files
    if not files.height:
        return None
    if isinstance(field.field_type, _NUMBERS):
        _check_unit(table, policy, request)
    others = files.filter(~files[ALL_MATCH])
    size = int(others["file_size_in_bytes"].sum())
    return OldRows(row_filter, before, files.height - others.height, others.height, size, looked_for)


def _check_unit(table: Table, policy: Policy, request: ScanRequest) -> None:
    """Refuses a unit by which every row of the table would be from before 1990: it is rather wrong than right."""
    begin = _YEAR_1990 * _OF_SECOND[policy.retain_unit or "s"]
    recent = replace(request, row_filter=GreaterThanOrEqual(policy.retain_column, begin), decide=False)
    if not plan_scan(recent, table.storage).files.height:
        raise ConfigurationError(
            f"Cannot use {property_of('retain_unit')}={policy.retain_unit} of table {'.'.join(table.identifier)}: then "
            f"every {policy.retain_column} is from before 1990, and all rows would go. Set the unit that the column is "
            "in, or delete these rows yourself if they are that old."
        )


def _limit(metadata: TableMetadata, policy: Policy, field: NestedField, now_ms: int) -> int:
    """The stored value that rows before it are too old by."""
    assert policy.retain_age is not None
    kind = field.field_type
    local = datetime.fromtimestamp((now_ms - policy.retain_age.milliseconds) / 1000, timezone.utc)
    local = local.astimezone(policy.time_zone).replace(second=0, microsecond=0)
    if policy.retain_age.unit in ("h", "d"):
        local = local.replace(minute=0)
    if policy.retain_age.unit == "d":
        local = local.replace(hour=0)
    if isinstance(kind, DateType):
        value = (local.date() - date(1970, 1, 1)).days
    else:
        wall = local if isinstance(kind, _LOCAL) else local.astimezone(timezone.utc)
        seconds = (wall.replace(tzinfo=None) - _EPOCH) // timedelta(seconds=1)
        unit = "ns" if isinstance(kind, _NANOSECONDS) else "us"
        if isinstance(kind, _NUMBERS) and policy.retain_unit:
            unit = policy.retain_unit
        value = seconds * _OF_SECOND[unit]
    if not policy.retain_whole_partitions:
        return value
    begins = []
    for partition in metadata.spec().fields_by_source_id(field.field_id):
        first = partition.transform.first_source(kind)
        if first is not None:
            begins.append(first(partition.transform.bind(kind)(value)))
    return max(begins, default=value)  # the narrowest of several partitions by time is within the others
