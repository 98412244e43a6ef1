"""A row in the metastore for a table whose metadata file is there."""

from __future__ import annotations

from collections.abc import Mapping

from hms_iceberg.errors import InvalidInputError
from hms_iceberg.spark.procedures.procedure import TABLE, Call, Column, Parameter, Procedure, Row


def _register_table(call: Call) -> list[Row]:
    metadata_file = call.required("metadata_file")
    if not metadata_file:
        raise InvalidInputError("Cannot handle an empty argument metadata_file: expected the path of a metadata file.")
    snapshot = call.catalog.register_table(call.identifier, metadata_file).current_snapshot()
    if snapshot is None:
        return [(None, None, None)]
    summary: Mapping[str, str] = snapshot.summary or {}
    totals = (summary.get("total-records"), summary.get("total-data-files"))
    return [(snapshot.snapshot_id, *(None if total is None else int(total) for total in totals))]


REGISTER_TABLE = Procedure(
    "register_table",
    (TABLE, Parameter("metadata_file", "string", required=True)),
    (
        Column("current_snapshot_id", "bigint"),
        Column("total_records_count", "bigint"),
        Column("total_data_files_count", "bigint"),
    ),
    _register_table,
)
