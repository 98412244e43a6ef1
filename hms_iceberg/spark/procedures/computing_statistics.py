"""Statistics of tables and of their partitions."""

from __future__ import annotations

from hms_iceberg.maintenance.statistics.partition_statistics import compute_partition_stats
from hms_iceberg.maintenance.statistics.table_statistics import compute_table_stats
from hms_iceberg.spark.procedures.procedure import TABLE, Call, Column, Parameter, Procedure, Row

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
