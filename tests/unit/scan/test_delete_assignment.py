"""Which deletes apply to which files, beside a comparison of every pair in plain Python."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hms_iceberg.expressions.tree import AlwaysTrue
from hms_iceberg.scan import delete_keys
from hms_iceberg.scan.delete_runs import pairs_of
from hms_iceberg.spec.data_types import DoubleType, LongType, NestedField, StringType
from hms_iceberg.spec.manifests.manifest_values import DataFile, DataFileContent, ManifestEntry, ManifestEntryStatus
from hms_iceberg.spec.partitions.partition_specs import PartitionField, PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.transforms.partition_transforms import IdentityTransform
from hms_iceberg.spec.values.single_values import to_bytes
from tests.support.snapshots import LOCATION, ManifestTable

SCHEMA = Schema(
    NestedField(1, "id", LongType()), NestedField(2, "name", StringType()), NestedField(3, "f", DoubleType())
)
SPECS = (
    PartitionSpec(spec_id=0),
    PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "name"), spec_id=1),
    PartitionSpec(PartitionField(3, 1001, IdentityTransform(), "f"), spec_id=2),
)
TYPES = {1: LongType(), 2: StringType()}
POSITIONS, EQUALITY = DataFileContent.POSITION_DELETES, DataFileContent.EQUALITY_DELETES


@dataclass(frozen=True)
class Made:
    """A file, its sequence number, and for each field lower and upper bound, values and nulls; None is unknown."""

    file: DataFile
    number: int
    metrics: dict[int, tuple[Any, Any, int | None, int | None]]


@st.composite
def files(draw: st.DrawFn) -> list[Made]:
    contents = [
        draw(st.sampled_from([DataFileContent.DATA, POSITIONS, EQUALITY])) for _ in range(draw(st.integers(2, 24)))
    ]
    made: list[Made] = []
    for index, content in enumerate(contents):
        spec_id = draw(st.integers(0, 2))
        values: dict[int, st.SearchStrategy[Any]] = {
            0: st.just(()),
            1: st.tuples(st.sampled_from(["x", "y", None])),
            2: st.tuples(st.sampled_from([0.0, -0.0, float("nan"), None])),
        }
        metrics = {1: draw(_metrics(st.integers(0, 9))), 2: draw(_metrics(st.sampled_from("abcdefgh")))}
        more: dict[str, Any] = {}
        if content is EQUALITY:
            more["equality_ids"] = draw(st.sampled_from([(1,), (2,), (1, 2), (2, 1)]))
        data = [each.file.file_path for each in made if each.file.is_data]
        if content is POSITIONS and data and draw(st.booleans()):
            more["referenced_data_file"] = draw(st.sampled_from(data))
        file = DataFile(
            file_path=f"{LOCATION}/data/{index}",
            file_format="PARQUET",
            record_count=9,
            file_size_in_bytes=100,
            content=content,
            spec_id=spec_id,
            partition=draw(values[spec_id]),
            value_counts={key: each[2] for key, each in metrics.items() if each[2] is not None},
            null_value_counts={key: each[3] for key, each in metrics.items() if each[3] is not None},
            lower_bounds={key: to_bytes(TYPES[key], each[0]) for key, each in metrics.items() if each[0] is not None},
            upper_bounds={key: to_bytes(TYPES[key], each[1]) for key, each in metrics.items() if each[1] is not None},
            **more,
        )
        made.append(Made(file, draw(st.integers(1, 6)), metrics))
    return made


@st.composite
def _metrics(draw: st.DrawFn, values: st.SearchStrategy[Any]) -> tuple[Any, Any, int | None, int | None]:
    low, high = sorted((draw(values), draw(values)))
    nulls = draw(st.sampled_from([None, 0, 3, 9]))
    known = draw(st.integers(0, 4)) > 0 and nulls != 9
    return (low if known else None, high if known else None, 9 if nulls is not None else None, nulls)


def may_share_a_key(data: Made, delete: Made) -> bool:
    for key in delete.file.equality_ids or ():
        low, high, values, nulls = data.metrics[key]
        other_low, other_high, other_values, other_nulls = delete.metrics[key]
        if nulls != 0 and other_nulls != 0:
            continue  # null equals null
        if (nulls is not None and nulls == values and other_nulls == 0) or (
            other_nulls is not None and other_nulls == other_values and nulls == 0
        ):
            return False
        if None not in (low, high, other_low, other_high) and (low > other_high or other_low > high):
            return False
    return True


def reaches(data: Made, delete: Made) -> bool:
    """Whether a delete file applies to a data file by kind, partition and sequence number alone."""
    same = (data.file.spec_id, repr(data.file.partition)) == (delete.file.spec_id, repr(delete.file.partition))
    if delete.file.content is EQUALITY:
        return data.number < delete.number and (delete.file.spec_id == 0 or same)
    named = delete.file.referenced_data_file
    return data.number <= delete.number and (same if named is None else named == data.file.file_path)


def assigned(made: list[Made]) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """By the plan's tasks and by its frames: the delete files of each data file."""
    table = ManifestTable(SCHEMA, *SPECS)
    table.commit(
        *(ManifestEntry(ManifestEntryStatus.EXISTING, 1, each.number, each.number, each.file) for each in made)
    )
    plan = table.plan(AlwaysTrue())
    assert plan.metrics.delete_files_kept == plan.delete_files.height == plan.delete_files["file_path"].n_unique()
    by_tasks = {task.file.file_path: sorted(each.file_path for each in task.delete_files) for task in plan.tasks()}
    for task in plan.tasks():
        assert task.delete_files.content_bytes == 100 * len(task.delete_files)
        for group in task.delete_files.equality_groups():
            numbers = [table_number(made, each) for each in group.files]
            assert numbers == sorted(numbers)
            assert len({(each.partition_key, tuple(sorted(each.equality_ids or ()))) for each in group.files}) == 1
    by_frames: dict[str, list[str]] = {path: [] for path in plan.files["file_path"]}
    for data_file, delete_file in pairs_of(plan.assignments).iter_rows():
        by_frames[plan.files["file_path"][data_file]].append(plan.delete_files["file_path"][delete_file])
    assert plan.count_deletes().to_list() == [len(by_frames[path]) for path in plan.files["file_path"]]
    return by_tasks, {path: sorted(found) for path, found in by_frames.items()}


