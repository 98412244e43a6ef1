"""`hms-iceberg forget`: rows go from every version of a table, as a plan first, and with a report."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hms_iceberg.cli.care.table_care import backup_option
from hms_iceberg.cli.catalog_options import Duration, on_table
from hms_iceberg.cli.output import Output, say, warn

if TYPE_CHECKING:
    from hms_iceberg.maintenance import ErasureResult
    from hms_iceberg.table.table import Table


@click.command()
@on_table
@click.option("--where", help='Which rows, such as "user_id = 7".')
@click.option("--yes", is_flag=True, help="Do it; without this the plan is only shown.")
@click.option(
    "--after", type=Duration(), default="24h", show_default=True, help="How long the old files stay; 0 for none."
)
@click.option("--resume", is_flag=True, help="Go on with an erasure that was killed, or whose files wait.")
@click.option("--now", is_flag=True, help="With --resume: delete the old files although they are not due yet.")
@click.option("--report", type=click.Path(dir_okay=False, path_type=Path), help="A new file for the report, as JSON.")
@click.option(
    "--sign-key",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A file with a private Ed25519 key (PEM), or with any secret, that the report is signed with.",
)
@backup_option
def forget(
    table: Table,
    out: Output,
    where: str | None,
    yes: bool,
    after: float,
    resume: bool,
    now: bool,
    report: Path | None,
    sign_key: Path | None,
    keep_backup: bool,
) -> None:
    """Forget rows: they go from every snapshot, branch, tag, delete file, statistic and metadata file of a table.

    Snapshots keep their ids, times and order. The old files stay for queries that began earlier, until --resume
    deletes them after the time that --after says.

    Example: hms-iceberg forget web.visits --where "user_id = 7" --yes --report erasure.json --sign-key key.pem
    """
    from hms_iceberg.maintenance import forget as forget_rows
    from hms_iceberg.maintenance import resume_forget

    if where is None and not resume:
        raise click.UsageError("give --where, or --resume")
    if now and not resume:
        raise click.UsageError("--now belongs to --resume; for no delay at all, give --after 0")
    if report is not None and report.exists():
        raise click.UsageError(f"--report {report} exists already; name a new file")
    key = None if sign_key is None else sign_key.read_bytes()
    if where is None or resume:
        resumed = resume_forget(table, where=where, sign_key=key, now=now)
        if resumed is None:
            out.result("No erasure is open.", open=False)
            return
        result = resumed
    else:
        result = forget_rows(
            table,
            where,
            dry_run=not yes,
            after=dt.timedelta(seconds=after),
            sign_key=key,
            give_up_backup=not keep_backup,
            reported=report is not None,
        )
    if report is not None and result.report is not None:
        report.write_text(json.dumps(result.report, indent=1, ensure_ascii=False), encoding="utf-8")
    _tell(table, out, result, is_plan=not (yes or resume))


def _tell(table: Table, out: Output, result: ErasureResult, is_plan: bool) -> None:
    name = ".".join(table.identifier)
    if out.is_json:
        out.json(_as_json(result))
        return
    say(str(result.plan))
    if result.report is not None:
        deleted, rows = len(result.report["deleted"]), result.report["rows"]
        proof = len(result.report["proof"]["files"])
        unnamed = len(result.report["not-proven"]["unnamed-files"])
        say(f"Done: {rows:,} rows are forgotten, {deleted:,} files deleted; {proof:,} live files were read for proof.")
        if unnamed:
            say(f"{unnamed:,} files below the table are named by nothing, and were not read. To delete them:")
            say(f"  hms-iceberg remove-orphan-files {name}")
    elif result.due is not None:
        say(f"The table has moved on. Its old files go after {result.due:%Y-%m-%d %H:%M} UTC:")
        say(f"  hms-iceberg forget {name} --resume")
    elif is_plan and not (result.plan.is_empty or result.plan.needed_by):
        say("Nothing was done yet. To do it, add --yes")
    warn(tuple(f"{location}: {reason}" for location, reason in (result.left or {}).items()))
    if result.left:
        raise click.exceptions.Exit(1)


def _as_json(result: ErasureResult) -> dict[str, Any]:
    plan = dataclasses.asdict(result.plan)
    plan["files"] = [
        {"file": path, "matching_rows": rows, "rows": total} for path, (rows, total) in result.plan.files.items()
    ]
    due = None if result.due is None else result.due.isoformat()
    return {
        "plan": plan,
        "journal": result.journal,
        "due": due,
        "report": result.report,
        "left": dict(result.left or {}),
    }
