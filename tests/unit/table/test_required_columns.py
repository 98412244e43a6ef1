"""Rows with nulls and a column that becomes required at the same time: one of both is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hms_iceberg.errors import CommitConflictError
from hms_iceberg.spec.data_types import IcebergType, LongType, NestedField, StringType, StructType
from hms_iceberg.spec.partitions.partition_specs import PartitionField, PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.transforms.partition_transforms import IdentityTransform
from hms_iceberg.table.table import Table
from hms_iceberg.updates.machinery.conflicts import check_added_nulls
from tests.support.row_tables import create, data_files_on_disk, ids, other_writer
from tests.support.tables import data_file, equality_deletes, position_deletes

SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "city", StringType()),
    NestedField(3, "place", StructType(NestedField(4, "x", LongType())), required=True),
)
BY_ID = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "id"))
KIND = pa.schema(
    [
        pa.field("id", pa.int64(), False),
        ("city", pa.string()),
        pa.field("place", pa.struct([("x", pa.int64())]), False),
    ]
)


def rows(key: int, city: str | None = None, x: int | None = None) -> pa.Table:
    return pa.Table.from_pylist([{"id": key, "city": city, "place": {"x": x}}], schema=KIND)


def begin(folder: Path, **properties: str) -> tuple[Table, Table]:
    """A table as two writers hold it."""
    table = create(folder, schema=SCHEMA, spec=BY_ID, **properties)
    table.append(rows(0, "Oslo", 0))
    return table, other_writer(table)


def require(table: Table, *names: str) -> None:
    with table.update_schema(allow_incompatible_changes=True) as update:
        for name in names:
            update.update_column(name, required=True)


Write = Callable[[Table, pa.Table], Any]
WRITES: dict[str, Write] = {
    "append": lambda table, new: table.append(new),
    "overwrite": lambda table, new: table.overwrite(new, "id = 9"),
    "upsert": lambda table, new: table.upsert(new, ["id"]),
    "replace partitions": lambda table, new: table.dynamic_partition_overwrite(new),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=list(WRITES))
def test_nulls_that_were_written_before_their_column_became_required_are_refused(tmp_path: Path, write: Write) -> None:
    table, other = begin(tmp_path)
    require(table, "city", "place.x")
    before = data_files_on_disk(table)
    with pytest.raises(CommitConflictError, match=r"db\.events.*holds nulls in column 'city'.*made the column requ"):
        write(other, rows(1, None, 1))
    with pytest.raises(CommitConflictError, match=r"'place\.x'"):
        write(other, rows(1, "Rome", None))
    assert data_files_on_disk(table) == before
    write(other, rows(1, "Rome", 1))
    assert ids(other) == [0, 1]


@pytest.mark.parametrize("write", WRITES.values(), ids=list(WRITES))
def test_a_column_does_not_become_required_where_nulls_were_written_meanwhile(tmp_path: Path, write: Write) -> None:
    table, other = begin(tmp_path)
    write(table, rows(1, "Rome", None))
    with pytest.raises(CommitConflictError, match=r"'place\.x' of table db\.events required.*holds nulls"):
        require(other, "place.x")
    require(other, "city")
    assert other.schema().find_field("city").required


def test_a_file_of_which_metrics_do_not_tell_may_hold_nulls(tmp_path: Path) -> None:
    table, other = begin(tmp_path, **{"write.metadata.metrics.default": "none"})
    require(table, "city")
    with pytest.raises(CommitConflictError, match="do not tell"):
        other.append(rows(1, "Rome", 1))


def test_nulls_that_were_there_before_do_not_keep_a_column_from_becoming_required(tmp_path: Path) -> None:
    """Whoever allows incompatible changes answers for them."""
    table = create(tmp_path, schema=SCHEMA, spec=BY_ID)
    table.append(rows(0))
    other = other_writer(table)
    table.append(rows(1, "Rome", 1))
    require(other, "city")
    assert other.schema().find_field("city").required


def test_rows_without_a_column_that_was_added_as_required_are_refused(tmp_path: Path) -> None:
    table, other = begin(tmp_path)
    table.update_schema(allow_incompatible_changes=True).add_column("note", "string", required=True).commit()
    with pytest.raises(CommitConflictError, match="'note'"):
        other.append(rows(1, "Rome", 1))


def field(field_id: int, required: bool, kind: IcebergType | None = None, **more: Any) -> NestedField:
    return NestedField(field_id, f"c{field_id}", kind or LongType(), required, **more)


OLD = Schema(field(1, False), field(2, False, StructType(field(3, False))))
NEW_STRUCT = StructType(field(5, True, StructType(field(6, True))))


@pytest.mark.parametrize(
    ("now", "refused"),
    [
        ([field(1, True)], "c1"),
        ([field(1, False), field(4, True)], "c4"),
        ([field(1, False), field(4, True, initial_default=7)], None),
        ([field(2, False, StructType(field(3, True)))], "c2.c3"),
        ([field(2, False, StructType(field(3, False), field(4, True)))], "c2.c4"),
        ([field(4, False, NEW_STRUCT)], None),
        ([field(4, True, NEW_STRUCT)], "c4"),
        ([field(2, False, StructType(field(3, False), field(4, False, NEW_STRUCT)))], None),
    ],
    ids=[
        "made required",
        "new",
        "new with a default",
        "made required in a struct",
        "new in a struct that was there",
        "in a new struct that may be null",
        "in a new required struct",
        "in a new struct within one that was there",
    ],
)
def test_rows_written_before_are_refused_where_they_have_no_value_of_a_required_column(
    now: list[NestedField], refused: str | None
) -> None:
    file = data_file(null_value_counts={1: 1, 3: 1})
    no_metrics = data_file(null_value_counts=None)
    without_nulls = data_file(null_value_counts=dict.fromkeys(range(1, 7), 0))
    harmless = [without_nulls, replace(file, record_count=0), position_deletes(file), equality_deletes(file)]
    check_added_nulls(harmless, OLD, Schema(*now), "append")
    for found, what in ((file, "null"), (no_metrics, "metrics do not tell")) if refused else ():
        with pytest.raises(CommitConflictError, match=f"{what}.* in column '{refused}'"):
            check_added_nulls([*harmless, found], OLD, Schema(*now), "append")
    if refused is None:
        check_added_nulls([file, no_metrics], OLD, Schema(*now), "append")


def test_staged_nulls_are_not_published_where_their_column_became_required(tmp_path: Path) -> None:
    table, _ = begin(tmp_path, **{"write.wap.enabled": "true"})
    table.append(rows(1, None, 1), {"wap.id": "a"})
    staged = table.snapshots()[-1].snapshot_id
    require(table, "city")
    with pytest.raises(CommitConflictError, match="'city'"):
        table.manage_snapshots().cherrypick(staged).commit()


def test_files_that_only_go_do_not_settle_the_ids_of_new_columns(tmp_path: Path) -> None:
    """A replay may give another id to a column that is added beside a removal of files."""
    table, other = begin(tmp_path)
    table.update_schema().add_column("note", "string").commit()
    (task,) = other.scan().plan_files()
    with other.transaction() as transaction:
        with transaction.update_schema() as update:
            update.add_column("other", "string")
        with transaction.new_delete() as delete:
            delete.delete_file(task.file)
    assert [field.name for field in other.schema().fields][-2:] == ["note", "other"]
    assert ids(other) == []
