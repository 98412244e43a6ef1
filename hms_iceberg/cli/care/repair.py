"""`hms-iceberg repair`: what of a damaged table can be made whole again, and what is lost."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from hms_iceberg.cli.connection import on_catalog
from hms_iceberg.cli.output import Output

if TYPE_CHECKING:
    from hms_iceberg.catalog import Catalog
    from hms_iceberg.maintenance.repair import RepairPlan


@click.command()
@click.argument("table", metavar="DB.TABLE")
@click.option("--apply", is_flag=True, help="Do it; without this the plan is only shown.")
@click.option("--accept-loss", is_flag=True, help="Also do what loses rows, deletes or snapshots; the plan says which.")
@click.option("--record-counts", is_flag=True, help="Also open every live file and count its rows.")
@on_catalog
def repair(catalog: Catalog, out: Output, table: str, apply: bool, accept_loss: bool, record_counts: bool) -> None:
    """Repair a damaged table as far as that is safe. Nothing is deleted, and a journal is written first.

    The exit code is 1 where damage is left.

    Example: hms-iceberg repair web.visits --apply
    """
    from hms_iceberg.maintenance.repair import repair_table
    from hms_iceberg.metastore_names import table_identifier

    result = repair_table(
        catalog, table_identifier(table), dry_run=not apply, accept_loss=accept_loss, record_counts=record_counts
    )
    plan = result.plan
    if out.is_json:
        out.json({**_told(plan), "journal": result.journal})
    else:
        click.echo(str(plan))
        click.echo(_outlook(plan, apply, result.journal))
    if plan.refused or plan.hopeless or (plan.steps and not apply):
        raise click.exceptions.Exit(1)


def _told(plan: RepairPlan) -> dict[str, Any]:
    return {
        "table": ".".join(plan.pointer.identifier),
        "metadata_location": plan.pointer.metadata_location,
        **{name: [asdict(step) for step in getattr(plan, name)] for name in ("steps", "refused", "hopeless")},
    }


def _outlook(plan: RepairPlan, apply: bool, journal: str | None) -> str:
    """What was done, or how to have it done."""
    lines = []
    if journal is not None:
        lines.append(f"Done. What was before is in the journal {journal}")
    elif plan.steps and not apply:
        lines.append("Nothing was done yet. To do it, add --apply")
    if plan.refused:
        lines.append("To do what loses something as well, add --accept-loss")
    return "\n".join(lines) or "Nothing was done."
