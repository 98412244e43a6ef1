from __future__ import annotations

import math
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hms_iceberg.arrow.columns.arrow_schema import to_arrow
from hms_iceberg.arrow.formats import parquet_reader
from hms_iceberg.arrow.formats.parquet_reader import ParquetReader
from hms_iceberg.arrow.reading import task_reader
from hms_iceberg.arrow.reading.read import read_tasks
from hms_iceberg.arrow.rows import row_masks
from hms_iceberg.errors import CorruptDataFileError, MissingFileError, TypeMismatchError
from hms_iceberg.spec.data_types import (
    BinaryType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    UUIDType,
)
from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.spec.metadata_columns import (
    FILE,
    LAST_UPDATED_SEQUENCE_NUMBER,
    POSITION,
    ROW_ID,
    SPEC_ID,
    partition_column,
)
from hms_iceberg.spec.partitions.partition_specs import PartitionField, PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.transforms.partition_transforms import BucketTransform, IdentityTransform
from tests.support.arrow_tables import FileTable, arrow_rows
from tests.support.expression_strategies import EXAMPLES, expressions, matches, table_leaves, table_rows, tables
from tests.support.pruning import may_match

SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "name", StringType()),
    NestedField(3, "score", DoubleType()),
)


def ids(table: pa.Table) -> list[int]:
    return table["id"].to_pylist()


@pytest.fixture
def table(tmp_path: Path) -> FileTable:
    """Ten rows in two files of several row groups."""
    made = FileTable(tmp_path / "t", SCHEMA, properties={"write.parquet.row-group-limit": "2"})
    for start in (0, 5):
        rows = {
            "id": pa.array(range(start, start + 5), pa.int64()),
            "name": [None if each == 3 else "abcdefghij"[each] for each in range(start, start + 5)],
            "score": [math.nan if each == 4 else each / 2 for each in range(start, start + 5)],
        }
        made.append(pa.table(rows))
    return made


# ------------------------------------------------------------------------------------------------ whole scans


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.data())
def test_a_scan_gives_the_rows_that_match_and_pruning_never_loses_one(data: st.DataObject) -> None:
    schema = data.draw(tables())
    rows = data.draw(st.lists(table_rows(schema), max_size=12))
    expression = data.draw(expressions(table_leaves(schema)))
    numbered = Schema(*schema.fields, NestedField(9, "n", IntegerType()))
    kinds = {name: schema.find_type(name) for name in ("a", "b", "s.c")}
    wanted = [number for number, row in enumerate(rows) if matches(expression, row, kinds) is True]
    with tempfile.TemporaryDirectory() as folder:
        made = FileTable(Path(folder) / "t", numbered, properties={"write.parquet.row-group-limit": "3"})
        for start in range(0, len(rows), 6):
            part = [(*row, number) for number, row in enumerate(rows)][start : start + 6]
            made.append(arrow_rows(part, numbered))
        assert sorted(made.read(expression)["n"].to_pylist()) == wanted
        made.files = [file for file in made.files if may_match(numbered, expression, file)]
        assert sorted(made.read(expression, numbered.select("n"))["n"].to_pylist()) == wanted


def test_rows_come_in_the_order_of_the_files_whatever_the_number_of_workers(table: FileTable) -> None:
    for workers in (1, 2, 5):
        assert ids(table.read(workers=workers, batch_rows=1)) == list(range(10))


def test_columns_that_are_only_filtered_on_are_not_in_the_result(table: FileTable) -> None:
    read = table.read("score >= 2 and name is not null", SCHEMA.select("id"))
    assert read.schema.names == ["id"]
    assert ids(read) == [4, 5, 6, 7, 8, 9]


def test_a_scan_without_columns_still_counts_rows(table: FileTable) -> None:
    assert sum(batch.num_rows for batch in table.read("id > 6", Schema()).to_batches()) == 3


def test_the_result_has_the_tables_types_and_ids(table: FileTable) -> None:
    assert table.read().schema.equals(to_arrow(SCHEMA), check_metadata=True)


