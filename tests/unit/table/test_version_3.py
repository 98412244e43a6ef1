"""What version 3 says of default values, lineage of rows and transforms of several columns, on whole tables.

Source: Iceberg specification, "Default values", "Schema Evolution", "Row Lineage", "Partition Transforms".
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hms_iceberg.errors import IcebergError, NullValueError, SchemaMismatchError, UnsupportedError
from hms_iceberg.spec.data_types import (
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    NestedField,
    StructType,
)
from hms_iceberg.spec.partitions.partition_specs import PartitionField, PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.sort_orders import SortField, SortOrder
from hms_iceberg.spec.transforms.partition_transforms import parse_transform
from hms_iceberg.table.table import Table
from hms_iceberg.transaction.transaction import Created, Transaction
from tests.support.memory_metastore import InMemoryMetastore
from tests.support.row_tables import MODES, NAME, create, numbered, other_writer

FORMATS = ("parquet", "orc", "avro")
POINT = StructType(
    NestedField(10, "x", IntegerType(), initial_default=1, write_default=1),
    NestedField(11, "y", IntegerType(), initial_default=2, write_default=2),
)


def column(table: Table, name: str, key: str = "id") -> dict[int, Any]:
    rows = table.scan(selected_fields=(key, name)).to_arrow().to_pylist()
    return {each[key]: each[name] for each in rows}


def lineage(table: Table, **scan: Any) -> dict[int, tuple[int | None, int | None]]:
    names = ("id", "_row_id", "_last_updated_sequence_number")
    rows = table.scan(**scan).select(*names).to_arrow().to_pylist()
    assert len({each["id"] for each in rows}) == len(rows)
    return {each["id"]: (each["_row_id"], each["_last_updated_sequence_number"]) for each in rows}


# ------------------------------------------------------------------------------------------------ default values


@pytest.mark.parametrize("form", FORMATS)
def test_a_default_holds_for_older_rows_after_it_changed_and_they_were_rewritten(tmp_path: Path, form: str) -> None:
    table = create(tmp_path, 3, "copy-on-write", **{"write.format.default": form})
    table.append(numbered(0, 3))
    with table.update_schema() as update:
        update.add_column("bonus", IntegerType(), default_value=5)
    table.append(numbered(3, 5))  # written with the first default
    with table.update_schema() as update:
        update.set_default_value("bonus", 7)
    table.append(numbered(5, 7))
    wanted = {0: 5, 1: 5, 2: 5, 3: 5, 4: 5, 5: 7, 6: 7}
    assert column(table, "bonus") == wanted
    table.delete("id = 0")
    table.maintenance.rewrite_data_files(options={"rewrite-all": "true"})
    del wanted[0]
    assert column(table, "bonus") == wanted
    with table.update_schema() as update:
        update.set_default_value("bonus", None)
    table.append(numbered(7, 8))
    assert column(table, "bonus") == {**wanted, 7: None}


@pytest.mark.parametrize("form", FORMATS)
def test_defaults_of_a_struct_and_its_fields_are_those_of_the_specifications_table(tmp_path: Path, form: str) -> None:
    old = Schema(NestedField(1, "id", LongType()), NestedField(2, "p", StructType(NestedField(10, "x", IntegerType()))))
    table = create(tmp_path, 3, schema=old, **{"write.format.default": form})
    table.append(pa.table({"id": [0, 1], "p": pa.array([{"x": 3}, None], pa.struct([("x", pa.int32())]))}))
    with table.update_schema() as update:
        update.add_column(("p", "y"), IntegerType(), default_value=0)
        update.add_column("q", POINT)
        update.add_column("r", POINT, default_value={})
    assert column(table, "p") == {0: {"x": 3, "y": 0}, 1: None}
    assert column(table, "q") == {0: None, 1: None}
    assert column(table, "r") == {0: {"x": 1, "y": 2}, 1: {"x": 1, "y": 2}}
    table.append(pa.table({"id": [2], "p": pa.array([{"x": 4}], pa.struct([("x", pa.int32())]))}))
    assert (column(table, "p")[2], column(table, "q")[2], column(table, "r")[2]) == (
        {"x": 4, "y": 0},
        None,
        {"x": 1, "y": 2},
    )
    part = pa.array([{"y": -1}], pa.struct([("y", pa.int32())]))
    table.append(pa.table({"id": [3], "q": part, "r": part}))
    assert column(table, "q")[3] == column(table, "r")[3] == {"x": 1, "y": -1}


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(
    ("old", "new", "default", "read"),
    [
        (IntegerType(), LongType(), 5, 5),
        (FloatType(), DoubleType(), 0.1, 0.10000000149011612),
        (DecimalType(4, 2), DecimalType(9, 2), "1.25", "1.25"),
    ],
)
def test_a_default_is_promoted_with_its_column(
    tmp_path: Path, form: str, old: Any, new: Any, default: Any, read: Any
) -> None:
    table = create(tmp_path, 3, **{"write.format.default": form})
    table.append(numbered(0, 2))
    with table.update_schema() as update:
        update.add_column("bonus", old, default_value=default)
    table.append(numbered(2, 3))
    with table.update_schema() as update:
        update.update_column("bonus", new)
    table.append(numbered(3, 4))
    assert {str(each) for each in column(table, "bonus").values()} == {str(read)}
    assert table.scan(row_filter="bonus is null").count() == 0


def test_a_required_column_is_added_with_a_default_only_and_writers_fail_without_one(tmp_path: Path) -> None:
    table = create(tmp_path, 3)
    table.append(numbered(0, 2))
    with table.update_schema() as update:
        update.add_column("must", IntegerType(), required=True, default_value=9)
    assert column(table, "must") == {0: 9, 1: 9}
    table.append(numbered(2, 3))
    assert column(table, "must")[2] == 9
    with pytest.raises(NullValueError, match="'must'"):
        table.append(numbered(3, 4).append_column("must", pa.array([None], pa.int32())))
    with pytest.raises(IcebergError), table.update_schema() as update:
        update.set_default_value("must", None)
    bare = create(
        tmp_path / "bare", 3, schema=Schema(NestedField(1, "id", LongType()), NestedField(2, "m", LongType(), True))
    )
    with pytest.raises(SchemaMismatchError, match="required column 'm'"):
        bare.append(pa.table({"id": [1]}))


# ------------------------------------------------------------------------------------------------ lineage of rows


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("mode", MODES)
def test_changed_rows_keep_their_id_and_others_their_number_too(tmp_path: Path, form: str, mode: str) -> None:
    table = create(tmp_path, 3, mode, **{"write.format.default": form})
    table.append(numbered(0, 6))
    table.append(numbered(6, 9))
    start = lineage(table)
    assert start == {key: (key, 1 if key < 6 else 2) for key in range(9)}
    table.update({"amount": -1}, "id in (1, 7)")
    assert lineage(table) == {**start, 1: (1, 3), 7: (7, 3)}
    table.delete("id = 0")
    table.maintenance.rewrite_data_files(options={"rewrite-all": "true"})
    now = {key: (key, 3 if key in (1, 7) else 1 if key < 6 else 2) for key in range(1, 9)}
    assert lineage(table) == now
    table.upsert(numbered(8, 11).set_column(2, "amount", pa.array([5, 6, 7], pa.int32())), join_cols=["id"])
    after = lineage(table)
    assert after[8] == (8, 6)
    assert {key: each for key, each in after.items() if key < 8} == {key: now[key] for key in range(1, 8)}
    assert min(after[9][0], after[10][0]) >= 9  # new rows have new ids
    assert table.metadata.next_row_id > max(each for each, _ in after.values())


def test_rows_from_before_the_upgrade_have_no_id_in_old_snapshots_and_ids_of_their_own_on_each_branch(
    tmp_path: Path,
) -> None:
    table = create(tmp_path, 2)
    table.append(numbered(0, 4))
    before = table.current_snapshot().snapshot_id
    table.manage_snapshots().create_branch(before, "side").commit()
    with table.transaction() as transaction:
        transaction.upgrade_table_version(3)
    assert table.metadata.next_row_id == 0
    assert set(lineage(table).values()) == {(None, None)}
    table.append(numbered(4, 6))
    table.append(numbered(6, 7), branch="side")
    side_id = table.snapshot_by_name("side").snapshot_id
    main, side, old = lineage(table), lineage(table, snapshot_id=side_id), lineage(table, snapshot_id=before)
    assert set(old.values()) == {(None, None)}
    assert {key: number for key, (_, number) in main.items()} == {0: 1, 1: 1, 2: 1, 3: 1, 4: 2, 5: 2}
    assert {key: number for key, (_, number) in side.items()} == {0: 1, 1: 1, 2: 1, 3: 1, 6: 3}
    ids = [each for rows in (main, side) for each, _ in rows.values()]
    assert len(set(ids)) == len(ids) == 11
    assert table.metadata.next_row_id > max(ids)


def test_a_writer_that_lost_the_race_counts_its_rows_behind_the_others(tmp_path: Path) -> None:
    table = create(tmp_path, 3)
    late = other_writer(table)
    table.append(numbered(0, 5))
    late.append(numbered(5, 8))
    table.refresh()
    assert {each for each, _ in lineage(table).values()} == set(range(8))
    assert [each.first_row_id for each in table.snapshots()] == [0, 5]
    table.manage_snapshots().rollback_to_snapshot(table.snapshots()[0].snapshot_id).commit()
    table.append(numbered(5, 6))
    assert lineage(table)[5] == (8, 3)  # ids of what was rolled back are not given again


# ------------------------------------------------------------------------------------------------ several columns


def test_a_table_with_a_transform_of_several_columns_is_read_but_not_written(tmp_path: Path) -> None:
    table = create(tmp_path, 3)
    table.append(numbered(0, 4))
    spec = PartitionSpec(PartitionField(1, 1000, parse_transform("bucketV2[4]"), "both", (1, 3)), spec_id=1)
    order = SortOrder(SortField(1, parse_transform("hilbert"), source_ids=(1, 3)), order_id=1)
    changed = replace(
        table.metadata,
        partition_specs=(*table.metadata.partition_specs, spec),
        default_spec_id=1,
        last_partition_id=1000,
        sort_orders=(*table.metadata.sort_orders, order),
        default_sort_order_id=1,
    )
    metastore = InMemoryMetastore()
    metastore.create_namespace(NAME[0], {})
    foreign = Table(
        NAME, Transaction(NAME, Created(changed), metastore, table.storage).commit(), metastore, table.storage
    )
    foreign = other_writer(foreign)  # as read from its file
    assert foreign.spec().fields[0].source_ids == (1, 3)
    assert foreign.sort_order().fields[0].source_ids == (1, 3)
    assert foreign.scan(row_filter="id > 1 and amount < 6").to_arrow()["id"].to_pylist() == [2]
    with pytest.raises(UnsupportedError, match="bucketV2"):
        foreign.append(numbered(4, 5))
    foreign.delete("id >= 0")  # whole files of a known spec go
    assert foreign.scan().count() == 0
