"""Removing old snapshots, and the files that only they needed."""

from __future__ import annotations

from hms_iceberg.errors import InvalidInputError
from hms_iceberg.maintenance.expire_with_files import expire_snapshots
from hms_iceberg.spark.procedures.procedure import TABLE, Call, Column, Parameter, Procedure, Row


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
