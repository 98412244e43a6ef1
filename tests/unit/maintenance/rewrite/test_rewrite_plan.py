from __future__ import annotations

import pytest

from hms_iceberg.lazy import pl
from hms_iceberg.maintenance.rewrite.rewrite_plan import PlannedTasks
from hms_iceberg.spec.manifests.manifest_values import DataFileContent
from tests.support.scale_walls import checkpoints


def test_tasks_that_are_made_when_they_are_asked_for_are_a_sequence_of_those_of_their_rows() -> None:
    plan = checkpoints(30, DataFileContent.EQUALITY_DELETES, 5).plan()
    tasks, rows = list(plan.tasks()), [2, 3, 7, 11, 29]
    expected = [tasks[row] for row in rows]
    made = PlannedTasks(plan, pl.Series(rows, dtype=pl.UInt32))
    assert list(made) == expected
    assert [made[place] for place in range(len(made))] == expected
    assert [made[-1], *made[1:4:2]] == [expected[-1], *expected[1:4:2]]
    assert made.record_count == sum(task.file.record_count for task in expected)
    with pytest.raises(IndexError):
        made[5]
