"""`hms-iceberg history` and `rollback`, and the snapshot that a word on the command line stands for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from hms_iceberg.cli.catalog_options import complete_ref, on_table
from hms_iceberg.cli.output import Output
from hms_iceberg.errors import NoSuchSnapshotError

if TYPE_CHECKING:
    from hms_iceberg.spec.snapshots_and_refs import Snapshot
    from hms_iceberg.table.table import Table


def snapshot_named(table: Table, word: str) -> int:
    """The id of the snapshot with that id, or of that branch or tag."""
    ref = table.refs().get(word)
    if ref is not None:
        return ref.snapshot_id
    if word.isdigit() and table.snapshot_by_id(int(word)) is not None:
        return int(word)
    name = ".".join(table.name())
    raise NoSuchSnapshotError(
        f"Table {name} has no snapshot, branch or tag {word!r}. What it has: hms-iceberg history {name}"
    )


_COLUMNS = ("snapshot_id", "parent_id", "made_at", "operation", "added", "deleted", "rows", "state", "refs")
_SHOWN_TIME = len("2026-01-31T12:00:00.000")


@click.command()
@on_table
@click.option("--limit", type=click.IntRange(1), help="Only so many, the newest.")
def history(table: Table, out: Output, limit: int | None) -> None:
    """List the snapshots of a table, the newest first: what each did to rows, and what points at it.

    Times are UTC. The state is `current`, `ancestor` (of the current one), or empty: staged, of a branch, or rolled
    back.

    Example: hms-iceberg history web.visits --limit 10
    """
    from hms_iceberg.spec.values.datetimes import format_milliseconds

    metadata = table.metadata
    ancestors = set()
    current = table.current_snapshot()
    each = current
    while each is not None and each.snapshot_id not in ancestors:
        ancestors.add(each.snapshot_id)
        each = table.snapshot_by_id(each.parent_snapshot_id) if each.parent_snapshot_id is not None else None
    newest = sorted(metadata.snapshots, key=lambda found: (found.timestamp_ms, found.sequence_number), reverse=True)
    rows = []
    for snapshot in newest[:limit]:
        state = "ancestor" if snapshot.snapshot_id in ancestors else None
        if current is not None and snapshot.snapshot_id == current.snapshot_id:
            state = "current"
        refs = sorted(name for name, ref in metadata.refs.items() if ref.snapshot_id == snapshot.snapshot_id)
        time = format_milliseconds(snapshot.timestamp_ms)
        when_and_refs = (time, refs) if out.is_json else (time[:_SHOWN_TIME].replace("T", " "), ", ".join(refs))
        rows.append(_row(snapshot, state, *when_and_refs))
    out.rows(_COLUMNS, rows)


def _row(snapshot: Snapshot, state: str | None, time: str, refs: Any) -> tuple[Any, ...]:
    def count(key: str) -> int | None:
        text = snapshot.summary[key]
        return None if text is None else int(text)

    operation = None if snapshot.operation is None else str(snapshot.operation)
    return (
        snapshot.snapshot_id,
        snapshot.parent_snapshot_id,
        time,
        operation,
        count("added-records"),
        count("deleted-records"),
        count("total-records"),
        state,
        refs,
    )


@click.command()
@on_table
@click.argument("snapshot", shell_complete=complete_ref, required=False)
@click.option("--as-of", metavar="TIME", help="To the last snapshot before a time such as 2026-01-31T12:00:00 (UTC).")
def rollback(table: Table, out: Output, snapshot: str | None, as_of: str | None) -> None:
    """Point a table's main branch at an earlier snapshot of it. Later snapshots stay until they expire.

    SNAPSHOT is an id, a branch or a tag; it must be an ancestor of the current snapshot.

    Example: hms-iceberg rollback web.visits 4231363255180114125
    """
    from hms_iceberg.cli.snapshots.history import snapshot_named

    if (snapshot is None) == (as_of is None):
        raise click.UsageError("Give either SNAPSHOT or --as-of.")
    before = table.current_snapshot()
    change = table.manage_snapshots()
    if snapshot is not None:
        change.rollback_to_snapshot(snapshot_named(table, snapshot)).commit()
    else:
        assert as_of is not None
        change.rollback_to_timestamp(as_of).commit()
    after = table.current_snapshot()
    ids = {
        "before": None if before is None else before.snapshot_id,
        "after": None if after is None else after.snapshot_id,
    }
    name = ".".join(table.name())
    out.text(
        f"{name} is at snapshot {ids['after']}; it was at {ids['before']}.",
        {"table": name, **ids},
    )
