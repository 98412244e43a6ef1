"""The checker of histories: is the table a serial order of the acknowledged changes, and perhaps of unknown ones?

The snapshots say in which order changes of rows were made. In that order each is done to a list of rows; every snapshot
must hold exactly the rows that come out. An acknowledged change must be there once, a failed one not at all, and one
that was reported before another began must come before it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from hms_iceberg.table import Table

Rows = list[tuple[int, int, int]]


@dataclass
class Change:
    """A change as its writer saw it; `ended` is infinite where it was not reported as made or failed."""

    kind: str
    writer: int
    number: int
    target: int
    begun: float
    outcome: str = "killed"
    ended: float = math.inf
    detail: str = ""

    @property
    def mark(self) -> str:
        """What its snapshot's summary says."""
        return f"{self.writer}-{self.number}"

    def applied(self, rows: Rows) -> Rows:
        """The rows after it."""
        if self.kind == "append":
            return [*rows, (self.writer, self.number, 0)]
        if self.kind == "merge" and not any(w == self.target for w, _, _ in rows):
            return [*rows, (self.target, self.number, 0)]
        if self.kind in ("update", "merge"):
            return [(w, n, self.number if w == self.target else value) for w, n, value in rows]
        kept = [row for row in rows if row[0] != self.target]
        return [*kept, (self.writer, self.number, 0)] if self.kind == "overwrite" else kept


def changes_of(notes: list[dict[str, Any]]) -> list[Change]:
    """The changes of one writer, out of its notes."""
    changes: list[Change] = []
    for note in notes:
        if note["event"] == "begun":
            changes.append(Change(note["kind"], note["writer"], note["number"], note["target"], note["at"]))
            continue
        change = changes[-1]
        change.outcome, change.detail = note["event"], note["detail"]
        if change.outcome in ("made", "failed"):
            change.ended = note["at"]
    return changes


def check_history(table: Table, changes: list[Change], may_fail: tuple[str, ...]) -> None:
    """Raises AssertionError where the table is no serial order of the changes.

    Args:
        table: at its newest version.
        changes: of all writers.
        may_fail: names of the errors that a change may fail with.
    """
    for change in changes:
        assert change.outcome != "broken", change
        assert change.outcome != "failed" or change.detail.split(":")[0] in may_fail, change
    order, states = _replay(table, {change.mark: change for change in changes})
    _check_outcomes(order, states, changes)
    _check_order(order)
    _check_definition(table, changes)


def _replay(table: Table, by_mark: dict[str, Change]) -> tuple[list[Change], list[Rows]]:
    """The changes in the order of the snapshots, and the rows before the first and after each of them."""
    chain = _chain(table)
    assert len(chain) == len(table.snapshots()), "a snapshot is not in the history of the table"
    order: list[Change] = []
    states: list[Rows] = [[]]
    for snapshot in chain:
        is_compaction = snapshot.summary["operation"] == "replace"  # by which no row changes
        change = None if is_compaction else by_mark[snapshot.summary["change"]]
        if change is not None:
            assert change not in order, f"applied twice: {change}"
            order.append(change)
            states.append(change.applied(states[-1]))
        found = table.scan(snapshot_id=snapshot.snapshot_id, selected_fields=("writer", "number", "value")).to_arrow()
        rows = sorted((row["writer"], row["number"], row["value"]) for row in found.to_pylist())
        assert rows == sorted(states[-1]), f"snapshot {snapshot.snapshot_id} after {change}"
    return order, states


def _chain(table: Table) -> list[Any]:
    chain = []
    snapshot = table.current_snapshot()
    while snapshot is not None:
        chain.append(snapshot)
        parent = snapshot.parent_snapshot_id
        snapshot = table.metadata.snapshot_by_id(parent) if parent is not None else None
    return chain[::-1]


def _check_outcomes(order: list[Change], states: list[Rows], changes: list[Change]) -> None:
    for change in changes:
        if change in order:
            assert change.outcome != "failed", f"reported as failed, and made: {change}"
        elif change.outcome == "made" and change.kind in ("append", "overwrite", "merge"):
            raise AssertionError(f"acknowledged, and lost: {change}")
        elif change.outcome == "made" and change.kind in ("delete", "update"):
            # It made no snapshot, so that there was nothing to do at some moment while it ran.
            first = sum(1 for other in order if other.ended < change.begun)
            last = sum(1 for other in order if other.begun < change.ended)
            idle = [state for state in states[first : last + 1] if change.applied(state) == state]
            assert idle, f"acknowledged, and not made: {change}"


def _check_order(order: list[Change]) -> None:
    for index, later in enumerate(order):
        for earlier in order[:index]:
            assert earlier.begun < later.ended, f"{earlier} is before {later}, which was acknowledged when it began"


def _check_definition(table: Table, changes: list[Change]) -> None:
    """Columns and properties: the acknowledged are there, the failed are not, and columns came in their order."""
    columns = [field.name for field in sorted(table.schema().fields, key=lambda field: field.field_id)][3:]
    assert len(columns) == len(set(columns))
    by_column = {f"extra_{change.writer}_{change.number}": change for change in changes if change.kind == "schema"}
    _check_order([by_column[name] for name in columns])
    for change in changes:
        there = {
            "schema": f"extra_{change.writer}_{change.number}" in columns,
            "property": f"extra.{change.writer}.{change.number}" in table.properties,
        }.get(change.kind)
        if there is not None and change.outcome in ("made", "failed"):
            assert there == (change.outcome == "made"), change


def check_files(table: Table, changes: list[Change]) -> None:
    """Every file that the table's history names is there; where every outcome is known, there is no other file."""
    storage = table.storage
    found = (info.location.removeprefix("file:") for info in storage.list(table.location()))
    present = {path for path in found if not path.rpartition("/")[2].startswith(".")}  # Hadoop's checksums
    needed = {table.metadata_location, *(entry.metadata_file for entry in table.metadata.metadata_log)}
    for files in (table.inspect.all_manifests().column("path"), table.inspect.all_files().column("file_path")):
        needed |= set(files.to_pylist())
    needed |= {snapshot.manifest_list for snapshot in table.snapshots() if snapshot.manifest_list}
    needed = {location.removeprefix("file:") for location in needed}
    assert needed <= present, f"missing: {needed - present}"
    if all(change.outcome in ("made", "failed") for change in changes):
        assert present == needed, f"left behind: {present - needed}"
