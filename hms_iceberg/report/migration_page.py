"""The state of a warehouse's migration as one HTML page that needs nothing else."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from hms_iceberg.migration.warehouse.warehouse_plan import human_size, shown_state, shown_why
from hms_iceberg.report.page import page_templates

if TYPE_CHECKING:
    from hms_iceberg.migration.warehouse.warehouse_plan import WarehousePlan


def migration_page(plan: WarehousePlan) -> str:
    """A page with the state of every table, which sorts and searches."""
    counts = Counter(shown_state(each) for each in plan.tables)
    summary = ", ".join(f"{number:,} {state}" for state, number in sorted(counts.items()))
    environment = page_templates().overlay()
    environment.filters = {**environment.filters, "state": shown_state, "why": shown_why, "human_size": human_size}
    return environment.get_template("migration.html").render(tables=plan.tables, summary=summary)
