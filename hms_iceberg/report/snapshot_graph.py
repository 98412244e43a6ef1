"""The layout of a table's snapshots in a picture of its branches: rows from the newest to the oldest, in lanes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hms_iceberg.report.portrait import SnapshotPoint


@dataclass(frozen=True)
class Placed:
    """A snapshot and its lane in the graph (0 the first), with the lanes `passing` by it, those `joining` it (branches
    that start here), and its parent's row, None if that is not in the picture."""

    snapshot: SnapshotPoint
    lane: int
    passing: tuple[int, ...]
    joining: tuple[int, ...]
    parent_row: int | None


def placed(snapshots: Sequence[SnapshotPoint]) -> tuple[Placed, ...]:
    """The places of snapshots, of which the newest comes first; a snapshot comes after those that were made from it."""
    rows = {each.snapshot_id: row for row, each in enumerate(snapshots)}
    # For each lane the snapshot that its line leads to. The first is kept for the main branch.
    waiting: list[int | None] = [next((each.snapshot_id for each in snapshots if each.is_current), None)]
    begun: set[int] = set()
    found = []
    for each in snapshots:
        lanes = [lane for lane, expected in enumerate(waiting) if expected == each.snapshot_id]
        lane = lanes[0] if lanes else _free(waiting)
        for joining in lanes[1:]:
            waiting[joining] = None
        waiting[lane] = None
        begun.add(lane)
        passing = tuple(other for other, expected in enumerate(waiting) if expected is not None and other in begun)
        parent = rows.get(each.parent_id) if each.parent_id is not None else None
        found.append(Placed(each, lane, passing, tuple(lanes[1:]), parent))
        waiting[lane] = each.parent_id if parent is not None else None
    return tuple(found)


def _free(waiting: list[int | None]) -> int:
    """The first lane that no line uses; a new one if all are used."""
    for lane, expected in enumerate(waiting):
        if expected is None:
            return lane
    waiting.append(None)
    return len(waiting) - 1


def drawn(places: Sequence[Placed]) -> list[tuple[str, SnapshotPoint | None]]:
    """The graph as lines of text of one width: of a snapshot each, and between them those on which lanes join."""
    width = 1 + max((max(each.lane, *each.passing, *each.joining, 0) for each in places), default=0)
    lines: list[tuple[str, SnapshotPoint | None]] = []
    for each in places:
        if each.joining:
            lines.append((_join(each, width), None))
        cells = ["│" if lane in each.passing else " " for lane in range(width)]
        cells[each.lane] = "●"
        lines.append((" ".join(cells), each.snapshot))
    return lines


def _join(each: Placed, width: int) -> str:
    last = max(each.joining)
    text = ""
    for lane in range(width):
        inside = each.lane < lane < last
        if lane == each.lane:
            cell = "├"
        elif lane == last:
            cell = "╯"
        elif lane in each.joining:
            cell = "┴"
        elif lane in each.passing:
            cell = "┼" if inside else "│"
        else:
            cell = "─" if inside else " "
        text += cell + ("─" if each.lane <= lane < last else " ")
    return text[:-1]
