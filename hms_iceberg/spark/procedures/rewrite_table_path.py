"""A table made ready to be copied elsewhere."""

from __future__ import annotations

from hms_iceberg.maintenance.relocation.table_path import rewrite_table_path
from hms_iceberg.spark.procedures.procedure import TABLE, Call, Column, Parameter, Procedure, Row


def _rewrite_table_path(call: Call) -> list[Row]:
    result = rewrite_table_path(
        call.table(),
        call.required("source_prefix"),
        call.required("target_prefix"),
        start_version=call.get("start_version"),
        end_version=call.get("end_version"),
        staging_location=call.get("staging_location"),
        create_file_list=call.get("create_file_list", True),
    )
    return [
        (
            result.latest_version,
            result.file_list_location,
            result.rewritten_manifest_file_paths_count,
            result.rewritten_delete_file_paths_count,
        )
    ]


REWRITE_TABLE_PATH = Procedure(
    "rewrite_table_path",
    (
        TABLE,
        Parameter("source_prefix", "string", required=True),
        Parameter("target_prefix", "string", required=True),
        Parameter("start_version", "string"),
        Parameter("end_version", "string"),
        Parameter("staging_location", "string"),
        Parameter("create_file_list", "boolean"),
    ),
    (
        Column("latest_version", "string"),
        Column("file_list_location", "string"),
        Column("rewritten_manifest_file_paths_count", "int"),
        Column("rewritten_delete_file_paths_count", "int"),
    ),
    _rewrite_table_path,
)
