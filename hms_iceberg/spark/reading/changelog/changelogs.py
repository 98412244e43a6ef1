"""The changes of a table's rows, for Spark's clause CHANGES, its streams, and ``db.t.changes``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hms_iceberg.errors import InvalidInputError, NoSuchSnapshotError
from hms_iceberg.scan.changelog import ChangeType
from hms_iceberg.spark.nanoseconds import chosen, shown
from hms_iceberg.spark.read_options import TRAVELS, refuse_misspelled
from hms_iceberg.spark.read_questions import (
    ChangelogForm,
    ChangelogRange,
    DescribeChanges,
    FirstChanges,
    LatestChanges,
    ReadChanges,
)
from hms_iceberg.spark.reading.changelog.changed_rows import OF_ICEBERG, ChangeColumns, WantedChanges
from hms_iceberg.spark.reading.changelog.changelog_ranges import commits_after, commits_of
from hms_iceberg.spark.reading.changelog.changes import IDENTIFIERS, identifier_columns, metadata_table_scan
from hms_iceberg.spark.reading.descriptions import UNKNOWN_SIZE, selected
from hms_iceberg.spark.schemas import spark_schema
from hms_iceberg.spec.data_types import LongType, NestedField, TimestamptzType
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.metadata_columns import CHANGE_TYPE, COMMIT_SNAPSHOT_ID, ROW_ID
from hms_iceberg.spec.snapshots_and_refs import Snapshot
from hms_iceberg.storage import Storage
from hms_iceberg.table.reading.incremental_scans import ChangelogScan

if TYPE_CHECKING:
    import pyarrow as pa

_OPTIONS = (
    "path",
    *TRAVELS,
    IDENTIFIERS,
    "startingversion",
    "endingversion",
    "startingtimestamp",
    "endingtimestamp",
    "startingboundinclusive",
    "endingboundinclusive",
    "deduplicationmode",
    "computeupdates",
)
_NAMES = {
    ChangeType.INSERT: "insert",
    ChangeType.DELETE: "delete",
    ChangeType.UPDATE_BEFORE: "update_preimage",
    ChangeType.UPDATE_AFTER: "update_postimage",
}
# Spark asks for these names and types. The ids are those of Apache Iceberg.
_COMMIT_VERSION = NestedField(2147483538, "_commit_version", LongType(), True, "Sequence number of the commit")
_COMMIT_TIMESTAMP = NestedField(2147483537, "_commit_timestamp", TimestamptzType(), True, "Time of the commit")
_FIELDS = (CHANGE_TYPE, _COMMIT_VERSION, _COMMIT_TIMESTAMP)


def describe_changes(metadata: TableMetadata, storage: Storage, asked: DescribeChanges) -> dict[str, Any]:
    """Describes a table's changes for Spark's analyzer: `schema` in Spark's JSON, `schema_id`, `size_in_bytes` (large,
    lest Spark broadcast it), and the columns that rows may be `filtered_by` early. Refuses a column with a changelog's
    name, and updates where nothing identifies a row."""
    if asked.changelog is None:
        scan, columns = metadata_table_scan(metadata, storage, asked), OF_ICEBERG
        scan.plan()  # so that what is wrong is told now
    else:
        scan, columns = _planned(metadata, storage, asked, asked.changelog.range)
    schema = metadata.schema()
    taken = [each.name for each in columns.fields if each.name in schema.index_by_name]
    if taken:
        raise InvalidInputError(
            f"Cannot read changes of the table {asked.name}: it has a column {taken[0]!r}, which is the name of a "
            "column of every changelog. Rename the table's column."
        )
    held = shown(columns.schema(schema), chosen(asked.lacking_types), asked.name)
    return {
        "schema": spark_schema(held, f"{asked.name}.changes"),
        "schema_id": schema.schema_id,
        "size_in_bytes": UNKNOWN_SIZE,
        "filtered_by": _filtered_by(scan),
    }


def changed_rows(metadata: TableMetadata, storage: Storage, asked: ReadChanges) -> bytes:
    """The changed rows of some columns, as the bridge's class ChangesScan takes them."""
    metadata = replace(metadata, current_schema_id=asked.schema_id)
    if asked.changelog is None:
        scan, columns, ids = metadata_table_scan(metadata, storage, asked), OF_ICEBERG, None
    else:
        commits = _commits(metadata, storage, asked)
        scan, columns = _scan(metadata, storage, asked, commits)
        ids = frozenset(each.snapshot_id for each in commits)
    return WantedChanges(scan, columns, asked.columns, asked.filter, asked.name, ids, asked.lacking_types).answer()


def _commits(metadata: TableMetadata, storage: Storage, asked: ReadChanges) -> Sequence[Snapshot]:
    wanted, batch = _form(asked).range, asked.batch
    if batch is not None:
        return commits_after(metadata, batch.end.changes_until, batch.start, wanted, asked.name)
    return commits_of(metadata, _head(metadata, storage, asked), wanted, asked.name)