def test_metadata_columns_say_where_a_row_is_stored(tmp_path: Path) -> None:
    spec = PartitionSpec(
        PartitionField(2, 1000, IdentityTransform(), "name"),
        PartitionField(1, 1001, BucketTransform(2), "b"),
        spec_id=4,
    )
    made = FileTable(tmp_path / "t", SCHEMA, spec)
    made.append(pa.table({"id": pa.array([1, 2, 3], pa.int64()), "name": ["x", None, "x"]}))
    partition = partition_column([spec], SCHEMA)
    read = made.read("id > 1", Schema(SCHEMA.fields[0], FILE, POSITION, SPEC_ID, partition)).to_pylist()
    for row in read:
        (file,) = (each for each in made.files if each.file_path == row["_file"])
        assert row["_spec_id"] == 4
        assert row["_partition"] == {"name": file.partition[0], "b": file.partition[1]}
        assert pq.read_table(file.file_path, partitioning=None)["id"][row["_pos"]].as_py() == row["id"]


def test_row_lineage_is_inherited_where_the_file_has_none(table: FileTable) -> None:
    lineage = Schema(SCHEMA.fields[0], ROW_ID, LAST_UPDATED_SEQUENCE_NUMBER)
    table.files = [_with(table.files[0], first_row_id=100), table.files[1]]
    read = table.read("id in (3, 7)", lineage).to_pylist()
    assert read == [
        {"id": 3, "_row_id": 103, "_last_updated_sequence_number": 7},
        {"id": 7, "_row_id": None, "_last_updated_sequence_number": None},
    ]


def test_stored_row_lineage_wins_over_inheritance(tmp_path: Path) -> None:
    lineage = Schema(SCHEMA.fields[0], ROW_ID, LAST_UPDATED_SEQUENCE_NUMBER)
    made = FileTable(tmp_path / "t", lineage)
    rows = {"id": pa.array([1, 2], pa.int64()), "_row_id": [55, None], "_last_updated_sequence_number": [None, 3]}
    made.append(pa.table(rows))
    made.files = [_with(made.files[0], first_row_id=10)]
    assert [tuple(row.values()) for row in made.read().to_pylist()] == [(1, 55, 7), (2, 11, 3)]


def _with(file: DataFile, **fields: Any) -> DataFile:
    return replace(file, **fields)


def test_row_groups_without_a_match_are_not_read_beyond_the_filters_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = FileTable(tmp_path / "t", SCHEMA, properties={"write.parquet.row-group-limit": "100"})
    order = [(each * 7919) % 1000 for each in range(1000)]  # every row group spans nearly all ids
    made.append(pa.table({"id": pa.array(order, pa.int64()), "name": ["some long text"] * 1000, "score": [0.5] * 1000}))
    read: list[tuple[int, ...]] = []
    original = ParquetReader.read

    def spy(self: ParquetReader, rows: Any, leaves: Any, *options: Any) -> Any:
        read.append(tuple(leaves))
        return original(self, rows, leaves, *options)

    monkeypatch.setattr(ParquetReader, "read", spy)
    monkeypatch.setattr(row_masks, "_SMALL_PART", 10.0)
    monkeypatch.setattr(task_reader, "_FEW_VALUES", 0)
    assert ids(made.read("id = 500")) == [500]
    assert read.count((0,)) == 10
    assert read.count((0, 1, 2)) == 1
    read.clear()
    assert len(ids(made.read("id >= 0"))) == 1000
    assert read.count((0, 1, 2)) == 10
    assert read.count((0,)) == 4  # then it is known not to pay


