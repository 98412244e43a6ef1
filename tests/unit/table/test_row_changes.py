from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from hms_iceberg.errors import (
    CommitConflictError,
    ConfigurationError,
    ExpressionParseError,
    InvalidInputError,
    InvalidPartitionSpecError,
    NullValueError,
    SchemaMismatchError,
    TypeMismatchError,
    UnknownColumnError,
    UnsupportedError,
)
from hms_iceberg.scan import tasks
from hms_iceberg.spec.data_types import DoubleType, FixedType, IntegerType, LongType, NestedField, TimestampType
from hms_iceberg.spec.manifests.manifest_values import DataFileContent
from hms_iceberg.spec.metadata_columns import LAST_UPDATED_SEQUENCE_NUMBER, ROW_ID
from hms_iceberg.spec.partitions.partition_specs import UNPARTITIONED, PartitionField, PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.transforms.partition_transforms import BucketTransform, IdentityTransform
from hms_iceberg.table.table import Table
from tests.support.row_tables import (
    MODES,
    arrow,
    check,
    create,
    data_files_on_disk,
    ids,
    live,
    numbered,
    other_writer,
    row,
    rows_of,
)
from tests.support.tables import BY_CITY

BY_BUCKET = PartitionSpec(PartitionField(1, 1000, BucketTransform(4), "id_bucket"))
WAYS = [(1, MODES[0]), (2, MODES[0]), (2, MODES[1]), (3, MODES[0]), (3, MODES[1])]


# ------------------------------------------------------------------------------------------------ deletes


@pytest.mark.parametrize(("version", "mode"), WAYS)
@pytest.mark.parametrize("spec", [UNPARTITIONED, BY_CITY], ids=["unpartitioned", "by_city"])
def test_a_delete_leaves_the_rows_that_do_not_match(
    tmp_path: Path, version: int, mode: str, spec: PartitionSpec
) -> None:
    table = create(tmp_path, version, mode, spec=spec)
    table.append(numbered(0, 10))
    table.append(numbered(10, 20))
    table.delete("id between 3 and 5 or id = 15")
    table.delete("id = 6")
    assert rows_of(table) == [row(key) for key in range(20) if key not in (3, 4, 5, 6, 15)]
    check(table)


