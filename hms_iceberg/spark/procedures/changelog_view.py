"""A temporary view of the rows that snapshots inserted, deleted and updated."""

from __future__ import annotations

from hms_iceberg.errors import InvalidInputError
from hms_iceberg.spark.procedures.procedure import TABLE, Call, Column, Parameter, Procedure, ResultView
from hms_iceberg.spark.reading.changelog.changes import CARRYOVERS, IDENTIFIERS, NET, UPDATES, between


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
    given = call.get("options", {})
    scan = between(scan, given, ".".join(call.identifier))
    scan.plan()  # so that what is wrong is told now
    name = call.get("changelog_view", f"`{call.identifier[-1]}_changes`")
    options = {**given, CARRYOVERS: "false", NET: str(scan.net_changes)}
    if scan.compute_updates is not None:
        options[UPDATES] = str(scan.compute_updates)
    if scan.identifier_columns is not None:
        options[IDENTIFIERS] = ",".join(scan.identifier_columns)
    return ResultView(name, {key.lower(): value for key, value in options.items()}, [(name,)])


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
