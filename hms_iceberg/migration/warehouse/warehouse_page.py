"""The state of a warehouse's migration as one HTML page that needs nothing else."""

from __future__ import annotations

from collections import Counter
from html import escape

from hms_iceberg.migration.warehouse.warehouse_plan import TablePlan, WarehousePlan

_HEAD = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Migration to Iceberg</title><style>
body{font:15px/1.5 system-ui,sans-serif;margin:2em auto;max-width:75em;padding:0 1em;color:#222;background:#fff}
table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.3em .8em;border-bottom:1px solid #ddd;
vertical-align:top}td.n{text-align:right;font-variant-numeric:tabular-nums}.failed,.impossible{color:#a00}
.migrated,.rewritten{color:#060}small{color:#555;white-space:pre-wrap}
</style></head><body><h1>Migration to Iceberg</h1>
"""
_COLUMNS = ("Table", "State", "Partitions", "Files", "Rows", "Size", "Seconds")


def html_page(plan: WarehousePlan) -> str:
    """A page with the state of every table."""
    counts = Counter(shown_state(each) for each in plan.tables)
    summary = ", ".join(f"{number} {escape(state)}" for state, number in sorted(counts.items()))
    head = "".join(f"<th>{name}</th>" for name in _COLUMNS)
    rows = "\n".join(map(_row, plan.tables))
    table = f"<table><thead><tr>{head}</tr></thead><tbody>\n{rows}\n</tbody></table>"
    return f"{_HEAD}<p>{len(plan.tables)} tables: {summary}.</p>\n{table}\n</body></html>\n"


def shown_state(entry: TablePlan) -> str:
    """What came of a table, or else what it is."""
    return "skipped" if entry.skip else entry.outcome.value if entry.outcome else entry.state.value


def shown_why(entry: TablePlan) -> str:
    """Why a table is not migrated, and what would help; empty if there is nothing to say."""
    choices = ", ".join(f"{name}={value}" for name, value in entry.choices.items())
    reasons = [entry.message or " ".join(entry.reasons)] if not entry.outcome or entry.message else []
    return "\n".join([*filter(None, reasons), *([f"Chosen: {choices}"] if choices else [])])


def human_size(size: float) -> str:
    """Bytes as people read them: `1.5 MiB`."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def _row(entry: TablePlan) -> str:
    state = shown_state(entry)
    why = f"<br><small>{escape(shown_why(entry))}</small>" if shown_why(entry) else ""
    numbers = (
        f"{entry.partitions:,}",
        f"{entry.files:,}",
        f"{entry.rows:,}",
        human_size(entry.bytes),
        f"{entry.took or entry.seconds:,.1f}",
    )
    cells = "".join(f'<td class="n">{each}</td>' for each in numbers)
    return f'<tr><td>{escape(entry.table)}</td><td class="{state.split()[0]}">{escape(state)}{why}</td>{cells}</tr>'