def _planned(
    metadata: TableMetadata, storage: Storage, asked: DescribeChanges, wanted: ChangelogRange
) -> tuple[ChangelogScan, ChangeColumns]:
    """The scan, which can be; what has expired is only told as rows are read: a stream that goes on has read it."""
    head_id = _head(metadata, storage, asked)
    try:
        scan, columns = _scan(metadata, storage, asked, commits_of(metadata, head_id, wanted, asked.name))
        scan.plan()
        return scan, columns
    except NoSuchSnapshotError:
        if wanted.end is not None:
            raise
        return _scan(metadata, storage, asked, ())


def first_changes(metadata: TableMetadata, storage: Storage, asked: FirstChanges) -> dict[str, Any]:
    """Where a stream begins: before the first commit that is wanted, or after the newest if there is none yet."""
    head_id = _head(metadata, storage, asked)
    commits = commits_of(metadata, head_id, _form(asked).range, asked.name)
    return {"offset": _offset(commits[0].parent_snapshot_id if commits else head_id)}


def latest_changes(metadata: TableMetadata, storage: Storage, asked: LatestChanges) -> dict[str, Any]:
    """How far the next batch of a stream goes: to the newest commit that is wanted. A commit is never divided."""
    head_id = _head(metadata, storage, asked)
    commits = commits_after(metadata, head_id, asked.start, _form(asked).range, asked.name)
    return {"offset": _offset(commits[-1].snapshot_id) if commits else None}


def _offset(snapshot_id: int | None) -> dict[str, Any]:
    return {"version": 1, "changes_until": snapshot_id}


def _form(asked: DescribeChanges) -> ChangelogForm:
    assert asked.changelog is not None
    return asked.changelog


def _head(metadata: TableMetadata, storage: Storage, asked: DescribeChanges) -> int | None:
    """The snapshot with which the changes end, if they do not say another."""
    refuse_misspelled(asked.options, _OPTIONS, asked.name)
    travels = {name: value for name, value in asked.options.items() if name in TRAVELS}
    snapshot = selected(metadata, storage, asked, travels).scan.snapshot()
    return None if snapshot is None else snapshot.snapshot_id


def _scan(
    metadata: TableMetadata, storage: Storage, asked: DescribeChanges, commits: Sequence[Snapshot]
) -> tuple[ChangelogScan, ChangeColumns]:
    """The scan of some commits, and the columns that tell of changes."""
    form = _form(asked)
    if form.compute_updates and form.deduplication == "none":
        raise InvalidInputError(
            f"Cannot compute updates among all changes of table {asked.name}: rows that were only copied would be "
            "taken for updates. Leave out deduplicationMode = 'none', or computeUpdates."
        )
    last_id = commits[-1].snapshot_id if commits else metadata.current_snapshot_id
    scan = ChangelogScan(
        metadata,
        storage,
        identifier_columns=_identifiers(metadata, asked.options) if form.compute_updates else None,
        compute_updates=form.compute_updates,
        net_changes=form.deduplication == "netChanges",
        carryovers=form.deduplication == "none",
        from_snapshot_id=commits[0].parent_snapshot_id if commits else last_id,
        to_snapshot_id=last_id,
        table_name=asked.name,
    )
    return scan, _columns(commits)


def _identifiers(metadata: TableMetadata, options: Mapping[str, str]) -> tuple[str, ...] | None:
    """The columns that identify a row: the option's, the table's identifier fields, or the row's id."""
    if IDENTIFIERS in options or metadata.schema().identifier_field_names() or metadata.format_version < 3:
        return identifier_columns(options)
    return (ROW_ID.name,)


def _filtered_by(scan: ChangelogScan) -> list[str] | None:
    """The columns by which rows may be left out before changes are told; None for all. What was copied, or came and
    went, has the same values on both sides. The two sides of an update have not."""
    if not scan.compute_updates:
        return None
    schema = scan.table_schema
    paths = [[each.field_id, *schema.ancestor_ids(each.field_id)][::-1] for each in scan.key()]
    return sorted({schema.index_by_id[path[0]].name for path in paths if path[0] in schema.index_by_id})


def _columns(commits: Sequence[Snapshot]) -> ChangeColumns:
    """Spark's columns of changes."""

    def values(change: ChangeType, ordinal: int, snapshot: Snapshot) -> tuple[Any, ...]:
        return (_NAMES[change], snapshot.sequence_number, snapshot.timestamp_ms * 1000)

    def of_rows(columns: Mapping[str, pa.Array]) -> tuple[pa.Array, ...]:
        import pyarrow as pa
        import pyarrow.compute as pc

        def looked_up(column: str, known: Sequence[Any], values: pa.Array) -> pa.Array:
            return values.take(pc.index_in(columns[column], pa.array(known)))

        ids = [each.snapshot_id for each in commits]
        versions = pa.array([each.sequence_number for each in commits], pa.int64())
        times = pa.array([each.timestamp_ms * 1000 for each in commits], pa.timestamp("us", "UTC"))
        return (
            looked_up(CHANGE_TYPE.name, [each.value for each in _NAMES], pa.array(_NAMES.values())),
            looked_up(COMMIT_SNAPSHOT_ID.name, ids, versions),
            looked_up(COMMIT_SNAPSHOT_ID.name, ids, times),
        )

    return ChangeColumns(_FIELDS, values, of_rows)
