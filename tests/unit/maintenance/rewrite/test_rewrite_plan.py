from __future__ import annotations

from dataclasses import replace

import pytest

from hms_iceberg.expressions.tree import AlwaysTrue
from hms_iceberg.lazy import pl
from hms_iceberg.maintenance.rewrite import rewrite_plan
from hms_iceberg.maintenance.rewrite.options import RewriteOptions
from hms_iceberg.maintenance.rewrite.rewrite_plan import PlannedTasks, plan_rewrite
from hms_iceberg.scan.tasks import ScanPlan
from hms_iceberg.spec.manifests.manifest_values import DataFileContent
from tests.support.scale_walls import BY_PART, SCHEMA, checkpoints, file
from tests.support.snapshots import ManifestTable


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


def test_groups_are_planned_without_looking_at_the_plan_of_each(monkeypatch: pytest.MonkeyPatch) -> None:
    table = ManifestTable(SCHEMA, BY_PART)
    for part in range(7):
        files = (file(f"data/{part}-{each}", DataFileContent.DATA) for each in range(part + 2))
        deletes = file(f"deletes/{part}", DataFileContent.POSITION_DELETES)
        table.commit(*(replace(each, partition=(part or None,)) for each in (*files, deletes)))
    options = RewriteOptions({"target-file-size-bytes": "150"}, "rewrite_data_files", "t")

    def planned() -> list[tuple[str, int, int]]:
        snapshot, rules = table.metadata.current_snapshot(), (options.sizes(150), options.data_files())
        plan = plan_rewrite(table.metadata, snapshot, table.storage, *rules, AlwaysTrue(), True)
        return sorted((each.partition, len(each.items), each.input_bytes) for each in plan.groups)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ScanPlan, "at", lambda *_: pytest.fail("a plan was made"))
        found = planned()
    assert found == sorted((f"part={part or 'null'}", part + 2, 100 * (part + 2)) for part in range(7))
    monkeypatch.setattr(rewrite_plan, "_GROUPS_AT_ONCE", 2)
    assert planned() == found