@pytest.mark.parametrize("dictionary_bytes", [1 << 20, 10])
def test_text_is_the_same_where_it_is_read_as_codes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dictionary_bytes: int
) -> None:
    """Also where the writer gave its dictionary up after the first page."""
    monkeypatch.setattr(parquet_reader, "_CODED_ROWS", 1)
    made = FileTable(tmp_path / "t", SCHEMA)
    names = [None if each % 7 == 0 else f"name {each % 13}" for each in range(5000)]
    rows = pa.table({"id": pa.array(range(5000), pa.int64()), "name": names, "score": [0.5] * 5000})
    location = str(tmp_path / "data.parquet")
    pq.write_table(
        rows.cast(to_arrow(SCHEMA)),
        location,
        row_group_size=2000,
        data_page_size=100,
        dictionary_pagesize_limit=dictionary_bytes,
        write_batch_size=50,
    )
    made.files.append(DataFile(file_path=location, file_format="PARQUET", record_count=5000, file_size_in_bytes=1))
    reader = ParquetReader(made.storage, location, None)
    assert pa.types.is_dictionary(reader.schema.field("name").type)
    reader.close()
    assert made.read()["name"].to_pylist() == names
    made.delete(made.files, made.position_deletes([(location, each) for each in range(0, 5000, 3)]))
    for text, test in {
        "name = 'name 5'": lambda name: name == "name 5",
        "name is null": lambda name: name is None,
        "name like 'name 1%'": lambda name: name is not None and name.startswith("name 1"),
        "name > 'name 3' and id >= 0": lambda name: name is not None and name > "name 3",
    }.items():
        for batch_rows in (70, 1000):
            wanted = [each for each in range(5000) if each % 3 and test(names[each])]
            found = made.read(text, batch_rows=batch_rows)
            assert found["id"].to_pylist() == wanted
            assert found["name"].to_pylist() == [names[each] for each in wanted]


def test_files_of_different_partitions_and_columns_do_not_share_constants(tmp_path: Path) -> None:
    spec = PartitionSpec(PartitionField(3, 1000, IdentityTransform(), "score"))
    made = FileTable(tmp_path / "t", SCHEMA, spec)
    made.append(pa.table({"id": pa.array([1, 2, 3], pa.int64()), "score": [0.0, -0.0, None]}))
    for file in made.files:
        bare = pq.read_table(file.file_path, partitioning=None).drop_columns(["score"])
        made.storage.delete(file.file_path)
        pq.write_table(bare, file.file_path)
    assert [str(value) for value in made.read()["score"].to_pylist()] == ["0.0", "-0.0", "None"]


# ---------------------------------------------------------------------------------------------------- deletes


def test_position_deletes_apply_across_row_groups_and_files(table: FileTable) -> None:
    first, second = (file.file_path for file in table.files)
    deletes = table.position_deletes([(second, 4), (first, 0), (first, 3), (first, 2), (first, 3), ("gone", 1)])
    table.delete(table.files, deletes)
    for batch_rows in (1, 2, 1000):
        assert ids(table.read(batch_rows=batch_rows)) == [1, 4, 5, 6, 7, 8]
    assert table.read(None, Schema(POSITION))["_pos"].to_pylist() == [1, 4, 0, 1, 2, 3]


def test_a_file_whose_rows_are_all_deleted_gives_nothing(table: FileTable) -> None:
    first = table.files[0].file_path
    table.delete(table.files[:1], table.position_deletes([(first, position) for position in range(5)]))
    assert ids(table.read()) == [5, 6, 7, 8, 9]


def test_a_null_key_matches_a_null_row(table: FileTable) -> None:
    key = SCHEMA.select("name")
    deletes = table.equality_deletes(pa.table({"name": pa.array([None, "a"], pa.string())}), key, (2,))
    table.delete(table.files, deletes)
    assert ids(table.read()) == [1, 2, 4, 5, 6, 7, 8, 9]


def test_a_nan_key_matches_nan_and_negative_zero_is_another_key(table: FileTable) -> None:
    key = SCHEMA.select("score")
    deletes = table.equality_deletes(pa.table({"score": [math.nan, -0.0]}), key, (3,))
    table.delete(table.files, deletes)
    assert ids(table.read()) == [0, 1, 2, 3, 5, 6, 7, 8, 9]


def test_a_key_of_several_columns_deletes_where_all_match(table: FileTable) -> None:
    key = SCHEMA.select("id", "name")
    rows = pa.table({"id": [1, 2, 3], "name": pa.array(["b", "x", None])})
    table.delete(table.files, table.equality_deletes(rows, key, (1, 2)))
    assert ids(table.read()) == [0, 2, 4, 5, 6, 7, 8, 9]


