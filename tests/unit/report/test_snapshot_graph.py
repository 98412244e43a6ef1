"""Where snapshots stand in the graph, and the graph as text."""

from __future__ import annotations

from hms_iceberg.report.portrait import SnapshotPoint
from hms_iceberg.report.snapshot_graph import drawn, placed


def point(snapshot_id: int, parent_id: int | None, *refs: str, is_current: bool = False) -> SnapshotPoint:
    return SnapshotPoint(snapshot_id, parent_id, 0, "append", 1, None, 1, 1, refs, is_current)


def text(*points: SnapshotPoint) -> list[str]:
    return [
        f"{line} {'' if snapshot is None else snapshot.snapshot_id}".rstrip()
        for line, snapshot in drawn(placed(points))
    ]


def test_one_line_of_snapshots_is_one_lane() -> None:
    history = [point(3, 2, "main", is_current=True), point(2, 1, is_current=True), point(1, None, is_current=True)]
    assert text(*history) == ["● 3", "● 2", "● 1"]
    assert [each.parent_row for each in placed(history)] == [1, 2, None]


def test_branches_have_lanes_beside_main_and_join_where_they_began() -> None:
    assert text(
        point(7, 4, "audit"),
        point(6, 3, "main", is_current=True),
        point(5, 2, "old"),
        point(4, 2),
        point(3, 2, is_current=True),
        point(2, 1, is_current=True),
        point(1, None, is_current=True),
    ) == [
        "  ●   7",
        "● │   6",
        "│ │ ● 5",
        "│ ● │ 4",
        "● │ │ 3",
        "├─┴─╯",
        "●     2",
        "●     1",
    ]


def test_a_snapshot_whose_parent_expired_starts_a_line() -> None:
    places = placed([point(3, 2, "main", is_current=True), point(9, 8, "staged"), point(2, 1, is_current=True)])
    assert [(each.lane, each.parent_row) for each in places] == [(0, 2), (1, None), (0, None)]


def test_a_table_without_snapshots_has_an_empty_graph() -> None:
    assert drawn(placed([])) == []
