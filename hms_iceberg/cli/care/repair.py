"""`hms-iceberg repair`: repair damaged tables, and report what is lost."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from hms_iceberg.cli.catalog_options import complete_table, matching_tables, on_catalog
from hms_iceberg.cli.output import Output, say
from hms_iceberg.errors import IcebergError, MetastoreUnavailableError

if TYPE_CHECKING:
    from hms_iceberg.catalog import Catalog
    from hms_iceberg.maintenance.repair import RepairResult, UndoneRepair


@click.command()
@click.argument("patterns", metavar="DB.TABLE | PATTERN...", shell_complete=complete_table, nargs=-1, required=True)
@click.option("--apply", is_flag=True, help="Do it; without this the plan is only shown.")
@click.option("--accept-loss", is_flag=True, help="Also do what loses rows, deletes or snapshots; the plan says which.")
@click.option("--record-counts", is_flag=True, help="Also open every live file and count its rows.")
@click.option("--undo", is_flag=True, help="Take the last repair back, if nothing changed the table since.")
@on_catalog
def repair(
    catalog: Catalog,
    out: Output,
    patterns: tuple[str, ...],
    apply: bool,
    accept_loss: bool,
    record_counts: bool,
    undo: bool,
) -> None:
    """Repair damaged tables as far as that is safe. Nothing is deleted, and a journal is written first.

    The exit code is 1 if damage is left. One table's failure is not another's.

    Example: hms-iceberg repair 'web.*' --apply
    """
    if undo and (accept_loss or record_counts):
        raise click.UsageError("--undo excludes --accept-loss and --record-counts")
    results: list[dict[str, Any]] = []
    for name in matching_tables(catalog, patterns):
        result = _done(catalog, name, apply, accept_loss, record_counts, undo)
        results.append(result)
        if not out.is_json:
            say(result["text"])
    if out.is_json:
        out.json([{key: value for key, value in each.items() if key not in ("text", "is_left")} for each in results])
    if any(each["is_left"] for each in results):
        raise click.exceptions.Exit(1)


def _done(
    catalog: Catalog, name: str, apply: bool, accept_loss: bool, record_counts: bool, undo: bool
) -> dict[str, Any]:
    """Repairs one table, or only describes the repair."""
    from hms_iceberg.maintenance.repair import repair_table, undo_repair
    from hms_iceberg.metastore import table_identifier

    identifier = table_identifier(name)
    try:
        if undo:
            return _undone(name, undo_repair(catalog, identifier, dry_run=not apply), apply)
        result = repair_table(
            catalog, identifier, dry_run=not apply, accept_loss=accept_loss, record_counts=record_counts
        )
    except MetastoreUnavailableError:
        raise
    except IcebergError as error:
        failure = {"type": type(error).__name__, "message": str(error)}
        return {"table": name, "error": failure, "text": f"{name}: {error}", "is_left": True}
    return _as_json(name, result, apply)


def _undone(name: str, undone: UndoneRepair, apply: bool) -> dict[str, Any]:
    said = "Done." if apply else "Nothing was done yet. To do it, add --apply"
    journal = {"table": name, "journal": undone.journal, "metadata_location": undone.metadata_location, "done": apply}
    return {**journal, "text": f"{undone}\n{said}", "is_left": False}


def _as_json(name: str, result: RepairResult, apply: bool) -> dict[str, Any]:
    plan = result.plan
    steps = {key: [asdict(step) for step in getattr(plan, key)] for key in ("steps", "refused", "hopeless")}
    return {
        "table": name,
        "metadata_location": plan.pointer.metadata_location,
        **steps,
        "journal": result.journal,
        "text": f"{plan}\n{_outlook(result, apply)}",
        "is_left": bool(plan.refused or plan.hopeless or (plan.steps and not apply)),
    }


def _outlook(result: RepairResult, apply: bool) -> str:
    """Describes the repair, or names the command that would do it."""
    lines = []
    if result.journal is not None:
        lines.append(f"Done. What was before is in the journal {result.journal}")
        lines.append("To take it back, add --undo")
    elif result.plan.steps and not apply:
        lines.append("Nothing was done yet. To do it, add --apply")
    if result.plan.refused:
        lines.append("To do what loses something as well, add --accept-loss")
    return "\n".join(lines) or "Nothing was done."
