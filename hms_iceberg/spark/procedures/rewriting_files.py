"""Procedures that rewrite files: data files, position deletes, manifests, and all paths of a table."""

from __future__ import annotations

from typing import Any

from hms_iceberg.maintenance.rewrite.data_files import plan_data_files
from hms_iceberg.maintenance.rewrite.manifest_rewrite import rewrite_manifests
from hms_iceberg.maintenance.rewrite.rewrite_deletes import rewrite_position_delete_files
from hms_iceberg.maintenance.rewrite.rewriting import RewriteResult
from hms_iceberg.maintenance.table_path import rewrite_table_path
from hms_iceberg.spark.procedures.procedure import TABLE, Call, Column, Parameter, Procedure, Row
from hms_iceberg.spark.rewriting.runs import SparkRewrite

_WHERE = Parameter("where", "string")
_OPTIONS = Parameter("options", "map<string,string>")
# As in Apache Iceberg; from Python, groups are committed as they are done unless an option says otherwise.
_TOGETHER = {"partial-progress.enabled": "false"}


def _rewrite_data_files(call: Call) -> list[Row] | SparkRewrite:
    table = call.table()
    order = call.get("sort_order")
    planned = plan_data_files(
        table,
        strategy=call.get("strategy", "binpack" if order is None else "sort"),
        sort_order=order,
        where=call.where(table.schema()),
        options=_TOGETHER | call.get("options", {}),
        branch=call.get("branch", "main"),
        case_sensitive=False,
    )
    return SparkRewrite(planned, _rows) if planned.plan.groups else _rows(planned.result())


def _rows(result: RewriteResult) -> list[Row]:
    return [
        (
            result.rewritten_data_files_count,
            result.added_data_files_count,
            result.rewritten_bytes_count,
            result.failed_data_files_count,
            result.removed_delete_files_count,
        )
    ]


def _rewrite_position_delete_files(call: Call) -> list[Row]:
    table = call.table()
    options: dict[str, Any] = _TOGETHER | call.get("options", {})
    result = rewrite_position_delete_files(
        table, where=call.where(table.schema()), options=options, case_sensitive=False
    )
    return [
        (
            result.rewritten_delete_files_count,
            result.added_delete_files_count,
            result.rewritten_bytes_count,
            result.added_bytes_count,
        )
    ]


REWRITE_DATA_FILES = Procedure(
    "rewrite_data_files",
    (
        TABLE,
        Parameter("strategy", "string"),
        Parameter("sort_order", "string"),
        _OPTIONS,
        _WHERE,
        Parameter("branch", "string"),
    ),
    (
        Column("rewritten_data_files_count", "int", nullable=False),
        Column("added_data_files_count", "int", nullable=False),
        Column("rewritten_bytes_count", "bigint", nullable=False),
        Column("failed_data_files_count", "int", nullable=False),
        Column("removed_delete_files_count", "int", nullable=False),
    ),
    _rewrite_data_files,
)

REWRITE_POSITION_DELETE_FILES = Procedure(
    "rewrite_position_delete_files",
    (TABLE, _OPTIONS, _WHERE),
    (
        Column("rewritten_delete_files_count", "int", nullable=False),
        Column("added_delete_files_count", "int", nullable=False),
        Column("rewritten_bytes_count", "bigint", nullable=False),
        Column("added_bytes_count", "bigint", nullable=False),
    ),
    _rewrite_position_delete_files,
)


def _rewrite_manifests(call: Call) -> list[Row]:
    result = rewrite_manifests(call.table(), spec_id=call.get("spec_id"), sort_by=call.get("sort_by"))
    return [(result.rewritten_manifests_count, result.added_manifests_count)]


REWRITE_MANIFESTS = Procedure(
    "rewrite_manifests",
    (
        TABLE,
        Parameter("use_caching", "boolean"),  # nothing is read twice here
        Parameter("spec_id", "int"),
        Parameter("sort_by", "array<string>"),
    ),
    (
        Column("rewritten_manifests_count", "int", nullable=False),
        Column("added_manifests_count", "int", nullable=False),
    ),
    _rewrite_manifests,
)


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