def test_several_key_sets_and_position_deletes_apply_together(table: FileTable) -> None:
    by_id = table.equality_deletes(pa.table({"id": [0, 9]}), SCHEMA.select("id"), (1,), "id.parquet")
    by_name = table.equality_deletes(pa.table({"name": ["f"]}), SCHEMA.select("name"), (2,), "name.parquet")
    positions = table.position_deletes([(table.files[0].file_path, 1)])
    for deletes in (by_id, by_name, positions):
        table.delete(table.files, deletes)
    assert ids(table.read("id < 8")) == [2, 3, 4, 6, 7]


def test_extra_columns_of_an_equality_delete_file_do_not_count(table: FileTable) -> None:
    rows = pa.table({"id": [1], "name": ["something else"], "score": [0.25]})
    table.delete(table.files, table.equality_deletes(rows, SCHEMA, (1,)))
    assert ids(table.read()) == [0, 2, 3, 4, 5, 6, 7, 8, 9]


def test_a_key_that_was_dropped_or_promoted_since_still_deletes(tmp_path: Path) -> None:
    old = Schema(NestedField(1, "id", IntegerType()), NestedField(2, "k", StringType()), schema_id=0)
    new = Schema(NestedField(1, "number", LongType()), NestedField(3, "k", StringType()), schema_id=1)
    made = FileTable(tmp_path / "t", old)
    made.append(pa.table({"id": pa.array([1, 2, 3], pa.int32()), "k": ["a", "b", "c"]}))
    dropped = made.equality_deletes(pa.table({"k": ["a"]}), old.select("k"), (2,), "k.parquet")
    promoted = made.equality_deletes(pa.table({"id": pa.array([3], pa.int32())}), old.select("id"), (1,), "id.parquet")
    made.delete(made.files, dropped)
    made.delete(made.files, promoted)
    made.schema, made.old_schemas = new, (old,)
    assert made.read().to_pylist() == [{"number": 2, "k": None}]


def test_a_nested_key_is_null_where_its_struct_is(tmp_path: Path) -> None:
    schema = Schema(
        NestedField(1, "id", LongType()),
        NestedField(2, "s", StructType(NestedField(3, "k", StringType()), NestedField(4, "x", LongType()))),
    )
    made = FileTable(tmp_path / "t", schema)
    rows = [{"id": 1, "s": {"k": "a", "x": 1}}, {"id": 2, "s": None}, {"id": 3, "s": {"k": None, "x": 2}}]
    made.append(pa.Table.from_pylist(rows, to_arrow(schema, field_ids=False)))
    keys = pa.Table.from_pylist([{"s": {"k": None}}], to_arrow(schema.select("s.k"), field_ids=False))
    made.delete(made.files, made.equality_deletes(keys, schema.select("s.k"), (3,)))
    assert ids(made.read(None, schema.select("id"))) == [1]


# -------------------------------------------------------------------------------------------------- projection


def test_columns_are_found_by_id_after_renames_moves_and_promotions(tmp_path: Path) -> None:
    old = Schema(
        NestedField(1, "a", IntegerType()),
        NestedField(2, "b", FloatType()),
        NestedField(3, "c", DecimalType(5, 2)),
        NestedField(4, "gone", StringType()),
    )
    made = FileTable(tmp_path / "t", old)
    made.append(pa.table({"a": pa.array([1], pa.int32()), "b": pa.array([1.5], pa.float32()), "gone": ["x"]}))
    made.schema = Schema(
        NestedField(3, "gone", DecimalType(9, 2)),
        NestedField(2, "a", DoubleType()),
        NestedField(1, "b", LongType()),
        NestedField(5, "new", DateType(), initial_default=3),
        schema_id=1,
    )
    made.old_schemas = (old,)
    (row,) = made.read().to_pylist()
    assert str(row.pop("new")) == "1970-01-04"
    assert row == {"gone": None, "a": 1.5, "b": 1}


