"""Requests to plan a scan, and the plan of each part of one.

Names of columns mean columns of the table as it is, or as it was at the snapshot. A request says which
(`use-snapshot-schema`), but not reliably: Apache Iceberg in Spark names those of the table, and asks for the
snapshot's. So a name is looked up in both. A name of another column in each means nothing, and the filter that has it
is left to the client.

`min-rows-requested` is a hint, from a query's limit: the server need not plan more files than have so many rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import msgspec

from hms_iceberg.errors import IcebergError, InvalidInputError, NoSuchSnapshotError, UnknownColumnError
from hms_iceberg.expressions.json_filters import FilterReader, columns_of_filter
from hms_iceberg.expressions.tree import AlwaysTrue, BooleanExpression
from hms_iceberg.lazy import pl
from hms_iceberg.metastore import MetadataVersion
from hms_iceberg.scan.appends import AppendRequest, plan_appends
from hms_iceberg.scan.planner import begin_plan, plan_part
from hms_iceberg.scan.tasks import ScanPlan, ScanRequest
from hms_iceberg.spec.data_types import IcebergType, PrimitiveType
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.metadata_columns import CHANGELOG_COLUMNS, METADATA_COLUMNS
from hms_iceberg.spec.schema import Schema
from hms_iceberg.storage import Storage

T = TypeVar("T")

_BESIDE = frozenset((*METADATA_COLUMNS, *(each.name for each in CHANGELOG_COLUMNS)))


class PlanBody(msgspec.Struct, rename="kebab", frozen=True):
    snapshot_id: int | None = None
    select: tuple[str, ...] | None = None
    filter: Any = None
    min_rows_requested: int | None = None
    case_sensitive: bool | None = True
    start_snapshot_id: int | None = None
    end_snapshot_id: int | None = None
    stats_fields: tuple[str, ...] | None = None


class StoredPlan(msgspec.Struct, frozen=True):
    """A scan plan that the server keeps: the request, and the table's version by its metadata file; immutable.
    `snapshot_id` is None for a table without a snapshot, or a scan of appends."""

    table: tuple[str, str]
    location: str
    body: PlanBody
    snapshot_id: int | None = None


@dataclass(frozen=True)
class Columns:
    """The columns that a request may name: those of the table now, and those of the snapshot that is read."""

    now: Schema
    then: Schema
    case_sensitive: bool

    @classmethod
    def of(cls, metadata: TableMetadata, snapshot_id: int | None, case_sensitive: bool) -> Columns:
        now, snapshot = metadata.schema(), metadata.snapshots_by_id.get(snapshot_id or 0)
        return cls(now, now if snapshot is None else metadata.schema_for_snapshot(snapshot), case_sensitive)

    def check(self, names: Iterable[str]) -> None:
        """Refuses names that neither a column nor a metadata column has."""
        for name in names:
            if name.partition(".")[0] not in _BESIDE and self._id(self.then, name) is None:
                self.now.find_field(name, self.case_sensitive)

    def read(self, names: Iterable[str], read: Callable[[Schema], T]) -> T | None:
        """The result of `read` for a schema that has the names; None if a name is a different column in each schema."""
        wanted = set(names)
        self.check(wanted)
        known: list[Schema] = []
        meant: dict[str, int] = {}
        for schema in (self.now, self.then):
            ids = {name: self._id(schema, name) for name in wanted}
            if any(found is not None and meant.setdefault(name, found) != found for name, found in ids.items()):
                return None
            known += [] if None in ids.values() else [schema]
        failure: IcebergError | None = None
        for schema in known:
            try:
                return read(schema)
            except IcebergError as error:  # a value may not fit the type that the column had
                failure = failure or error
        if failure is not None:
            raise failure
        return None

    def _id(self, schema: Schema, name: str) -> int | None:
        try:
            return schema.find_id(name, self.case_sensitive)
        except UnknownColumnError:
            return None


def planned(table: tuple[str, str], version: MetadataVersion, body: PlanBody) -> StoredPlan:
    """The plan of a request, for the snapshot that is current now."""
    metadata = version.metadata
    if body.snapshot_id is not None and (body.start_snapshot_id or body.end_snapshot_id) is not None:
        raise InvalidInputError("A scan is of one snapshot, or of what was appended between two: got both.")
    if (body.start_snapshot_id is None) != (body.end_snapshot_id is None):
        raise InvalidInputError("A scan of what was appended needs both start-snapshot-id and end-snapshot-id.")
    for snapshot_id in (body.snapshot_id, body.start_snapshot_id, body.end_snapshot_id):
        if snapshot_id is not None and snapshot_id not in metadata.snapshots_by_id:
            raise NoSuchSnapshotError(f"Table {'.'.join(table)} has no snapshot {snapshot_id}; it may have expired.")
    if (body.min_rows_requested or 0) < 0:
        raise InvalidInputError(f"min-rows-requested is {body.min_rows_requested}: ask for 0 rows or more.")
    columns = _columns(metadata, body)
    columns.check((*(body.select or ()), *(body.stats_fields or ())))
    snapshot_id = metadata.current_snapshot_id if body.snapshot_id is None else body.snapshot_id
    return StoredPlan(table, version.location, body, None if body.start_snapshot_id is not None else snapshot_id)


def part_of(plan: StoredPlan, part: int, version: MetadataVersion, storage: Storage, entries: int) -> ScanPlan | None:
    """One part of a plan, which looks at about `entries` files; None if the plan has no such part."""
    return _planner(plan, version, storage, entries)(part)


def enough_files(plan: StoredPlan, version: MetadataVersion, made: ScanPlan) -> int | None:
    """How many of the first files of a part certainly have as many rows as the client asks for; None if it does not ask
    for so many, or nobody can tell: a filter may leave out rows, and so do deletes."""
    read = _read_filter(plan, version)
    if plan.body.min_rows_requested is None or read is None or read[1] != AlwaysTrue():
        return None
    rows = made.files["record_count"].zip_with(made.count_deletes() == 0, pl.zeros(len(made), pl.Int64, eager=True))
    before = rows.cum_sum().search_sorted(plan.body.min_rows_requested)
    return before + 1 if before < len(made) else None


def count_parts(plan: StoredPlan, version: MetadataVersion, storage: Storage, entries: int) -> int:
    if plan.body.start_snapshot_id is not None or plan.snapshot_id is None:
        return 1
    return begin_plan(_scan_request(plan, version), storage).count_parts(entries)


def _planner(
    plan: StoredPlan, version: MetadataVersion, storage: Storage, entries: int
) -> Callable[[int], ScanPlan | None]:
    body = plan.body
    if body.start_snapshot_id is None:
        request = _scan_request(plan, version)
        return lambda part: plan_part(request, storage, part, entries)
    schema, row_filter = _filter(plan, version)
    appended = AppendRequest(
        version.metadata,
        body.start_snapshot_id,
        body.end_snapshot_id,
        row_filter=row_filter,
        case_sensitive=body.case_sensitive is not False,
        schema=schema,
        table_name=".".join(plan.table),
    )
    return lambda part: plan_appends(appended, storage) if part == 0 else None


def _scan_request(plan: StoredPlan, version: MetadataVersion) -> ScanRequest:
    schema, row_filter = _filter(plan, version)
    return ScanRequest(
        version.metadata,
        plan.snapshot_id,
        row_filter,
        plan.body.case_sensitive is not False,
        schema,
        table_name=".".join(plan.table),
        stats=stats_fields(plan, version),
    )


def _filter(plan: StoredPlan, version: MetadataVersion) -> tuple[Schema, BooleanExpression]:
    """The filter with the schema that it is read by; always true if all of it is left to the client."""
    read = _read_filter(plan, version)
    return (version.metadata.schema(), AlwaysTrue()) if read is None else read


def left_to_the_client(plan: StoredPlan, version: MetadataVersion) -> Any:
    """The filter as the client sent it, if the server cannot tell which columns it names; else None."""
    return plan.body.filter if _read_filter(plan, version) is None else None


def _read_filter(plan: StoredPlan, version: MetadataVersion) -> tuple[Schema, BooleanExpression] | None:
    columns, asked = _columns(version.metadata, plan.body), plan.body.filter
    return columns.read(
        columns_of_filter(asked), lambda schema: (schema, FilterReader(schema, columns.case_sensitive).read(asked))
    )


def stats_fields(plan: StoredPlan, version: MetadataVersion) -> dict[int, IcebergType]:
    """Ids and types of the fields whose metrics the client asks for; values in lists, maps and structs have none."""
    columns, found = _columns(version.metadata, plan.body), dict[int, IcebergType]()
    for name in plan.body.stats_fields or ():
        find = partial(Schema.find_field, name_or_id=name, case_sensitive=columns.case_sensitive)
        field = columns.read((name,), find)
        if field is not None and isinstance(field.field_type, PrimitiveType):
            found[field.field_id] = field.field_type
    return found


def _columns(metadata: TableMetadata, body: PlanBody) -> Columns:
    snapshot_id = body.end_snapshot_id if body.snapshot_id is None else body.snapshot_id
    return Columns.of(metadata, snapshot_id, body.case_sensitive is not False)
