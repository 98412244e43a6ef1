from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor

from hms_iceberg.expressions.tree import AlwaysTrue
from hms_iceberg.lazy import pl
from hms_iceberg.scan.tasks import FileScanTask
from hms_iceberg.spec.data_types import LongType, NestedField
from hms_iceberg.spec.manifests.manifest_values import DataFile, DataFileContent
from hms_iceberg.spec.partitions.partition_specs import UNPARTITIONED
from hms_iceberg.spec.schema import Schema
from tests.support.scale_walls import checkpoints
from tests.support.snapshots import ManifestTable

SCHEMA = Schema(NestedField(1, "id", LongType()))


def data_file(path: str, **more: object) -> DataFile:
    return DataFile(**{"file_path": path, "file_format": "PARQUET", "record_count": 1, "file_size_in_bytes": 7, **more})


def test_a_task_can_be_made_of_its_parts() -> None:
    deletes = [data_file("d", content=DataFileContent.EQUALITY_DELETES, equality_ids=(1,))]
    task = FileScanTask.of(data_file("a"), deletes, AlwaysTrue(), 3, 4, [5])
    assert task.file == data_file("a")
    assert task.delete_files == tuple(deletes)
    assert (task.data_sequence_number, task.file_sequence_number, task.delete_sequence_numbers) == (3, 4, (5,))
    assert task.length == 7
    assert "a, 1 delete files" in repr(task)


def test_tasks_are_compared_and_pickled_by_what_they_say() -> None:
    table = ManifestTable(SCHEMA, UNPARTITIONED)
    table.commit(data_file("a", split_offsets=(4, 8), sort_order_id=0))
    (task,) = table.plan().tasks()
    assert task == FileScanTask.of(data_file("a", split_offsets=(4, 8), sort_order_id=0), (), AlwaysTrue(), 1, 1, ())
    assert pickle.loads(pickle.dumps(task)) == task
    assert hash(task) == hash(pickle.loads(pickle.dumps(task)))


def test_the_plan_of_some_rows_has_these_files_with_their_deletes_and_nothing_else() -> None:
    for kind in (DataFileContent.EQUALITY_DELETES, DataFileContent.POSITION_DELETES):
        plan = checkpoints(40, kind, 5).plan()
        assert plan.has_deletes
        tasks = list(plan.tasks())
        for rows in ([], [0], [39], [3, 4, 17], [0, 2, 39], list(range(40))):
            some = plan.at(pl.Series(rows, dtype=pl.UInt32))
            assert list(some.tasks()) == [tasks[row] for row in rows]
            needed = {each.file_path for row in rows for each in tasks[row].delete_files}
            assert set(some.delete_files["file_path"]) == needed


def test_tasks_are_made_right_over_many_stretches_and_from_several_threads() -> None:
    table = ManifestTable(SCHEMA, UNPARTITIONED)
    table.commit(*(data_file(f"{n:05}") for n in range(2500)))
    table.commit(data_file("d", content=DataFileContent.POSITION_DELETES))
    tasks = list(table.plan().tasks())
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda task: (task.file.file_path, len(task.delete_files)), tasks))
    assert found == [(f"{n:05}", 1) for n in range(2500)]
