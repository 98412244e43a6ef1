"""Procedures that remove orphan files, expire snapshots, compute statistics and rotate keys."""

from __future__ import annotations

from hms_iceberg.errors import InvalidInputError
from hms_iceberg.maintenance.expire_with_files import expire_snapshots
from hms_iceberg.maintenance.orphan_files import PrefixMismatch, remove_orphan_files
from hms_iceberg.maintenance.statistics_files import compute_partition_stats, compute_table_stats
from hms_iceberg.maintenance.table_maintenance import TableMaintenance
from hms_iceberg.spark.procedures.procedure import TABLE, Call, Column, Parameter, Procedure, Row
from hms_iceberg.storage import FileInfo


def _remove_orphan_files(call: Call) -> list[Row]:
    workers = call.get("max_concurrent_deletes", 8)
    if workers <= 0:
        raise InvalidInputError(f"max_concurrent_deletes should have value > 0, value: {workers}")
    listed = call.get("file_list_view")  # the bridge has read it: paths, with the time of the last change
    result = remove_orphan_files(
        call.table(),
        older_than=call.milliseconds("older_than"),
        location=call.get("location"),
        dry_run=call.get("dry_run", False),
        equal_schemes=call.get("equal_schemes"),
        equal_authorities=call.get("equal_authorities"),
        prefix_mismatch_mode=call.get("prefix_mismatch_mode", PrefixMismatch.ERROR),
        workers=workers,
        files=None if listed is None else [FileInfo(path, 0, changed_ms or 1) for path, changed_ms in listed],
    )
    return [(location,) for location in result.locations]


REMOVE_ORPHAN_FILES = Procedure(
    "remove_orphan_files",
    (
        TABLE,
        Parameter("older_than", "timestamp"),
        Parameter("location", "string"),
        Parameter("dry_run", "boolean"),
        Parameter("max_concurrent_deletes", "int"),
        Parameter("file_list_view", "string"),
        Parameter("equal_schemes", "map<string,string>"),
        Parameter("equal_authorities", "map<string,string>"),
        Parameter("prefix_mismatch_mode", "string"),
        Parameter("prefix_listing", "boolean"),  # folders are always listed by prefix here
        Parameter("stream_results", "boolean"),
    ),
    (Column("orphan_file_location", "string", nullable=False),),
    _remove_orphan_files,
)


_SNAPSHOT_ID = Parameter("snapshot_id", "bigint")


def _compute_table_stats(call: Call) -> list[Row]:
    file = compute_table_stats(call.table(), snapshot_id=call.get("snapshot_id"), columns=call.get("columns"))
    return [] if file is None else [(file.statistics_path,)]


def _compute_partition_stats(call: Call) -> list[Row]:
    file = compute_partition_stats(call.table(), snapshot_id=call.get("snapshot_id"))
    return [] if file is None else [(file.statistics_path,)]


COMPUTE_TABLE_STATS = Procedure(
    "compute_table_stats",
    (TABLE, _SNAPSHOT_ID, Parameter("columns", "array<string>")),
    (Column("statistics_file", "string"),),
    _compute_table_stats,
)

COMPUTE_PARTITION_STATS = Procedure(
    "compute_partition_stats",
    (TABLE, _SNAPSHOT_ID),
    (Column("partition_statistics_file", "string"),),
    _compute_partition_stats,
)


def _rotate_keys(call: Call) -> list[Row]:
    table = call.table()
    TableMaintenance(table).rotate_keys()
    return [(sum(each.key_id is not None for each in table.snapshots()),)]


ROTATE_KEYS = Procedure(
    "rotate_keys", (TABLE,), (Column("rotated_manifest_list_keys_count", "bigint"),), _rotate_keys
)  # of this package; Apache Iceberg has none


def _expire_snapshots(call: Call) -> list[Row]:
    deletes = call.get("max_concurrent_deletes")
    if deletes is not None and deletes <= 0:
        raise InvalidInputError(f"max_concurrent_deletes should have value > 0, value: {deletes}")
    result = expire_snapshots(
        call.table(),
        older_than=call.milliseconds("older_than"),
        retain_last=call.get("retain_last"),
        snapshot_ids=call.get("snapshot_ids", ()),
        clean_expired_metadata=call.get("clean_expired_metadata", False),
    )
    files = result.files
    by_kind = (
        files.data_files,
        files.position_delete_files,
        files.equality_delete_files,
        files.manifests,
        files.manifest_lists,
        files.statistics_files,
    )
    there = result.left.keys() | result.kept.keys()
    return [tuple(sum(location not in there for location in kind) for kind in by_kind)]


EXPIRE_SNAPSHOTS = Procedure(
    "expire_snapshots",
    (
        TABLE,
        Parameter("older_than", "timestamp"),
        Parameter("retain_last", "int"),
        Parameter("max_concurrent_deletes", "int"),
        Parameter("stream_results", "boolean"),  # files are never sent through Spark here
        Parameter("snapshot_ids", "array<bigint>"),
        Parameter("clean_expired_metadata", "boolean"),
    ),
    (
        Column("deleted_data_files_count", "bigint"),
        Column("deleted_position_delete_files_count", "bigint"),
        Column("deleted_equality_delete_files_count", "bigint"),
        Column("deleted_manifest_files_count", "bigint"),
        Column("deleted_manifest_lists_count", "bigint"),
        Column("deleted_statistics_files_count", "bigint"),
    ),
    _expire_snapshots,
)
