"""A temporary view of the rows that snapshots inserted, deleted and updated."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from hms_iceberg.arrow.reading.changelog import changelog_schema
from hms_iceberg.errors import InvalidInputError, UnsupportedError
from hms_iceberg.spark.procedures.procedure import TABLE, Call, Column, Parameter, Procedure, View
from hms_iceberg.spark.reading.arrow_columns import for_spark
from hms_iceberg.spark.schemas import is_held, spark_schema
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.table.incremental import ChangelogScan

if TYPE_CHECKING:
    import pyarrow as pa

_START, _END = "start-snapshot-id", "end-snapshot-id"
_START_TIME, _END_TIME = "start-timestamp", "end-timestamp"


def _create_changelog_view(call: Call) -> View:
    table = call.table()
    net_changes = call.get("net_changes", False)
    scan = table.changelog_scan(
        identifier_columns=call.get("identifier_columns"),
        compute_updates=call.get("compute_updates"),
        net_changes=net_changes,
    )
    if net_changes and call.get("compute_updates", "identifier_columns" in call.arguments):
        raise InvalidInputError("Not support net changes with update images: leave out net_changes or compute_updates.")
    scan = _between(scan, call.get("options", {}), ".".join(call.identifier))
    scan.to_arrow_batch_reader().close()  # so that what is wrong is told now
    name = call.get("changelog_view", f"`{call.identifier[-1]}_changes`")
    schema = changelog_schema(scan.projection())
    for field in schema.fields:
        if not is_held(field.field_type):
            raise UnsupportedError(
                f"Cannot make a view of the changes of table {'.'.join(call.identifier)}: Spark cannot hold column "
                f"{field.name!r}, which is a {field.field_type}. Read the changes from Python (Table.changelog_scan)."
            )
    return View(name, spark_schema(schema, name), _command(scan), [(name,)])


def _between(scan: ChangelogScan, options: Mapping[str, str], table: str) -> ChangelogScan:
    """The scan between the snapshots that the options say."""
    given = {name.lower(): value for name, value in options.items()}
    unknown = given.keys() - {_START, _END, _START_TIME, _END_TIME}
    if unknown:
        raise InvalidInputError(
            f"Cannot read the changes of table {table}: unknown option {min(unknown)!r}. Known are {_START}, {_END}, "
            f"{_START_TIME} and {_END_TIME}."
        )
    for one, other in ((_START, _START_TIME), (_END, _END_TIME)):
        if one in given and other in given:
            raise InvalidInputError(f"Cannot set both {one} and {other} for changelogs of table {table}.")
    numbers = {name: _number(name, value, table) for name, value in given.items()}
    first, last = numbers.get(_START), numbers.get(_END)
    if _START_TIME in numbers and _END_TIME in numbers and numbers[_START_TIME] >= numbers[_END_TIME]:
        raise InvalidInputError(f"Cannot set {_START_TIME} to be greater than or equal to {_END_TIME} for changelogs.")
    if _START_TIME in numbers:
        first, is_empty = _snapshot_before(scan.metadata, numbers[_START_TIME])
        scan = replace(scan, limit=0) if is_empty else scan
    if _END_TIME in numbers:
        last = _snapshot_at(scan.metadata, numbers[_END_TIME])
        scan = replace(scan, limit=0) if last is None or last == first else scan
    return replace(scan, from_snapshot_id=first, to_snapshot_id=last)


def _number(name: str, value: str, table: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise InvalidInputError(f"Cannot read the changes of table {table}: {name} is {value!r}, no number.") from None


def _snapshot_before(metadata: TableMetadata, time_ms: int) -> tuple[int | None, bool]:
    """The snapshot after which a changelog from a time begins, and whether there is nothing after it.

    A snapshot of that very millisecond is left out, as Apache Iceberg does.
    """
    first: int | None = None
    for snapshot in metadata.ancestors_of(metadata.current_snapshot_id):
        if snapshot.timestamp_ms <= time_ms:
            return snapshot.snapshot_id, snapshot.snapshot_id == metadata.current_snapshot_id
        first = snapshot.parent_snapshot_id
    return first, metadata.current_snapshot_id is None


def _snapshot_at(metadata: TableMetadata, time_ms: int) -> int | None:
    ancestors = metadata.ancestors_of(metadata.current_snapshot_id)
    return next((each.snapshot_id for each in ancestors if each.timestamp_ms <= time_ms), None)


def _command(scan: ChangelogScan) -> bytes:
    """What one of Spark's Python workers runs: it streams the changes, so that the driver holds none of them."""
    from pyspark.serializers import CloudPickleSerializer
    from pyspark.sql.types import NullType

    pickled = pickle.dumps(scan)

    # A function within a function travels with its code, so that it can say what a worker lacks.
    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            from hms_iceberg.spark.procedures.changelog_view import read_changes
        except ImportError as error:
            raise ImportError(
                "Python workers of Spark read the changes of Iceberg tables, and this one cannot import what it needs "
                f"for that ({error}). Install the same hms_iceberg[spark] on all executors as on the driver, or set "
                "spark.pyspark.python to a Python that has it."
            ) from error
        return read_changes(pickled, batches)

    return bytes(CloudPickleSerializer().dumps((read, NullType())))


def read_changes(pickled: bytes, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Runs in a Python worker of Spark: the changed rows, in Spark's types; once for each row it is given."""
    scan: ChangelogScan = pickle.loads(pickled)
    schema = changelog_schema(scan.projection())
    for batch in batches:
        for _ in range(batch.num_rows):
            for changes in scan.to_arrow_batch_reader():
                yield for_spark(changes, schema)


CREATE_CHANGELOG_VIEW = Procedure(
    "create_changelog_view",
    (
        TABLE,
        Parameter("changelog_view", "string"),
        Parameter("options", "map<string,string>"),
        Parameter("compute_updates", "boolean"),
        Parameter("identifier_columns", "array<string>"),
        Parameter("net_changes", "boolean"),
    ),
    (Column("changelog_view", "string", nullable=False),),
    _create_changelog_view,
)
