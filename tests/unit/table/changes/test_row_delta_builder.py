from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hms_iceberg.errors import (
    CommitConflictError,
    InvalidInputError,
    SchemaMismatchError,
    UnknownColumnError,
    UnsupportedError,
)
from hms_iceberg.spec.partitions.partition_specs import UNPARTITIONED, PartitionField, PartitionSpec
from hms_iceberg.spec.transforms.partition_transforms import BucketTransform
from tests.support.row_tables import (
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


def positions(table: Any, where: str) -> pa.Table:
    return table.scan(where).select("_file", "_pos").to_arrow().rename_columns(["file_path", "pos"])


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("spec", [UNPARTITIONED, BY_CITY], ids=["unpartitioned", "by_city"])
def test_rows_deleted_by_key_and_added_again_are_one_snapshot(
    tmp_path: Path, version: int, spec: PartitionSpec
) -> None:
    table = create(tmp_path, version, spec=spec)
    table.append(numbered(0, 6))
    changed = arrow([row(2, amount=-2), row(4, amount=-4)])
    with table.new_row_delta() as delta:
        delta.delete_equal(changed, ["id"]).add_rows(changed)
    assert rows_of(table) == [row(0), row(1), row(2, amount=-2), row(3), row(4, amount=-4), row(5)]
    assert len(table.snapshots()) == 2
    assert table.current_snapshot().operation == "overwrite"  # type: ignore[union-attr]
    check(table)


@pytest.mark.parametrize("version", [2, 3])
def test_rows_are_deleted_by_position(tmp_path: Path, version: int) -> None:
    table = create(tmp_path, version)
    table.append(numbered(0, 6))
    table.append(numbered(6, 9))
    table.new_row_delta().delete_positions(positions(table, "id in (1, 7)")).commit()
    (path,) = set(positions(table, "id = 0")["file_path"].to_pylist())
    with table.new_row_delta() as delta:
        delta.delete_positions({path: [2]}).delete_positions({path: [2, 1]})
    assert ids(table) == [0, 3, 4, 5, 6, 8]
    deletes = sorted(file.record_count for file in live(table) if not file.is_data)
    assert deletes == [1, 2]
    check(table)


def test_a_null_key_matches_a_null_row(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.append(numbered(0, 6))
    table.new_row_delta().delete_equal(pa.table({"city": pa.array([None], pa.string())}), ["city"]).commit()
    assert ids(table) == [0, 1, 3, 4]


def test_equality_deletes_of_an_unpartitioned_spec_apply_everywhere(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.append(numbered(0, 3))
    with table.update_spec() as update:
        update.add_identity("city")
    table.append(numbered(3, 6))
    with table.new_row_delta() as delta:
        delta.delete_equal(pa.table({"id": [1, 4]}), ["id"], spec=table.specs()[0])
    assert ids(table) == [0, 2, 3, 5]


def test_equality_deletes_of_a_spec_that_the_table_never_had_are_refused(tmp_path: Path) -> None:
    table = create(tmp_path, spec=BY_CITY)
    table.append(numbered(0, 6))
    before = data_files_on_disk(table)
    other = PartitionSpec(PartitionField(1, 1000, BucketTransform(4), "bucket"))
    for spec in (UNPARTITIONED, other):
        with pytest.raises(InvalidInputError, match=r"db\.events.*Table\.specs"), table.new_row_delta() as delta:
            delta.delete_equal(numbered(1, 2), ["id"], spec=spec)
    assert data_files_on_disk(table) == before
    same = PartitionSpec(*BY_CITY.fields, spec_id=7)
    with table.new_row_delta() as delta:
        delta.delete_equal(numbered(1, 2), ["id"], spec=same)
    assert ids(table) == [0, 2, 3, 4, 5]


def test_a_spec_whose_fields_were_removed_serves_for_deletes_everywhere(tmp_path: Path) -> None:
    table = create(tmp_path, version=1, spec=BY_CITY)
    with table.update_spec() as update:
        update.remove_field("city")
    table.set_properties({"format-version": "2"})
    table.append(numbered(0, 6))
    with table.new_row_delta() as delta:
        delta.delete_equal(numbered(1, 2), ["id"], spec=UNPARTITIONED)
    assert ids(table) == [0, 2, 3, 4, 5]


def test_nothing_collected_makes_no_snapshot(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.append(numbered(0, 3))
    table.new_row_delta().commit()
    table.new_row_delta().delete_positions({}).commit()
    assert len(table.snapshots()) == 1


def test_a_staged_row_delta_is_published_by_a_cherry_pick(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.append(numbered(0, 3))
    table.new_row_delta().add_rows(numbered(3, 4)).set("wap.id", "7").stage_only().commit()
    assert ids(table) == [0, 1, 2]
    staged = max(table.snapshots(), key=lambda each: each.sequence_number)
    assert staged.summary["wap.id"] == "7"


@pytest.mark.parametrize(
    ("collect", "error", "words"),
    [
        (lambda delta: delta.delete_equal(numbered(0, 1)), InvalidInputError, "no column"),
        (lambda delta: delta.delete_equal(numbered(0, 1), ["idd"]), UnknownColumnError, "idd"),
        (lambda delta: delta.delete_equal(pa.table({"city": ["x"]}), ["id"]), SchemaMismatchError, "'id'"),
        (lambda delta: delta.delete_positions({"/x.parquet": [0]}), InvalidInputError, "no live data file"),
        (lambda delta: delta.delete_positions({"/x.parquet": [-1]}), InvalidInputError, "less than 0"),
        (lambda delta: delta.delete_positions(pa.table({"a": [1]})), InvalidInputError, "file_path and pos"),
        (lambda delta: delta.add_rows(pa.table({"idd": [1]})), SchemaMismatchError, "idd"),
    ],
)
def test_what_does_not_fit_is_refused_and_nothing_stays(
    tmp_path: Path, collect: Any, error: type[Exception], words: str
) -> None:
    table = create(tmp_path)
    table.append(numbered(0, 3))
    before = data_files_on_disk(table)
    with pytest.raises(error, match=words), table.new_row_delta() as delta:  # noqa: PT012
        delta.add_rows(numbered(5, 6))
        collect(delta)
    assert data_files_on_disk(table) == before
    assert len(table.snapshots()) == 1


def test_positions_beyond_the_file_are_refused(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.append(numbered(0, 3))
    (path,) = data_files_on_disk(table)
    with pytest.raises(InvalidInputError, match="has 3 rows"):
        table.new_row_delta().delete_positions({path: [3]}).commit()


def test_v1_has_no_deletes(tmp_path: Path) -> None:
    table = create(tmp_path, 1)
    with pytest.raises(UnsupportedError, match="format version 1"):
        table.new_row_delta().delete_equal(numbered(0, 1), ["id"])


def test_a_data_file_that_goes_meanwhile_is_a_conflict(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.append(numbered(0, 3))
    delta = other_writer(table).new_row_delta().delete_positions(positions(table, "id = 1"))
    table.delete("id >= 0")
    with pytest.raises(CommitConflictError):
        delta.commit()


def test_isolation_is_asked_for(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.append(numbered(0, 3))
    free = other_writer(table).new_row_delta().add_rows(numbered(10, 11))
    strict = other_writer(table).new_row_delta().add_rows(numbered(11, 12))
    strict.isolation("serializable").conflict_detection_filter("id > 100")
    refused = other_writer(table).new_row_delta().add_rows(numbered(12, 13))
    refused.isolation("serializable").conflict_detection_filter("id > 1")
    table.append(numbered(3, 4))
    free.commit()
    strict.commit()
    with pytest.raises(CommitConflictError):
        refused.commit()
    assert ids(table.refresh()) == [0, 1, 2, 3, 10, 11]