def table_number(made: list[Made], file: DataFile) -> int:
    return next(each.number for each in made if each.file.file_path == file.file_path)


@pytest.mark.parametrize("comparisons", ["of every pair", "few"])
@given(files())
@settings(max_examples=40, deadline=None)
def test_deletes_are_assigned_as_a_comparison_of_every_pair_says(comparisons: str, made: list[Made]) -> None:
    data = [each for each in made if each.file.is_data]
    deletes = [each for each in made if not each.file.is_data]
    reached = {
        each.file.file_path: {other.file.file_path for other in deletes if reaches(each, other)} for each in data
    }
    needed = {
        each.file.file_path: {
            other.file.file_path for other in deletes if reaches(each, other) and may_share_a_key(each, other)
        }
        for each in data
    }
    with pytest.MonkeyPatch.context() as patch:
        if comparisons == "few":
            patch.setattr(delete_keys, "_FEW", 3)
            patch.setattr(delete_keys, "_FOR_EACH_FILE", 0)
            patch.setattr(delete_keys, "_AT_ONCE", 2)
        by_tasks, by_frames = assigned(made)
    assert by_tasks == by_frames
    for path, found in by_tasks.items():
        assert len(found) == len(set(found)), path
        assert needed[path] <= set(found) <= reached[path], path
    if comparisons == "of every pair":
        assert {path: set(found) for path, found in by_tasks.items()} == needed
