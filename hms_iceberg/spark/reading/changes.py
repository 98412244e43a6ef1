"""What commits did to the rows of a table, for Spark: the options of ``db.t.changes``, and views of changes.

The rows of a view are streamed by one of Spark's Python workers.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from hms_iceberg.arrow.reading.changelog_rows import changelog_schema
from hms_iceberg.errors import InvalidInputError, UnsupportedError
from hms_iceberg.spark.nanoseconds import shown
from hms_iceberg.spark.read_options import END, END_TIME, START, START_TIME, TRAVELS, refuse_misspelled
from hms_iceberg.spark.read_questions import LoadTable
from hms_iceberg.spark.reading.worker_code import for_workers
from hms_iceberg.spark.reading.worker_files import for_spark
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.schema import Schema
from hms_iceberg.storage import Storage
from hms_iceberg.table.reading.incremental_scans import ChangelogScan

if TYPE_CHECKING:
    import pyarrow as pa

OPTIONS = (START, END, START_TIME, END_TIME)


def metadata_table_scan(metadata: TableMetadata, storage: Storage, asked: LoadTable) -> ChangelogScan:
    """The scan of ``db.t.changes``: all that was inserted and deleted, rows that were only copied to other files too.

    So Apache Iceberg has it.
    """
    name = asked.name
    options = {key: value for key, value in asked.options.items() if key != "path"}
    travels = [each for each in TRAVELS if each in options]
    if travels or asked.version is not None or asked.as_of_micros is not None:
        raise UnsupportedError(
            f"Cannot read {name}.changes as of a version: it is what happened between two versions of the table. "
            f"Choose these with the options {', '.join(OPTIONS)}."
        )
    refuse_misspelled(options, OPTIONS, name)
    scan = ChangelogScan(metadata, storage, carryovers=True)
    return between(scan, {key: value for key, value in options.items() if key in OPTIONS}, name)


def between(scan: ChangelogScan, options: Mapping[str, str], table: str) -> ChangelogScan:
    """The scan of changes between the snapshots that the options, of those in `OPTIONS`, say."""
    given = {name.lower(): value for name, value in options.items()}
    unknown = given.keys() - set(OPTIONS)
    if unknown:
        raise InvalidInputError(
            f"Cannot read the changes of table {table}: unknown option {min(unknown)!r}. Known are {START}, {END}, "
            f"{START_TIME} and {END_TIME}."
        )
    for one, other in ((START, START_TIME), (END, END_TIME)):
        if one in given and other in given:
            raise InvalidInputError(f"Cannot set both {one} and {other} for changelogs of table {table}.")
    numbers = {name: _number(name, value, table) for name, value in given.items()}
    first, last = numbers.get(START), numbers.get(END)
    if START_TIME in numbers and END_TIME in numbers and numbers[START_TIME] >= numbers[END_TIME]:
        raise InvalidInputError(f"Cannot set {START_TIME} to be greater than or equal to {END_TIME} for changelogs.")
    if START_TIME in numbers:
        first, is_empty = _snapshot_before(scan.metadata, numbers[START_TIME])
        scan = replace(scan, limit=0) if is_empty else scan
    if END_TIME in numbers:
        last = _snapshot_at(scan.metadata, numbers[END_TIME])
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


def command(scan: ChangelogScan, columns: Sequence[str] | None = None, nanoseconds: str | None = None) -> bytes:
    """Pickles the function that streams changed rows in Spark's Python workers, past the driver.

    `nanoseconds` is what the session takes such timestamps for.
    """
    pickled = pickle.dumps((scan, columns, nanoseconds))

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from hms_iceberg.spark.reading.changes import read_changes

        return read_changes(pickled, batches)

    return for_workers(read, "the changes of Iceberg tables")


def read_changes(pickled: bytes, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Reads changed rows in a Python worker of Spark, in Spark's types, once for each row of `batches`."""
    # From this session's driver, within the function that Spark itself unpickles.
    scan, columns, nanoseconds = pickle.loads(pickled)
    schema = changelog_schema(scan.projection())
    if columns is not None:
        schema = Schema(*(schema.find_field(name) for name in columns))
    names = [field.name for field in schema.fields]
    for batch in batches:
        for _ in range(batch.num_rows):
            for changes in scan.to_arrow_batch_reader():
                yield for_spark(changes.select(names), shown(schema, nanoseconds))