def test_nested_fields_are_projected_at_any_depth_with_their_nulls(tmp_path: Path) -> None:
    inner = StructType(NestedField(5, "x", IntegerType()), NestedField(6, "y", StringType()))
    old = Schema(
        NestedField(
            1, "l", ListType(2, StructType(NestedField(3, "m", MapType(4, StringType(), 7, inner, False))), False)
        ),
        NestedField(8, "s", StructType(NestedField(9, "u", UUIDType()), NestedField(10, "v", IntegerType()))),
    )
    rows = [
        {"l": [{"m": [("k", {"x": 1, "y": "a"}), ("n", None)]}, None, {"m": None}], "s": None},
        {"l": None, "s": {"u": b"0123456789abcdef", "v": 1}},
        {"l": [], "s": {"u": None, "v": None}},
    ]
    made = FileTable(tmp_path / "t", old)
    made.append(pa.Table.from_pylist(rows, to_arrow(old, field_ids=False, extensions=False)))
    renamed = StructType(NestedField(11, "z", LongType(), initial_default=9), NestedField(5, "xx", LongType()))
    made.schema = Schema(
        NestedField(8, "t", StructType(NestedField(12, "only new", StringType()))),
        NestedField(
            1, "l", ListType(2, StructType(NestedField(3, "m", MapType(4, StringType(), 7, renamed, False))), False)
        ),
        schema_id=1,
    )
    assert made.read().to_pylist() == [
        {"t": None, "l": [{"m": [("k", {"z": 9, "xx": 1}), ("n", None)]}, None, {"m": None}]},
        {"t": {"only new": None}, "l": None},
        {"t": {"only new": None}, "l": []},
    ]


def test_an_identity_partition_value_stands_in_for_a_column_that_the_file_lacks(tmp_path: Path) -> None:
    spec = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "name"))
    made = FileTable(tmp_path / "t", SCHEMA, spec)
    made.append(pa.table({"id": pa.array([1, 2], pa.int64()), "name": ["x", None]}))
    for file in made.files:
        bare = pq.read_table(file.file_path, partitioning=None).drop_columns(["name"])
        made.storage.delete(file.file_path)
        pq.write_table(bare, file.file_path)
    assert made.read().select(["id", "name"]).to_pylist() == [{"id": 1, "name": "x"}, {"id": 2, "name": None}]
    assert ids(made.read("name = 'x'")) == [1]


def test_files_without_ids_are_read_by_the_name_mapping(tmp_path: Path) -> None:
    mapping = '[{"field-id": 1, "names": ["id", "ID"]}, {"field-id": 3, "names": ["points"]}]'
    made = FileTable(tmp_path / "t", SCHEMA, properties={"schema.name-mapping.default": mapping})
    location = str(tmp_path / "imported.parquet")
    rows = {"ID": pa.array([7], pa.int64()), "name": ["not mapped"], "points": [1.25]}
    pq.write_table(pa.table(rows), location)
    made.files.append(DataFile(file_path=location, file_format="PARQUET", record_count=1, file_size_in_bytes=1))
    assert made.read().to_pylist() == [{"id": 7, "name": None, "score": 1.25}]
    made.properties = {}
    assert made.read().to_pylist() == [{"id": 7, "name": "not mapped", "score": 1.25}]


@pytest.mark.parametrize(
    ("kind", "stored", "expected"),
    [
        (LongType(), pa.array([2**32 - 1], pa.uint32()), 2**32 - 1),
        (StringType(), pa.array([b"x"], pa.binary()), "x"),
        (BinaryType(), pa.array(["x"], pa.string()), b"x"),
        (StringType(), pa.array(["x"]).dictionary_encode(), "x"),
        (StringType(), pa.array(["x"], pa.large_string()), "x"),
        (ListType(10, LongType(), False), pa.array([[1, None]], pa.large_list(pa.int32())), [1, None]),
    ],
)
def test_other_writers_types_are_read(tmp_path: Path, kind: Any, stored: pa.Array, expected: Any) -> None:
    schema = Schema(NestedField(1, "c", kind))
    mapping = '[{"field-id": 1, "names": ["c"], "fields": [{"field-id": 10, "names": ["element"]}]}]'
    made = FileTable(tmp_path / "t", schema, properties={"schema.name-mapping.default": mapping})
    location = str(tmp_path / "imported.parquet")
    pq.write_table(pa.table({"c": stored}), location)
    made.files.append(DataFile(file_path=location, file_format="PARQUET", record_count=1, file_size_in_bytes=1))
    assert made.read()["c"].to_pylist() == [expected]


