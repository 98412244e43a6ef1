"""The words that show a table in the migration of a warehouse: its state, the reasons, and its size."""

from __future__ import annotations

from hms_iceberg.migration.warehouse.warehouse_plan import TablePlan


def shown_state(entry: TablePlan) -> str:
    """The outcome of a table, or its state if it has none yet."""
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
