"""A temporary view of the rows that snapshots inserted, deleted and updated."""

from __future__ import annotations

from hms_iceberg.arrow.reading.changelog_rows import changelog_schema
from hms_iceberg.errors import InvalidInputError, UnsupportedError
from hms_iceberg.spark.procedures.procedure import TABLE, Call, Column, Parameter, Procedure, ResultView
from hms_iceberg.spark.reading.changes import between, command
from hms_iceberg.spark.schemas import is_held, spark_schema


def _create_changelog_view(call: Call) -> ResultView:
    table = call.table()
    net_changes = call.get("net_changes", False)
    scan = table.changelog_scan(
        identifier_columns=call.get("identifier_columns"),
        compute_updates=call.get("compute_updates"),
        net_changes=net_changes,
    )
    if net_changes and call.get("compute_updates", "identifier_columns" in call.arguments):
        raise InvalidInputError("Not support net changes with update images: leave out net_changes or compute_updates.")
    scan = between(scan, call.get("options", {}), ".".join(call.identifier))
    scan.to_arrow_batch_reader().close()  # so that what is wrong is told now
    name = call.get("changelog_view", f"`{call.identifier[-1]}_changes`")
    schema = changelog_schema(scan.projection())
    for field in schema.fields:
        if not is_held(field.field_type):
            raise UnsupportedError(
                f"Cannot make a view of the changes of table {'.'.join(call.identifier)}: Spark cannot hold column "
                f"{field.name!r}, which is a {field.field_type}. Read the changes from Python (Table.changelog_scan)."
            )
    return ResultView(name, spark_schema(schema, name), command(scan), [(name,)])


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
    only_reads=True,
)
