from __future__ import annotations

import math
import struct
from typing import Any

import pytest

from hms_iceberg.errors import CorruptManifestError
from hms_iceberg.spec.data_types import DoubleType, LongType, NestedField, StringType
from hms_iceberg.spec.manifests.manifest_values import DELETE_FILE_PATH_ID, DataFile, DataFileContent
from hms_iceberg.spec.partitions.partition_specs import UNPARTITIONED, PartitionField, PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.transforms.partition_transforms import IdentityTransform
from hms_iceberg.spec.values.single_values import to_bytes
from tests.support.snapshots import LOCATION, ManifestTable

SCHEMA = Schema(
    NestedField(1, "id", LongType()), NestedField(2, "city", StringType()), NestedField(3, "f", DoubleType())
)
BY_CITY = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "city"))
BY_F = PartitionSpec(PartitionField(3, 1000, IdentityTransform(), "f"))
NOWHERE = PartitionSpec(spec_id=1)


def path(name: str) -> str:
    return f"{LOCATION}/data/{name}"


def content_file(name: str, content: DataFileContent, **more: Any) -> DataFile:
    base = {"file_path": path(name), "file_format": "PARQUET", "record_count": 10, "file_size_in_bytes": 100}
    return DataFile(**{**base, "content": content, **more})


def data(name: str, ids: tuple[int, int] | None = None, nulls: int | None = None, **more: Any) -> DataFile:
    return content_file(name, DataFileContent.DATA, **id_metrics(ids, nulls), **more)


def id_metrics(ids: tuple[int, int] | None, nulls: int | None) -> dict[str, Any]:
    metrics: dict[str, Any] = {}
    if nulls is not None:
        metrics |= {"value_counts": {1: 10}, "null_value_counts": {1: nulls}}
    if ids is not None:
        low, high = (to_bytes(LongType(), each) for each in ids)
        metrics |= {"lower_bounds": {1: low}, "upper_bounds": {1: high}}
    return metrics


def positions(name: str, about: str | None = None, bounds: tuple[str, str] | None = None, **more: Any) -> DataFile:
    if about is not None:
        more["referenced_data_file"] = path(about)
    if bounds is not None:
        low, high = (path(each).encode() for each in bounds)
        more |= {"lower_bounds": {DELETE_FILE_PATH_ID: low}, "upper_bounds": {DELETE_FILE_PATH_ID: high}}
    return content_file(name, DataFileContent.POSITION_DELETES, **more)


def equality(
    name: str, ids: tuple[int, int] | None = None, nulls: int | None = None, keys: tuple[int, ...] = (1,), **more: Any
) -> DataFile:
    metrics = id_metrics(ids, nulls)
    return content_file(name, DataFileContent.EQUALITY_DELETES, **{"equality_ids": keys, **metrics, **more})


def vector(about: str, offset: int = 4, **more: Any) -> DataFile:
    more = {"content_offset": offset, "content_size_in_bytes": 40, "referenced_data_file": path(about), **more}
    return content_file("d.puffin", DataFileContent.POSITION_DELETES, file_format="PUFFIN", **more)


def test_position_deletes_of_a_partition_apply_to_its_files_that_are_not_newer() -> None:
    table = ManifestTable(SCHEMA, BY_CITY)
    table.commit(data("old-x", partition=("x",)), data("old-y", partition=("y",)))
    table.commit(data("same-x", partition=("x",)), positions("d", partition=("x",)))
    table.commit(data("new-x", partition=("x",)))
    assert table.assigned() == {"old-x": ["d"], "same-x": ["d"], "old-y": [], "new-x": []}


def test_equality_deletes_apply_to_strictly_older_files_of_their_partition() -> None:
    table = ManifestTable(SCHEMA, BY_CITY)
    table.commit(data("old-x", partition=("x",)), data("old-null", partition=(None,)))
    table.commit(data("same-x", partition=("x",)), equality("d", partition=("x",)), equality("n", partition=(None,)))
    assert table.assigned() == {"old-x": ["d"], "same-x": [], "old-null": ["n"]}


def test_equality_deletes_of_an_unpartitioned_spec_apply_to_all_partitions() -> None:
    table = ManifestTable(SCHEMA, BY_CITY, NOWHERE)
    table.commit(data("x", partition=("x",)), data("none", spec_id=1))
    table.commit(equality("everywhere", spec_id=1), equality("in-x", partition=("x",)))
    assert table.assigned() == {"x": ["everywhere", "in-x"], "none": ["everywhere"]}


def test_position_deletes_of_an_unpartitioned_spec_apply_to_files_of_that_spec_only() -> None:
    table = ManifestTable(SCHEMA, BY_CITY, NOWHERE)
    table.commit(data("x", partition=("x",)), data("none", spec_id=1), positions("d", spec_id=1))
    assert table.assigned() == {"x": [], "none": ["d"]}


def test_deletes_of_equal_partitions_under_different_specs_stay_apart() -> None:
    again = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "city"), spec_id=2)
    table = ManifestTable(SCHEMA, BY_CITY, again)
    table.commit(data("old", partition=("x",)), data("new", spec_id=2, partition=("x",)))
    table.commit(equality("d", spec_id=2, partition=("x",)))
    assert table.assigned() == {"old": [], "new": ["d"]}