def test_whole_files_are_deleted_without_being_read(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.append(numbered(0, 10))
    table.append(numbered(10, 20))
    for location in data_files_on_disk(table):
        Path(location).unlink()  # so that a read would fail
    table.delete("id >= 10")
    assert table.current_snapshot().operation == "delete"  # type: ignore[union-attr]
    assert [file.record_count for file in live(table)] == [10]


@pytest.mark.parametrize(
    ("where", "left"),
    [
        ("city = 'Oslo'", [1, 2]),
        ("city is null", [0, 1]),
        ("city is not null", [2]),
        ("city in ('Oslo', 'Rome') and id < 100", [2]),
        ("not (city = 'Oslo') and amount >= 0", [0, 2]),
    ],
)
def test_partitions_are_deleted_without_being_read(tmp_path: Path, where: str, left: list[int]) -> None:
    table = create(tmp_path, spec=BY_CITY)
    table.append(numbered(0, 3))
    for location in data_files_on_disk(table):
        Path(location).unlink()
    table.delete(where)
    bounds = [(file.lower_bounds or {})[1] for file in live(table)]
    assert sorted(int.from_bytes(each, "little") for each in bounds) == left


def test_a_delete_without_a_match_makes_no_snapshot(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.append(numbered(0, 10))
    table.delete("id > 100")  # by metrics
    table.delete("amount = 3")  # only the rows tell
    assert len(table.snapshots()) == 1
    check(table)


def test_a_delete_without_a_filter_deletes_everything(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.append(numbered(0, 10))
    table.delete()
    assert rows_of(table) == []
    assert live(table) == []


def test_merge_on_read_in_v2_keeps_one_delete_file_for_each_data_file(tmp_path: Path) -> None:
    table = create(tmp_path, 2, MODES[1])
    table.append(numbered(0, 10))
    table.append(numbered(10, 20))
    table.delete("id in (1, 11)")
    table.delete("id in (2, 12)")
    deletes = [file for file in live(table) if not file.is_data]
    assert sorted(file.record_count for file in deletes) == [2, 2]
    assert {file.referenced_data_file for file in deletes} == {f.file_path for f in live(table) if f.is_data}
    assert ids(table) == [key for key in range(20) if key not in (1, 2, 11, 12)]


@pytest.mark.parametrize("version", [2, 3])
def test_a_delete_beside_other_deletes_looks_only_at_the_files_that_it_changes(
    tmp_path: Path, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = create(tmp_path, version, MODES[1])
    for number in range(30):
        table.append(numbered(number * 10, number * 10 + 10))
    table.delete("id = 105")
    looked_at: set[str] = set()
    content_files = tasks.content_files

    def counting(frame: pl.DataFrame, partitions: Any) -> Any:
        found = content_files(frame, partitions)
        looked_at.update(each.file_path for each in found if each.content is DataFileContent.DATA)
        return found

    monkeypatch.setattr(tasks, "content_files", counting)
    table.delete("id = 107 or id = 203")
    assert len(looked_at) == 2
    with table.new_row_delta() as delta:
        delta.delete_positions({max(looked_at): [1]})
    assert len(looked_at) == 2
    left = set(range(300)) - {105, 107, 203}
    assert set(ids(table)) in (left - {101}, left - {201}) and len(ids(table)) == 296
    assert sorted(task.file.record_count for task in table.scan().plan_files()) == [10] * 30


def test_deletes_of_partition_granularity_share_a_file(tmp_path: Path) -> None:
    table = create(tmp_path, 2, MODES[1], **{"write.delete.granularity": "partition"})
    table.append(numbered(0, 10))
    table.append(numbered(10, 20))
    table.delete("id in (1, 11)")
    (deletes,) = [file for file in live(table) if not file.is_data]
    assert deletes.record_count == 2
    assert deletes.referenced_data_file is None
    assert ids(table) == [key for key in range(20) if key not in (1, 11)]


def test_deletion_vectors_are_merged_with_those_that_exist(tmp_path: Path) -> None:
    table = create(tmp_path, 3, MODES[1])
    table.append(numbered(0, 10))
    table.delete("id = 1")
    table.delete("id = 7")
    (vector,) = [file for file in live(table) if not file.is_data]
    assert vector.is_deletion_vector
    assert vector.record_count == 2
    assert ids(table) == [0, 2, 3, 4, 5, 6, 8, 9]


@pytest.mark.parametrize("granularity", ["file", "partition"])
def test_the_first_deletion_vector_of_an_upgraded_table_takes_position_deletes_in(
    tmp_path: Path, granularity: str
) -> None:
    table = create(tmp_path, 2, MODES[1], **{"write.delete.granularity": granularity})
    table.append(numbered(0, 10))
    table.append(numbered(10, 20))
    table.delete("id in (1, 11)")
    table.set_properties({"format-version": "3"})
    table.delete("id = 2")
    deletes = [file for file in live(table) if not file.is_data]
    assert [file.record_count for file in deletes if file.is_deletion_vector] == [2]
    assert len([file for file in deletes if not file.is_deletion_vector]) == 1
    assert ids(table) == [key for key in range(20) if key not in (1, 2, 11)]


@pytest.mark.parametrize("version", [2, 3])
def test_a_file_whose_last_rows_are_deleted_goes_as_a_whole(tmp_path: Path, version: int) -> None:
    table = create(tmp_path, version, MODES[1])
    table.append(numbered(0, 4))
    table.append(numbered(4, 8))
    table.delete("amount in (0, 2)")
    table.delete("amount in (4, 6)")
    assert [file.record_count for file in live(table) if file.is_data] == [4]
    assert ids(table) == [4, 5, 6, 7]


@pytest.mark.parametrize("mode", MODES)
def test_rewriting_a_file_applies_equality_deletes_that_the_filter_does_not_touch(tmp_path: Path, mode: str) -> None:
    table = create(tmp_path, 2, mode)
    table.append(numbered(0, 10))
    table.new_row_delta().delete_equal(numbered(3, 5), ["id"]).commit()
    table.delete("id = 9")
    table.update({"amount": 0}, "id = 8")
    assert ids(table) == [0, 1, 2, 5, 6, 7, 8]


def test_v1_has_no_merge_on_read(tmp_path: Path) -> None:
    table = create(tmp_path, 1, MODES[1])
    table.append(numbered(0, 2))
    with pytest.raises(UnsupportedError, match="format version 1"):
        table.delete("id = 1")


@pytest.mark.parametrize(
    ("row_filter", "error"),
    [
        ("id = ", ExpressionParseError),
        ("idd = 1", UnknownColumnError),
        ("id = 'x'", TypeMismatchError),
        (7, TypeMismatchError),
    ],
)
def test_a_filter_that_does_not_fit_is_refused_before_anything_is_written(
    tmp_path: Path, row_filter: Any, error: type[Exception]
) -> None:
    table = create(tmp_path)
    table.append(numbered(0, 2))
    before = data_files_on_disk(table)
    for attempt in (
        lambda: table.delete(row_filter),
        lambda: table.overwrite(numbered(0, 1), row_filter),
        lambda: table.update({"amount": 1}, row_filter),
    ):
        with pytest.raises(error):
            attempt()
    assert data_files_on_disk(table) == before
    assert len(table.snapshots()) == 1


def test_modes_and_levels_that_do_not_exist_are_refused(tmp_path: Path) -> None:
    table = create(tmp_path, 2, "sometimes")
    table.append(numbered(0, 2))
    with pytest.raises(ConfigurationError, match=r"write\.delete\.mode"):
        table.delete("id = 1")
    table = create(tmp_path / "other", 2, **{"write.update.isolation-level": "some"})
    table.append(numbered(0, 2))
    with pytest.raises(ConfigurationError, match=r"write\.update\.isolation-level"):
        table.update({"amount": 1})


def test_a_filter_may_ignore_case(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.append(numbered(0, 4))
    table.delete("ID = 1 and AMOUNT = 2", case_sensitive=False)
    table.update({"AMOUNT": 1}, "ID = 2", case_sensitive=False)
    assert rows_of(table) == [row(0), row(2, amount=1), row(3)]


def test_changes_of_a_branch_leave_main_alone(tmp_path: Path) -> None:
    table = create(tmp_path, 2, MODES[1])
    table.append(numbered(0, 4))
    table.manage_snapshots().create_branch(table.metadata.current_snapshot_id, "trial").commit()
    table.delete("id = 0", branch="trial")
    table.update({"amount": 9}, "id = 1", branch="trial")
    table.upsert(arrow([row(2, amount=8), row(7)]), ["id"], branch="trial")
    assert ids(table) == [0, 1, 2, 3]
    assert rows_of(table, branch="trial") == [row(1, amount=9), row(2, amount=8), row(3), row(7)]


def test_several_changes_of_a_transaction_are_one_version(tmp_path: Path) -> None:
    table = create(tmp_path, 3, MODES[1])
    with table.transaction() as transaction:
        transaction.append(numbered(0, 6))
        transaction.delete("id = 1")
        transaction.update({"amount": -1}, "id = 2")
        assert transaction.upsert(arrow([row(3, amount=-3), row(9)]), ["id"]).rows_inserted == 1
    assert rows_of(table) == [row(0), row(2, amount=-1), row(3, amount=-3), row(4), row(5), row(9)]
    assert len(table.metadata.metadata_log) == 1
    check(table)


def test_a_transaction_that_fails_leaves_no_files(tmp_path: Path) -> None:
    table = create(tmp_path, 2, MODES[1])
    table.append(numbered(0, 6))
    before = data_files_on_disk(table)
    with pytest.raises(InvalidInputError), table.transaction() as transaction:  # noqa: PT012
        transaction.delete("id = 1")
        transaction.update({"amount": 1}, "id = 2")
        transaction.update({}, "id = 3")
    assert data_files_on_disk(table) == before


# ------------------------------------------------------------------------------------------------ updates


@pytest.mark.parametrize(("version", "mode"), WAYS)
def test_an_update_gives_matching_rows_new_values(tmp_path: Path, version: int, mode: str) -> None:
    table = create(tmp_path, version, mode, spec=BY_CITY)
    table.append(numbered(0, 10))
    result = table.update({"amount": pc.add(pc.field("amount"), 1), "city": "Bern"}, "id in (2, 3)")
    assert result.rows_updated == 2
    expected = [row(key) for key in range(10)]
    for key in (2, 3):
        expected[key] = row(key, city="Bern", amount=key * 2 + 1)
    assert rows_of(table) == expected
    check(table)


@pytest.mark.parametrize(
    "value",
    [
        7,
        pa.scalar(7, pa.int32()),
        pc.add(pc.field("id").cast("int32"), 4),
        (pl.col("id") + 4).cast(pl.Int32),
        pl.lit(7, pl.Int32),
        lambda rows: pc.cast(pc.add(rows.column("id"), 4), pa.int32()),
        pc.scalar(7).cast("int32"),
    ],
    ids=["constant", "scalar", "arrow", "polars", "polars literal", "function", "arrow literal"],
)
def test_values_may_be_constants_and_expressions(tmp_path: Path, value: Any) -> None:
    table = create(tmp_path)
    table.append(numbered(0, 6))
    table.update({"amount": value}, "id = 3")
    assert rows_of(table)[3] == row(3, amount=7)


def test_expressions_see_the_rows_as_they_were(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.append(arrow([row(1, amount=5)]))
    table.update({"id": pc.field("amount").cast("int64"), "amount": pc.field("id").cast("int32")})
    assert rows_of(table) == [row(5, city=row(1)["city"], amount=1)]


@pytest.mark.parametrize(
    ("assignments", "error"),
    [
        ({}, InvalidInputError),
        ({"amountt": 1}, UnknownColumnError),
        ({"amount": "many"}, TypeMismatchError),
        ({"amount": pc.field("city")}, TypeMismatchError),
        ({"id": None}, NullValueError),
        ({"amount": pc.field("nothing")}, InvalidInputError),
        ({"amount": lambda rows: [1]}, InvalidInputError),
        ({"amount": lambda rows: pa.array([1, 2, 3], pa.int32())}, InvalidInputError),
    ],
)
def test_assignments_that_do_not_fit_are_refused_before_anything_is_read(
    tmp_path: Path, assignments: dict[str, Any], error: type[Exception]
) -> None:
    table = create(tmp_path)
    table.append(numbered(0, 6))
    for location in data_files_on_disk(table):
        Path(location).unlink()
    with pytest.raises(error):
        table.update(assignments, "amount = 2")
    assert data_files_on_disk(table) == set()


def test_a_computed_null_in_a_required_column_is_refused_and_nothing_stays(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.append(arrow([row(1, amount=None), row(2)]))
    before = data_files_on_disk(table)
    with pytest.raises(NullValueError, match="'id'"):
        table.update({"id": pc.field("amount").cast("int64")}, "id > 0")
    assert data_files_on_disk(table) == before


# -------------------------------------------------------------------------------------------- overwrites


@pytest.mark.parametrize(("version", "mode"), WAYS)
def test_an_overwrite_replaces_the_rows_that_match(tmp_path: Path, version: int, mode: str) -> None:
    table = create(tmp_path, version, mode)
    table.append(numbered(0, 10))
    table.append(numbered(10, 20))
    table.overwrite(numbered(100, 102), "id between 8 and 11")
    assert ids(table) == [*range(8), *range(12, 20), 100, 101]
    assert len(table.snapshots()) == 3
    table.overwrite(numbered(0, 1))
    assert ids(table) == [0]
    check(table)


def test_rows_that_do_not_fit_are_refused_before_an_overwrite_writes(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.append(numbered(0, 10))
    before = data_files_on_disk(table)
    with pytest.raises(SchemaMismatchError):
        table.overwrite(pa.table({"idd": [1]}), "id = 3")
    assert data_files_on_disk(table) == before


def test_partitions_with_new_rows_are_replaced(tmp_path: Path) -> None:
    table = create(tmp_path, spec=BY_CITY)
    table.append(numbered(0, 9))
    table.dynamic_partition_overwrite(arrow([row(100, city="Oslo"), row(101, city=None)]))
    assert ids(table) == [1, 4, 7, 100, 101]
    check(table)


def test_nan_is_one_partition_and_the_zeros_are_two(tmp_path: Path) -> None:
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "score", DoubleType()))
    table = create(tmp_path, schema=schema, spec=PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "score")))

    def rows(key: int, *scores: float) -> pa.Table:
        return pa.table({"id": range(key, key + len(scores)), "score": scores})

    table.append(rows(0, float("nan"), 0.0, -0.0))
    table.dynamic_partition_overwrite(rows(10, float("nan"), -0.0))
    assert ids(table) == [1, 10, 11]
    assert table.current_snapshot().summary["changed-partition-count"] == "2"  # type: ignore[union-attr]


def test_an_unpartitioned_table_has_no_partitions_to_replace(tmp_path: Path) -> None:
    table = create(tmp_path)
    with pytest.raises(InvalidInputError, match="not partitioned"):
        table.dynamic_partition_overwrite(numbered(0, 1))
    assert data_files_on_disk(table) == set()


# ---------------------------------------------------------------------------------------------- lineage


@pytest.mark.parametrize("mode", MODES)
def test_rows_keep_their_id_and_unchanged_ones_their_sequence_number(tmp_path: Path, mode: str) -> None:
    table = create(tmp_path, 3, mode)
    table.append(numbered(0, 10))
    table.delete("id = 3")
    table.update({"amount": -1}, "id = 5")
    table.upsert(arrow([row(6, amount=-2), row(7), row(10)]), ["id"])
    found = rows_of(table, "id", "_row_id", "_last_updated_sequence_number")
    lineage = {each["id"]: (each["_row_id"], each["_last_updated_sequence_number"]) for each in found}
    assert lineage.pop(10)[1] == 4
    assert lineage == {key: (key, {5: 3, 6: 4}.get(key, 1)) for key in range(10) if key != 3}


@pytest.mark.parametrize("kind", ["parquet", "orc", "avro"])
def test_files_of_rows_that_keep_their_lineage_have_metrics_of_it_as_in_java(tmp_path: Path, kind: str) -> None:
    table = create(tmp_path, 3, MODES[0], **{"write.format.default": kind})
    table.append(numbered(0, 10))
    table.update({"amount": -1}, "id = 5")
    (file,) = live(table)
    row_id, sequence_number = ROW_ID.field_id, LAST_UPDATED_SEQUENCE_NUMBER.field_id
    assert [file.value_counts[each] for each in (row_id, sequence_number)] == [10, 10]
    assert [file.null_value_counts[each] for each in (row_id, sequence_number)] == [0, 1]
    bounds = (file.lower_bounds[row_id], file.upper_bounds[row_id])
    assert [int.from_bytes(each, "little") for each in bounds] == [0, 9]


# ------------------------------------------------------------------------------------------ random histories


@pytest.mark.parametrize(("version", "mode"), WAYS)
@pytest.mark.parametrize("spec", [UNPARTITIONED, BY_CITY, BY_BUCKET], ids=["unpartitioned", "by_city", "by_bucket"])
def test_random_histories_leave_the_rows_of_a_model(
    tmp_path: Path, version: int, mode: str, spec: PartitionSpec
) -> None:
    run_history(create(tmp_path, version, mode, spec=spec), random.Random(f"{version} {mode} {len(spec.fields)}"))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("file_format", ["orc", "avro"])
def test_random_histories_in_other_formats(tmp_path: Path, file_format: str, mode: str) -> None:
    table = create(tmp_path, 3, mode, **{"write.format.default": file_format})
    run_history(table, random.Random(f"{file_format} {mode}"))
    assert {file.file_format for file in live(table)} <= {file_format.upper(), "PUFFIN"}


def run_history(table: Table, chance: random.Random) -> None:
    """Changes a table at random, and compares it with a model after each step."""
    model: dict[int, dict[str, Any]] = {}
    table.append(numbered(0, 30))
    model.update({key: row(key) for key in range(30)})
    for _ in range(8):
        low = chance.randrange(40)
        high = low + chance.randrange(15)
        inside = [key for key in model if low <= key <= high]
        where = f"id between {low} and {high}"
        operation = chance.choice(["delete", "update", "upsert", "overwrite", "equality"])
        if operation == "delete":
            table.delete(where)
            for key in inside:
                del model[key]
        elif operation == "update":
            assert table.update({"amount": low, "city": "Bern"}, where).rows_updated == len(inside)
            model.update({key: row(key, amount=low, city="Bern") for key in inside})
        elif operation == "upsert":
            given = {key: row(key, amount=chance.choice([key * 2, -1])) for key in range(low, high)}
            changed = sum(key in model and model[key] != each for key, each in given.items())
            result = table.upsert(arrow(given.values()), ["id"])
            assert (result.rows_updated, result.rows_inserted) == (changed, len(given.keys() - model.keys()))
            model.update(given)
        elif operation == "overwrite":
            table.overwrite(arrow([row(low, amount=-5)]), where)
            for key in inside:
                del model[key]
            model[low] = row(low, amount=-5)
        elif table.format_version > 1 and inside:
            _delete_equal(table, [model.pop(key) for key in inside])
        assert rows_of(table) == [model[key] for key in sorted(model)], operation
    check(table)


def _delete_equal(table: Table, rows: list[dict[str, Any]]) -> None:
    with table.new_row_delta() as delta:
        delta.delete_equal(arrow(rows), ["id"])


# ------------------------------------------------------------------------------------------------ conflicts


def racing(table: Table) -> Table:
    """Another writer, whose version stays the one of now."""
    return other_writer(table)


@pytest.mark.parametrize("mode", MODES)
def test_a_concurrent_append_of_matching_rows_is_refused_under_serializable_isolation(
    tmp_path: Path, mode: str
) -> None:
    table = create(tmp_path, 2, mode)
    table.append(numbered(0, 10))
    other = racing(table)
    table.append(arrow([row(5, amount=10)]))
    with pytest.raises(CommitConflictError, match="added data"):
        other.delete("amount = 10")
    with pytest.raises(CommitConflictError, match="added data"):
        racing_update(other)
    check(table)


def racing_update(table: Table) -> None:
    table.update({"city": "Bern"}, "amount = 10")


@pytest.mark.parametrize("mode", MODES)
def test_snapshot_isolation_lets_concurrent_appends_be(tmp_path: Path, mode: str) -> None:
    table = create(tmp_path, 2, mode, **{"write.delete.isolation-level": "snapshot"})
    table.append(numbered(0, 10))
    other = racing(table)
    table.append(arrow([row(5, amount=10)]))
    other.delete("amount = 10")
    assert ids(other) == list(range(10))


@pytest.mark.parametrize("mode", MODES)
def test_a_concurrent_append_of_other_rows_does_not_matter(tmp_path: Path, mode: str) -> None:
    table = create(tmp_path, 2, mode)
    table.append(numbered(0, 10))
    other = racing(table)
    table.append(numbered(10, 20))
    other.delete("amount = 10")
    other = racing(table)
    table.refresh().append(numbered(20, 30))
    assert other.upsert(arrow([row(3, amount=-3)]), ["id"]).rows_updated == 1
    assert ids(other) == [key for key in range(30) if key != 5]


@pytest.mark.parametrize("mode", MODES)
def test_two_upserts_of_the_same_new_key_do_not_both_insert_it(tmp_path: Path, mode: str) -> None:
    table = create(tmp_path, 2, mode)
    table.append(numbered(0, 10))
    other = racing(table)
    table.upsert(arrow([row(50)]), ["id"])
    with pytest.raises(CommitConflictError):
        other.upsert(arrow([row(50, amount=1)]), ["id"])
    assert ids(table) == [*range(10), 50]


@pytest.mark.parametrize("mode", MODES)
def test_concurrent_changes_of_one_file_are_refused(tmp_path: Path, mode: str) -> None:
    table = create(tmp_path, 3, mode)
    table.append(numbered(0, 10))
    other = racing(table)
    table.delete("amount = 2")
    before = data_files_on_disk(table)
    with pytest.raises(CommitConflictError):
        other.delete("amount = 4")
    assert data_files_on_disk(table) == before
    assert ids(table) == [0, *range(2, 10)]


def test_a_delete_of_whole_files_replays_on_what_a_concurrent_append_added(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.append(numbered(0, 10))
    other = racing(table)
    table.append(numbered(10, 20))
    other.delete("id >= 0")
    assert ids(other) == []


def test_write_skew_happens_under_snapshot_isolation_and_is_refused_under_serializable(tmp_path: Path) -> None:
    """Two writers each delete what stands for the other's rows: serially, one of them would have found nothing."""

    def race(level: str) -> Table:
        table = create(tmp_path / level, 2, MODES[1], **{"write.update.isolation-level": level})
        table.append(arrow([row(1, city="Oslo")]))
        table.append(arrow([row(2, city="Rome")]))
        other = racing(table)
        # Each moves the rows of one city to the other city.
        table.update({"city": "Rome"}, "city = 'Oslo'")
        other.update({"city": "Oslo"}, "city = 'Rome'")
        return other

    swapped = race("snapshot")
    assert [each["city"] for each in rows_of(swapped)] == ["Rome", "Oslo"]
    with pytest.raises(CommitConflictError):
        race("serializable")


def test_rows_that_go_missing_under_a_change_are_a_conflict(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.append(numbered(0, 10))
    other = racing(table)
    table.delete("id >= 0")
    with pytest.raises(CommitConflictError, match="removed"):
        other.update({"amount": 1}, "amount = 4")


def test_all_columns_of_the_deletes_are_position_deletes(tmp_path: Path) -> None:
    table = create(tmp_path, 2, MODES[1])
    table.append(numbered(0, 10))
    table.delete("id = 1")
    (deletes,) = [file for file in live(table) if not file.is_data]
    assert deletes.content is DataFileContent.POSITION_DELETES
    found = pq.read_table(deletes.file_path)
    assert found.column_names == ["file_path", "pos"]
    assert [each.metadata[b"PARQUET:field_id"] for each in found.schema] == [b"2147483546", b"2147483545"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("where", "left"),
    [
        ("bonus = 5", [6, 7]),
        ("bonus != 5", [0, 1, 2, 7]),
        ("bonus is null", [0, 1, 2, 6]),
        ("bonus < 9", [7]),
    ],
)
def test_files_without_a_column_hold_its_default(tmp_path: Path, mode: str, where: str, left: list[int]) -> None:
    table = create(tmp_path, 3, mode)
    table.append(numbered(0, 3))
    with table.update_schema() as update:
        update.add_column("bonus", IntegerType(), default_value=5)
    table.append(numbered(6, 8).append_column("bonus", pa.array([1, None], pa.int32())))
    table.delete(where)
    assert ids(table) == left
    table.update({"amount": 0})
    assert {each["id"]: each["bonus"] for each in rows_of(table)} == {key: {6: 1, 7: None}.get(key, 5) for key in left}


@pytest.mark.parametrize(("version", "mode"), WAYS)
def test_files_of_a_spec_whose_column_is_gone_are_changed(tmp_path: Path, version: int, mode: str) -> None:
    table = create(tmp_path, version, mode, spec=BY_CITY)
    table.append(numbered(0, 9))
    with table.update_spec() as update:
        update.remove_field("city")
    table.append(numbered(9, 12))
    if version > 1:  # v1 keeps the field as void
        with table.update_schema() as change:
            change.delete_column("city")
    before = {file.file_path: file.partition for file in live(table)}
    table.delete("amount in (2, 20)")
    table.update({"amount": -1}, "id = 3")
    assert ids(table) == [key for key in range(12) if key not in (1, 10)]
    kept = [file for file in live(table) if file.file_path in before]
    assert kept and all(file.partition == before[file.file_path] for file in kept)
    check(table)


def test_a_spec_with_days_and_hours_of_a_column_comes_about_and_is_evolved(tmp_path: Path) -> None:
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "at", TimestampType()))
    table = create(tmp_path, schema=schema)
    with table.update_spec() as spec:
        spec.add_field("at", "hour")
    with table.update_spec() as spec:
        spec.add_field("at", "day").add_field("id", "bucket[2]")
    table.append(pa.table({"id": [0, 1], "at": pa.array([0, 10**12], pa.timestamp("us"))}))
    table.update_schema().add_column("note", "string").commit()
    with table.update_spec() as spec:
        spec.remove_field("id_bucket_2").rename_field("at_day", "day").add_field("id", "truncate[10]")
    assert [field.name for field in table.spec().fields] == ["at_hour", "day", "id_trunc_10"]
    table.delete("at < '1970-01-02'")
    assert ids(table) == [1]
    with table.update_spec() as spec:
        spec.remove_field("at_hour").remove_field("day")
    with pytest.raises(InvalidPartitionSpecError, match="redundant"), table.update_spec() as spec:
        spec.add_field("at", "month").add_field("at", "year")


def test_a_v1_table_whose_manifests_polars_cannot_read_is_changed(tmp_path: Path) -> None:
    """Two partition fields of one fixed type: the second refers to the type by its name."""
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "code", FixedType(3)))
    table = create(tmp_path, 1, schema=schema)
    for name in ("first", "second"):
        with table.update_spec() as spec:
            spec.add_field("code", "identity", name)
        table.append(pa.table({"id": [0, 1], "code": pa.array([b"abc", None], pa.binary(3))}))
        with table.update_spec() as spec:
            spec.remove_field(name)
    table.update({"id": 7}, "id = 1")
    assert ids(table) == [0, 0, 7, 7]