def test_timestamps_of_any_unit_and_int96_become_microseconds_downwards(tmp_path: Path) -> None:
    schema = Schema(NestedField(1, "a", TimestampType()), NestedField(2, "b", TimestamptzType()))
    values = [-1_999, -1_000, 1_999]
    for unit, factor in (("ns", 1), ("us", 1000), ("ms", 1_000_000)):
        column = pa.array([value // factor for value in values], pa.timestamp(unit))
        for int96 in (False, True):
            location = str(tmp_path / f"{unit}{int96}.parquet")
            pq.write_table(pa.table({"a": column, "b": column}), location, use_deprecated_int96_timestamps=int96)
            made = FileTable(tmp_path / "t", schema)
            made.files.append(DataFile(file_path=location, file_format="PARQUET", record_count=3, file_size_in_bytes=1))
            wanted = [value // factor * factor // 1000 for value in values]
            for name in ("a", "b"):
                assert made.read()[name].cast(pa.int64()).to_pylist() == wanted


# ------------------------------------------------------------------------------------------------------ faults


def test_a_column_that_cannot_become_the_tables_type_is_refused_by_name(tmp_path: Path) -> None:
    made = FileTable(tmp_path / "t", SCHEMA)
    location = str(tmp_path / "imported.parquet")
    pq.write_table(pa.table({"id": ["text"]}), location)
    made.files.append(DataFile(file_path=location, file_format="PARQUET", record_count=1, file_size_in_bytes=1))
    with pytest.raises(TypeMismatchError, match=r"'id' of .*imported\.parquet.*long.*string"):
        made.read()


@pytest.mark.parametrize("workers", [1, 3])
def test_a_missing_data_file_names_itself_and_the_table(table: FileTable, workers: int) -> None:
    table.storage.delete(table.files[1].file_path)
    with pytest.raises(MissingFileError) as caught:
        table.read(workers=workers)
    assert table.files[1].file_path in str(caught.value)
    assert str(table.folder) in str(caught.value)


def test_a_missing_delete_file_names_itself(table: FileTable) -> None:
    deletes = table.position_deletes([(table.files[0].file_path, 1)])
    table.delete(table.files, deletes)
    table.storage.delete(deletes.file_path)
    with pytest.raises(MissingFileError, match=r"positions\.parquet"):
        table.read(workers=2)


def test_an_equality_delete_without_a_key_is_refused(table: FileTable) -> None:
    deletes = table.equality_deletes(pa.table({"id": [1]}), SCHEMA.select("id"), (1,))
    table.delete(table.files, _with(deletes, equality_ids=None))
    with pytest.raises(CorruptDataFileError, match="no equality ids"):
        table.read()


def test_reading_stops_when_nobody_reads_on(table: FileTable) -> None:
    tasks = [table.task(file) for file in table.files * 20]
    batches = read_tasks(tasks, SCHEMA, SCHEMA, table.metadata, table.storage, batch_rows=1, workers=3, buffer_bytes=1)
    assert next(batches).num_rows == 1
    batches.close()


@pytest.mark.slow
def test_the_memory_of_a_stream_does_not_grow_with_the_table(tmp_path: Path) -> None:
    made = FileTable(tmp_path / "t", SCHEMA)
    count = 2_000_000
    rows = {"id": pa.array(range(count), pa.int64()), "name": ["x" * 20] * count, "score": [0.5] * count}
    made.append(pa.table(rows))
    del rows
    tasks = [made.task(file) for file in made.files * 15]
    before = pa.total_allocated_bytes()
    total = peak = 0
    for batch in read_tasks(tasks, SCHEMA, SCHEMA, made.metadata, made.storage, workers=2, buffer_bytes=64 << 20):
        total += batch.nbytes
        peak = max(peak, pa.total_allocated_bytes() - before)
    assert total > 1_000_000_000
    assert peak < 400_000_000