def test_a_position_delete_file_that_names_its_data_file_applies_to_that_one() -> None:
    table = ManifestTable(SCHEMA)
    table.commit(data("a"), data("b"), positions("d", about="a"))
    assert table.assigned() == {"a": ["d"], "b": []}
    (deletes,) = next(task for task in table.plan().tasks() if task.delete_files).delete_files
    assert deletes.referenced_data_file == path("a")


def test_a_position_delete_file_whose_path_bounds_are_equal_applies_to_that_file() -> None:
    table = ManifestTable(SCHEMA)
    table.commit(data("a"), data("b"), positions("d", bounds=("b", "b")), positions("e", bounds=("a", "b")))
    assert table.assigned() == {"a": ["e"], "b": ["d", "e"]}


def test_a_newer_file_is_not_touched_by_older_position_deletes_that_name_it() -> None:
    table = ManifestTable(SCHEMA)
    table.commit(positions("d", about="a"))
    table.commit(data("a"))
    assert table.assigned() == {"a": []}


def test_a_deletion_vector_replaces_the_position_deletes_of_its_file_and_not_equality_deletes() -> None:
    table = ManifestTable(SCHEMA, format_version=3)
    table.commit(data("a"), data("b"))
    table.commit(positions("all"), positions("of-a", about="a"), equality("e"))
    table.commit(vector("a", 4), vector("gone", 50))
    assert table.assigned() == {"a": ["d.puffin@4", "e"], "b": ["all", "e"]}
    metrics = table.plan().metrics
    assert (metrics.delete_files_total, metrics.delete_files_kept) == (5, 3)


def test_two_deletion_vectors_for_a_file_are_corrupt() -> None:
    table = ManifestTable(SCHEMA, format_version=3)
    table.commit(data("a"))
    table.commit(vector("a", 4), vector("a", 50))
    with pytest.raises(CorruptManifestError, match=r"/a: it has 2 deletion vectors"):
        table.plan()


def test_a_deletion_vector_may_come_with_its_file() -> None:
    table = ManifestTable(SCHEMA, format_version=3)
    table.commit(data("a"), data("b"), vector("a"))
    assert table.assigned() == {"a": ["d.puffin@4"], "b": []}


def test_a_deletion_vector_older_than_its_file_is_corrupt() -> None:
    table = ManifestTable(SCHEMA, format_version=3)
    table.commit(vector("a"))
    table.commit(data("a"))
    with pytest.raises(CorruptManifestError, match=r"/a \(sequence number 2, spec 0\).* sequence number 1"):
        table.plan()


@pytest.mark.parametrize(
    ("of_file", "of_delete", "applies"),
    [
        (((0, 9), 0), ((5, 20), 0), True),
        (((0, 9), 0), ((10, 20), 0), False),
        (((0, 9), 0), ((-5, -1), 0), False),
        (((0, 9), 2), ((10, 20), 1), True),  # null is a key of both
        (((0, 9), 0), ((10, 20), 1), False),
        ((None, 10), ((10, 20), 0), False),  # only nulls in the file, none in the deletes
        (((0, 9), 0), (None, 10), False),  # and the other way round
        ((None, None), ((10, 20), 0), True),
        (((0, 9), None), ((10, 20), None), True),  # both may hold null
    ],
)
def test_equality_deletes_are_left_out_where_no_key_can_be_in_both(of_file: Any, of_delete: Any, applies: bool) -> None:
    table = ManifestTable(SCHEMA)
    table.commit(data("a", *of_file))
    table.commit(equality("d", *of_delete))
    assert table.assigned() == {"a": ["d"] if applies else []}


def test_every_column_of_a_key_must_leave_a_match_possible() -> None:
    low, high = b"a", b"b"
    table = ManifestTable(SCHEMA)
    no_nulls = {"value_counts": {1: 10, 2: 10}, "null_value_counts": {1: 0, 2: 0}}
    bounds = {
        "lower_bounds": {1: to_bytes(LongType(), 0), 2: low},
        "upper_bounds": {1: to_bytes(LongType(), 9), 2: high},
    }
    table.commit(content_file("a", DataFileContent.DATA, **no_nulls, **bounds))
    other = {
        "lower_bounds": {1: to_bytes(LongType(), 5), 2: b"x"},
        "upper_bounds": {1: to_bytes(LongType(), 5), 2: b"y"},
    }
    table.commit(
        equality("id-only", keys=(1,), **no_nulls, **other), equality("both", keys=(1, 2), **no_nulls, **other)
    )
    assert table.assigned() == {"a": ["id-only"]}


