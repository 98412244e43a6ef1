"""The procedure that forgets rows in every version of a table; Apache Iceberg has none."""

from __future__ import annotations

import datetime as dt
import json

from hms_iceberg.errors import InvalidInputError
from hms_iceberg.maintenance.erasure.erasure_plan import ErasureResult
from hms_iceberg.maintenance.erasure.forget import forget, resume_forget
from hms_iceberg.spark.procedures.procedure import TABLE, Call, Column, Parameter, Procedure, Row


def _forget(call: Call) -> list[Row]:
    where, resume = call.get("where"), call.get("resume", False)
    if (where is None) is not resume:
        raise InvalidInputError("forget needs either where, or resume => true to go on with an open erasure.")
    if resume:
        resumed = resume_forget(call.table())
        return [] if resumed is None else [_row(resumed)]
    after = dt.timedelta(hours=call.get("after_hours", 24.0))
    give_up = call.get("give_up_backup", False)
    dry_run = call.get("dry_run", True)
    return [
        _row(forget(call.table(), where, dry_run=dry_run, after=after, give_up_backup=give_up, case_sensitive=False))
    ]


def _row(result: ErasureResult) -> Row:
    plan = result.plan
    due = None if result.due is None else int(result.due.timestamp() * 1_000_000)
    report = None if result.report is None else json.dumps(result.report, ensure_ascii=False)
    return plan.rows, len(plan.files), len(plan.deletes), len(plan.snapshots), due, report


FORGET = Procedure(
    "forget",
    (
        TABLE,
        Parameter("where", "string"),
        Parameter("dry_run", "boolean"),
        Parameter("after_hours", "double"),
        Parameter("resume", "boolean"),
        Parameter("give_up_backup", "boolean"),
    ),
    (
        Column("matching_rows", "bigint", nullable=False),
        Column("data_files_count", "int", nullable=False),
        Column("delete_files_count", "int", nullable=False),
        Column("snapshots_count", "int", nullable=False),
        Column("due", "timestamp"),
        Column("report", "string"),
    ),
    _forget,
    resolves_where=False,
)
