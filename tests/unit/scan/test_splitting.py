from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hms_iceberg.errors import ConfigurationError
from hms_iceberg.scan.splitting import ScanTaskGroup, SplitOptions, split, task_groups
from hms_iceberg.scan.tasks import FileScanTask
from hms_iceberg.spec.manifests.manifest_values import DataFile, DataFileContent

MB = 1024 * 1024


def task(size: int, offsets: tuple[int, ...] | None = None, deletes: tuple[int, ...] = (), **more: Any) -> FileScanTask:
    """A task of a file of so many bytes, with delete files of so many bytes."""
    file = DataFile(
        **{
            "file_path": f"f{size}",
            "file_format": "PARQUET",
            "record_count": size,
            "file_size_in_bytes": size,
            "split_offsets": offsets,
            **more,
        }
    )
    delete_files = [
        DataFile(
            file_path="d",
            file_format="PARQUET",
            record_count=1,
            file_size_in_bytes=each,
            content=DataFileContent.POSITION_DELETES,
        )
        for each in deletes
    ]
    return FileScanTask.of(file, delete_files)


def ranges(tasks: Any) -> list[tuple[int, int]]:
    return [(each.start, each.length) for each in tasks]


def sizes(groups: Any) -> list[list[int]]:
    return [[each.length for each in group.tasks] for group in groups]


def test_a_file_is_cut_at_its_split_offsets() -> None:
    assert ranges(split(task(100, (4, 40, 70)), 1000)) == [(0, 40), (40, 30), (70, 30)]


def test_a_file_without_offsets_is_cut_every_so_many_bytes() -> None:
    assert ranges(split(task(100), 40)) == [(0, 40), (40, 40), (80, 20)]
    assert ranges(split(task(40), 40)) == [(0, 40)]


def test_offsets_that_cannot_be_right_are_not_used() -> None:
    for wrong in ((4, 200), (50, 4), (4, 4)):
        assert ranges(split(task(100, wrong), 60)) == [(0, 60), (60, 40)]


def test_files_of_all_formats_are_split() -> None:
    for name in ("AVRO", "orc", "parquet"):
        assert ranges(split(task(100, (4, 50), file_format=name), 10)) == [(0, 50), (50, 50)]
        assert ranges(split(task(25, file_format=name), 10)) == [(0, 10), (10, 10), (20, 5)]
    (only,) = split(task(100, (4, 50), file_format="PUFFIN"), 10)
    assert only.byte_range is None


def test_small_files_come_together_and_each_counts_as_the_cost_of_opening_it() -> None:
    options = SplitOptions(target_size=100, open_file_cost=20)
    assert sizes(task_groups([task(10)] * 12, options)) == [[10] * 5, [10] * 5, [10] * 2]
    assert sizes(task_groups([task(60), task(50), task(40), task(50)], options)) == [[60, 40], [50, 50]]


def test_deletes_count_with_their_bytes_and_the_cost_of_opening_them() -> None:
    options = SplitOptions(target_size=100, open_file_cost=10)
    assert len(list(task_groups([task(30, None, (30,))] * 2, options))) == 2
    assert len(list(task_groups([task(1, None, (1, 1, 1, 1, 1))] * 2, options))) == 2
    vector = task(10_000, file_format="PUFFIN", content_offset=4, content_size_in_bytes=6).file
    assert ScanTaskGroup((FileScanTask.of(task(30).file, [vector]),)).size_bytes == 36


def test_neighbouring_parts_of_a_file_become_one_again() -> None:
    (group,) = task_groups([task(100, (4, 40, 70))], SplitOptions(target_size=1000, open_file_cost=0))
    assert ranges(group.tasks) == [(0, 100)]
    assert (group.size_bytes, group.files_count, group.estimated_rows_count) == (100, 1, 100)


def test_the_fullest_group_is_done_when_too_many_are_open() -> None:
    options = SplitOptions(target_size=100, lookback=2, open_file_cost=0)
    assert sizes(task_groups([task(60), task(70), task(80), task(20)], options)) == [[80], [60, 20], [70]]


def test_options_of_a_scan_come_before_those_of_the_table() -> None:
    options = SplitOptions.of(
        {"read.split.target-size": "7", "read.split.open-file-cost": "0"}, {"read.split.target-size": "9"}
    )
    assert options == SplitOptions(9, 10, 0)
    for wrong in ("0", "many"):
        with pytest.raises(ConfigurationError, match="planning-lookback"):
            SplitOptions.of({"read.split.planning-lookback": wrong}, {})


def test_a_part_of_a_file_can_be_sent_elsewhere() -> None:
    part = task(100, None, (5,)).part(10, 20)
    copy = pickle.loads(pickle.dumps(part))
    assert copy == part
    assert copy != task(100, None, (5,))


@given(
    st.lists(st.tuples(st.integers(1, 300), st.lists(st.integers(1, 299), max_size=4), st.integers(0, 3)), max_size=30),
    st.integers(1, 200),
    st.integers(1, 4),
    st.integers(0, 50),
)
def test_every_byte_of_every_file_is_in_one_group(
    files: list[tuple[int, list[int], int]], target: int, lookback: int, cost: int
) -> None:
    tasks = [
        task(size, tuple(offsets) or None, (1,) * deletes, file_path=str(number))
        for number, (size, offsets, deletes) in enumerate(files)
    ]
    options = SplitOptions(target, lookback, cost)
    found: dict[str, list[tuple[int, int]]] = {each.file.file_path: [] for each in tasks}
    for group in task_groups(iter(tasks), options):
        assert group.tasks
        weights = [
            max(each.length + len(each.delete_files), (1 + len(each.delete_files)) * cost) for each in group.tasks
        ]
        assert len(group.tasks) == 1 or sum(weights) <= target
        for each in group.tasks:
            found[each.file.file_path].append((each.start, each.length))
    for each in tasks:
        end = 0
        for start, length in sorted(found[each.file.file_path]):
            assert start == end and length > 0
            end += length
        assert end == each.file.file_size_in_bytes