def test_nan_keys_match_nan_although_no_bounds_hold_them() -> None:
    def metrics(value: float, nans: int | None) -> dict[str, Any]:
        bound = {3: struct.pack("<d", value)}
        counts = {"value_counts": {3: 10}, "null_value_counts": {3: 0}}
        return {**counts, "lower_bounds": bound, "upper_bounds": bound} | (
            {} if nans is None else {"nan_value_counts": {3: nans}}
        )

    table = ManifestTable(SCHEMA)
    table.commit(
        content_file("nan", DataFileContent.DATA, **metrics(1.0, 1)),
        content_file("numbers", DataFileContent.DATA, **metrics(1.0, 0)),
        content_file("unknown", DataFileContent.DATA, **metrics(1.0, None)),
    )
    table.commit(
        *(
            content_file(name, DataFileContent.EQUALITY_DELETES, equality_ids=(3,), **metrics(2.0, nans))
            for name, nans in (("some", 1), ("perhaps", None), ("none", 0))
        )
    )
    assert table.assigned() == {"nan": ["perhaps", "some"], "numbers": [], "unknown": ["perhaps", "some"]}


def test_keys_of_a_dropped_column_are_compared_by_its_old_type() -> None:
    table = ManifestTable(SCHEMA)
    table.commit(data("a", (0, 9), 0), data("b", (10, 19), 0))
    table.commit(equality("d", (12, 12), 0))
    table.with_schema(Schema(*SCHEMA.fields[1:], schema_id=1))
    assert table.assigned() == {"a": [], "b": ["d"]}


def test_a_key_that_no_schema_knows_may_match_anything() -> None:
    table = ManifestTable(SCHEMA)
    table.commit(data("a", (0, 9), 0))
    table.commit(equality("d", (12, 12), 0, keys=(77,)))
    assert table.assigned() == {"a": ["d"]}


def test_partitions_of_nan_are_equal_and_those_of_the_two_zeros_are_not() -> None:
    table = ManifestTable(SCHEMA, BY_F)
    table.commit(*(data(str(value), partition=(value,)) for value in (0.0, -0.0, math.nan)))
    table.commit(*(equality(f"d{value}", partition=(value,)) for value in (0.0, -0.0, math.nan)))
    assert table.assigned() == {"0.0": ["d0.0"], "-0.0": ["d-0.0"], "nan": ["dnan"]}


def test_deletes_of_partitions_that_are_not_read_are_left_out() -> None:
    table = ManifestTable(SCHEMA, BY_CITY)
    table.commit(data("x", partition=("x",)), data("y", partition=("y",)))
    table.commit(positions("dx", partition=("x",)), positions("dy", partition=("y",)), apart=True)
    plan = table.plan("city = 'x'")
    assert plan.delete_files["file_path"].to_list() == [path("dx")]
    assert (plan.metrics.delete_manifests_total, plan.metrics.delete_manifests_kept) == (2, 1)


def test_equality_deletes_whose_keys_the_filter_excludes_are_left_out() -> None:
    table = ManifestTable(SCHEMA)
    table.commit(data("a", (0, 9), 0))
    table.commit(equality("low", (0, 3), 0), equality("high", (7, 9), 0))
    assert table.assigned("id > 5") == {"a": ["high"]}
    assert table.assigned("id is null") == {}


def test_what_equality_deletes_hold_beside_their_keys_is_not_compared_with_the_filter() -> None:
    table = ManifestTable(SCHEMA)
    table.commit(data("a", (0, 9), 0))
    beside = {"lower_bounds": {2: b"x"}, "upper_bounds": {2: b"x"}, "value_counts": {2: 1}, "null_value_counts": {2: 0}}
    table.commit(content_file("d", DataFileContent.EQUALITY_DELETES, equality_ids=(1,), **beside))
    assert table.assigned("city = 'a'") == {"a": ["d"]}


def test_sequence_numbers_of_deletes_come_with_the_task() -> None:
    table = ManifestTable(SCHEMA)
    table.commit(data("a"))
    table.commit(equality("d"))
    table.commit(equality("e"))
    (task,) = table.plan().tasks()
    assert task.data_sequence_number == 1
    assert dict(zip((each.file_path for each in task.delete_files), task.delete_sequence_numbers, strict=True)) == {
        path("d"): 2,
        path("e"): 3,
    }


def test_many_global_deletes_over_many_files_are_assigned_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hms_iceberg.scan.delete_keys._AT_ONCE", 100)
    table = ManifestTable(SCHEMA)
    table.commit(*(data(f"{n:02}", (n, n), 0) for n in range(40)))
    table.commit(*(equality(f"d{n:02}", (n, n + 1), 0) for n in range(0, 40, 4)))
    expected = {f"{n:02}": [f"d{n // 4 * 4:02}"] if n % 4 < 2 else [] for n in range(40)}
    assert table.assigned() == expected


def test_a_table_without_partitions_names_its_spec_in_deletes() -> None:
    table = ManifestTable(SCHEMA, UNPARTITIONED)
    table.commit(data("a"))
    table.commit(positions("d"))
    assert table.plan().delete_files.select("spec_id", "content").rows() == [(0, 1)]


def test_path_bounds_that_are_no_text_name_no_file() -> None:
    table = ManifestTable(SCHEMA)
    bound = {DELETE_FILE_PATH_ID: b"\xff\xfe"}
    table.commit(data("a"), content_file("d", DataFileContent.POSITION_DELETES, lower_bounds=bound, upper_bounds=bound))
    assert table.assigned() == {"a": ["d"]}
