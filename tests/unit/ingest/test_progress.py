from __future__ import annotations

from hms_iceberg.ingest.progress import Progress
from hms_iceberg.ingest.records import Partition

AHEAD, BEHIND = ("db", "ahead"), ("db", "behind")
PROGRESS = Progress({AHEAD: {"t-0": 6, "t-1": 2}, BEHIND: {"t-0": 1}})
POSITIONS: dict[Partition, int] = {("t", 0): 3, ("t", 1): 4}


def test_a_table_that_is_ahead_of_where_is_read_keeps_its_offsets() -> None:
    assert PROGRESS.after(AHEAD, POSITIONS) == {"t-0": 6, "t-1": 4}
    assert PROGRESS.after(BEHIND, POSITIONS) == PROGRESS.after(("db", "new"), POSITIONS) == {"t-0": 3, "t-1": 4}
    moved = PROGRESS.moved({AHEAD, BEHIND}, POSITIONS)
    assert moved.tables == {AHEAD: {"t-0": 6, "t-1": 4}, BEHIND: {"t-0": 3, "t-1": 4}}
    assert moved.behind(POSITIONS) == set()
    assert PROGRESS.behind({("t", 0): 3, ("t", 1): 2}) == {BEHIND}
