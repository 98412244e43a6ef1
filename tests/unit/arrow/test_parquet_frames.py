"""Row groups that Polars decodes have the rows, and the values, that pyarrow gives."""

from __future__ import annotations

import datetime as dt
import math
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hms_iceberg.arrow.columns.arrow_schema import to_arrow
from hms_iceberg.arrow.columns.frames import empty_frame, to_polars
from hms_iceberg.arrow.deletes.puffin import write_deletion_vectors
from hms_iceberg.arrow.formats import parquet_frames
from hms_iceberg.arrow.formats.parquet_frames import FrameReader
from hms_iceberg.arrow.formats.parquet_reader import ParquetReader
from hms_iceberg.arrow.reading.read import read_frames
from hms_iceberg.arrow.reading.scan_context import WantedFrame
from hms_iceberg.errors import CorruptDataFileError
from hms_iceberg.expressions.literals import Literal, Operator, literal, stored_literal
from hms_iceberg.expressions.terms import Reference
from hms_iceberg.expressions.tree import And, BooleanExpression, Not, Or, predicate
from hms_iceberg.spec import metadata_columns as columns
from hms_iceberg.spec.data_types import (
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    NestedField,
    StringType,
    TimestampType,
)
from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.spec.schema import Schema
from tests.support.arrow_tables import FileTable, arrow_rows
from tests.support.flat_rows import ROWS, SCHEMA, VALUES, exact, some_rows

ORDERED = [Operator.EQ, Operator.NOT_EQ, Operator.LT, Operator.LT_EQ, Operator.GT, Operator.GT_EQ]


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Reads a table both ways, compares the rows, and tells how many row groups Polars decoded, of small files alone or
    together."""

    original = FrameReader.read
    decoded: list[Any] = []

    def frames_of(table: FileTable, row_filter: Any, projected: Schema) -> pa.Table:
        empty = empty_frame(projected)
        tasks = [table.task(file, row_filter) for file in table.files]
        wanted = WantedFrame(empty.schema)
        frames = read_frames(tasks, table.schema, projected, table.metadata, table.storage, wanted)
        return pl.concat([empty, *frames]).to_arrow(compat_level=pl.CompatLevel.oldest())

    def spy(self: FrameReader, *given: Any) -> Any:
        found = original(self, *given)
        others = given[-1] if len(given) == 10 else ()
        groups = [*given[0], *(group for each in others for group in each.groups)]
        decoded.extend([] if found is None else groups)
        return found

    monkeypatch.setattr(FrameReader, "read", spy)

    def both(table: FileTable, row_filter: Any = None, projected: Schema | None = None, **options: Any) -> int:
        found = []
        decoded.clear()
        for least in (0, 1 << 60):
            monkeypatch.setattr(parquet_frames, "_LEAST_WORK", least)
            monkeypatch.setattr(parquet_frames, "_LEAST_FILTERED_WORK", least)
            found.append(table.read(row_filter, projected, **options))
        by_polars, by_pyarrow = found
        by_polars.validate(full=True)
        assert by_polars.schema == by_pyarrow.schema
        assert exact(by_polars) == exact(by_pyarrow), str(row_filter)
        count = len(decoded)
        if projected is None or projected.fields:
            monkeypatch.setattr(parquet_frames, "_LEAST_WORK", 0)
            monkeypatch.setattr(parquet_frames, "_LEAST_FILTERED_WORK", 0)
            frames = frames_of(table, row_filter, projected or table.schema)
            expected = to_polars(by_pyarrow).to_arrow(compat_level=pl.CompatLevel.oldest())
            assert exact(frames) == exact(expected), str(row_filter)
        return count

    return both


def written(folder: Path, seed: int = 1, **properties: str) -> FileTable:
    """A table of six files: nulls here and there, none, nothing else; each of several row groups, and each of one."""
    draw = random.Random(seed)
    table = FileTable(folder, SCHEMA, properties={"write.parquet.row-group-limit": "50", **properties})
    for rows in (ROWS, 40):
        for nulls in (0.2, 0.0, 1.0):
            table.append(arrow_rows(some_rows(draw, rows, nulls), SCHEMA))
    return table


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> FileTable:
    return written(tmp_path_factory.mktemp("frames"))


def test_every_type_and_pattern_of_nulls_comes_out_the_same(table: FileTable, read: Callable[..., int]) -> None:
    assert read(table) == 12
    assert read(table, batch_rows=7) == 12
    assert read(table, workers=3) == 12


@pytest.mark.parametrize(
    "properties",
    [
        {"write.parquet.compression-codec": "none"},
        {"write.parquet.compression-codec": "gzip", "write.parquet.page-version": "v2"},
        {"write.parquet.compression-codec": "lz4", "write.parquet.page-row-limit": "9"},
        {"write.parquet.dict-size-bytes": "20"},
    ],
    ids=str,
)
def test_codecs_pages_and_dictionaries_that_overflow_make_no_difference(
    tmp_path: Path, read: Callable[..., int], properties: dict[str, str]
) -> None:
    assert read(written(tmp_path, 2, **properties), predicate(Operator.GT, Reference("id"), literal(30))) > 4


def every_test(name: str, kind: IcebergType, draw: random.Random) -> Iterator[BooleanExpression]:
    """Every test that a column of a type can be put to."""
    column = Reference(name)
    yield predicate(Operator.IS_NULL, column)
    yield predicate(Operator.NOT_NULL, column)
    values = [each for each in VALUES[kind] if each == each]
    if isinstance(kind, (FloatType, DoubleType)):
        yield predicate(Operator.IS_NAN, column)
        yield predicate(Operator.NOT_NAN, column)
    for operator in ORDERED:
        yield predicate(operator, column, value_of(draw.choice(values), kind))
    several = [value_of(each, kind) for each in draw.sample(values, min(3, len(values)))]
    yield predicate(Operator.IN, column, several)
    yield predicate(Operator.NOT_IN, column, several)
    if isinstance(kind, StringType):
        yield predicate(Operator.STARTS_WITH, column, literal("a"))
        yield predicate(Operator.NOT_STARTS_WITH, column, literal("a"))


def value_of(value: Any, kind: IcebergType) -> Literal:
    return stored_literal(value, kind)


def test_every_filter_takes_the_same_rows(table: FileTable, read: Callable[..., int]) -> None:
    draw = random.Random(3)
    small = replace(table, files=table.files[:1])
    found = [test for field in SCHEMA.fields[1:] for test in every_test(field.name, field.field_type, draw)]
    projected = SCHEMA.select("id")
    assert sum(read(small, test, projected) > 0 for test in found) > len(found) // 2
    for _ in range(30):
        first, second, third = draw.sample(found, 3)
        read(
            small, draw.choice([And, Or])(first, Not(draw.choice([And, Or])(second, third))), SCHEMA.select("c 9", "id")
        )


def test_polars_decides_filters_without_columns_that_nobody_asked_for(
    table: FileTable, read: Callable[..., int]
) -> None:
    test = predicate(Operator.GT, Reference("c 4"), value_of(0, LongType()))
    assert read(table, test, Schema()) > 0
    assert read(table, test, Schema(columns.POSITION, columns.FILE)) > 0


def test_a_filter_of_very_many_tests_is_left_to_pyarrow(table: FileTable, read: Callable[..., int]) -> None:
    test = Or(*(predicate(Operator.EQ, Reference("id"), literal(key)) for key in range(0, 2000, 7)))
    assert read(table, test) > 0


def test_columns_that_were_renamed_moved_promoted_dropped_and_added_anew_come_out_the_same(
    tmp_path: Path, read: Callable[..., int]
) -> None:
    old = Schema(
        NestedField(1, "id", LongType(), required=True),
        NestedField(2, "i", IntegerType()),
        NestedField(3, "f", FloatType()),
        NestedField(4, "d", DecimalType(9, 2)),
        NestedField(5, "s", StringType()),
        NestedField(6, "day", DateType()),
    )
    draw = random.Random(5)
    rows = [(key, *(draw.choice([None, *VALUES[kind.field_type]]) for kind in old.fields[1:])) for key in range(ROWS)]
    before = FileTable(tmp_path, old)
    before.append(arrow_rows(rows, old))
    new = Schema(
        NestedField(8, "i", StringType(), initial_default="anew", write_default="anew"),
        NestedField(4, "money", DecimalType(18, 2)),
        NestedField(6, "s", DateType()),
        NestedField(2, "n", LongType()),
        NestedField(3, "f", DoubleType()),
        NestedField(9, "more", IntegerType()),
        NestedField(1, "key", LongType(), required=True),
        schema_id=1,
    )
    table = replace(before, schema=new, old_schemas=(old,))
    table.append(arrow_rows([("x", Decimal("1.25"), 3, 2**40, 0.5, 4, -1)], new))
    assert read(table) == 2
    for text in (
        "n > 0",
        "f >= 0.1",
        "f = 0.0",
        "money < 1.25",
        "i = 'anew'",
        "more is null",
        "s is not null",
        "n in (1, -7)",
    ):
        read(table, text)
        read(table, f"{text} and key > 10", new.select("key", "i"))


@pytest.mark.parametrize("row_filter", [None, "id > 20", "id < 0"])
def test_rows_that_deletes_of_any_kind_remove_are_left_out(
    tmp_path: Path, read: Callable[..., int], row_filter: str | None
) -> None:
    table = written(tmp_path)
    first, second, third, *small = table.files
    table.delete([first], table.position_deletes([(first.file_path, at) for at in (0, 7, 49, 50, 119)]))
    table.delete([first], table.position_deletes([(first.file_path, at) for at in (7, 8)], "more.parquet"))
    gone = [(second, list(range(0, 120, 3))), (small[1], [0, 1, 39])]
    for vector in write_deletion_vectors(table.storage, f"{tmp_path}/v.puffin", gone):
        table.delete([file for file, _ in gone if file.file_path == vector.referenced_data_file], vector)
    table.delete([small[2]], table.position_deletes([(small[2].file_path, at) for at in (2, 38)], "small.parquet"))
    table.delete([third], table.position_deletes([(third.file_path, at) for at in range(50, 100)], "group.parquet"))
    keys = SCHEMA.select("c 6")
    keys_gone = pa.table({"c 6": pa.array([math.nan, 0.0, None], pa.float64())})
    table.delete([first, third], table.equality_deletes(keys_gone, keys, (6,)))
    read(table, row_filter)
    extra = Schema(*SCHEMA.fields, columns.POSITION, columns.FILE, columns.SPEC_ID, columns.DELETED)
    assert read(table, row_filter, extra) > 0 or row_filter == "id < 0"
    lineage = Schema(SCHEMA.fields[0], columns.ROW_ID, columns.LAST_UPDATED_SEQUENCE_NUMBER)
    table.files[:] = [replace(each, first_row_id=1000 * index) for index, each in enumerate(table.files)]
    read(table, row_filter, lineage)


def add(table: FileTable, rows: pa.Table, name: str, **options: Any) -> None:
    """A file that another writer wrote."""
    path = str(table.folder / name)
    table.folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows, path, **options)
    size = table.storage.length(path)
    table.files.append(
        DataFile(file_path=path, file_format="PARQUET", record_count=rows.num_rows, file_size_in_bytes=size)
    )


MAPPING = '[{"field-id": 1, "names": ["key"]}, {"field-id": 2, "names": ["at"]}, {"field-id": 3, "names": ["s", "t"]}]'
FOREIGN = Schema(
    NestedField(1, "id", LongType()), NestedField(2, "time", TimestampType()), NestedField(3, "s", StringType())
)
TIMES = [dt.datetime(2020, 1, 2, 3, 4, 5), None, dt.datetime(1960, 2, 3), dt.datetime(1700, 1, 1)]


def test_files_of_other_writers_come_out_the_same(tmp_path: Path, read: Callable[..., int]) -> None:
    table = FileTable(tmp_path, FOREIGN, properties={"schema.name-mapping.default": MAPPING})
    long = pa.table({"key": [1, None, 3, 4], "at": pa.array(TIMES, pa.timestamp("us")), "t": ["a", None, "", "b"]})
    kinds = {
        "plain": long,
        "large": long.cast(pa.schema([("key", pa.int64()), ("at", pa.timestamp("us")), ("t", pa.large_string())])),
        "ms": long.cast(pa.schema([("key", pa.int32()), ("at", pa.timestamp("ms")), ("t", pa.string())])),
        "small": long.cast(pa.schema([("key", pa.uint16()), ("at", pa.timestamp("us", "UTC")), ("t", pa.binary())])),
        "nanos": long.cast(pa.schema([("key", pa.int8()), ("at", pa.timestamp("ns")), ("t", pa.string())])),
        "coded": long.set_column(2, "t", long["t"].dictionary_encode()),
        "turned": long.select(["t", "at", "key"]),
        "less": long.select(["key"]),
        "twice": pa.Table.from_arrays([long["key"], long["key"], long["t"]], names=["key", "key", "t"]),
        "other": long.append_column("other", pa.array([[1], None, [], [2]])),
        "none": long.slice(0, 0),
    }
    for name, rows in kinds.items():
        add(table, rows, f"{name}.parquet")
        add(table, rows, f"{name} without schema [a-b]*.parquet", store_schema=False, row_group_size=3)
    add(table, long, "int96.parquet", use_deprecated_int96_timestamps=True)
    add(
        table,
        long.cast(pa.schema([("key", pa.int64()), ("at", pa.timestamp("us")), ("t", pa.string())])),
        "v1.parquet",
        version="1.0",
    )
    for row_filter in (
        None,
        "id > 1",
        "id is null",
        "time < '2000-01-01T00:00:00'",
        "s = 'a'",
        "s in ('a', 'b') and id < 9",
    ):
        assert read(table, row_filter) > 4
    without = replace(table, properties={}, files=table.files[:2])
    read(without, None, FOREIGN.select("id"))


def test_int96_times_lists_and_huge_row_groups_are_left_to_pyarrow(tmp_path: Path, read: Callable[..., int]) -> None:
    schema = Schema(*FOREIGN.fields, NestedField(4, "l", ListType(5, LongType())))
    table = FileTable(tmp_path, schema)
    rows = pa.table({"id": [1, 2], "time": pa.array(TIMES[:2], pa.timestamp("us")), "s": ["a", "b"], "l": [[1], None]})
    add(table, rows.cast(to_arrow(schema)), "a.parquet", use_deprecated_int96_timestamps=True)
    assert [read(table, None, schema.select(name)) for name in ("id", "time", "s", "l")] == [1, 0, 1, 0]
    assert read(table, "time > '1900-01-01T00:00:00'", schema.select("id")) == 0
    assert read(table, None, schema.select("id"), decoded_bytes=1) == 0


def test_a_flipped_bit_in_a_page_is_found_before_polars_makes_wrong_rows_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet_frames, "_LEAST_WORK", 0)
    table = FileTable(tmp_path, SCHEMA.select("id"), properties={"write.parquet.compression-codec": "none"})
    table.append(pa.table({"id": pa.array(range(5000), pa.int64())}, schema=to_arrow(table.schema)))
    path = Path(table.files[0].file_path)
    right = path.read_bytes()
    chunk = pq.read_metadata(path).row_group(0).column(0)
    for at in (chunk.data_page_offset + 60, chunk.data_page_offset + chunk.total_compressed_size - 5):
        damaged = bytearray(right)
        damaged[at] ^= 4
        path.write_bytes(damaged)
        with pytest.raises(CorruptDataFileError):
            table.read()


def test_row_groups_that_follow_one_another_are_decoded_together(
    tmp_path: Path, read: Callable[..., int], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = FileTable(tmp_path, SCHEMA.select("id", "c 4"), properties={"write.parquet.row-group-limit": "10"})
    table.append(arrow_rows([(key, key % 7) for key in range(200)], table.schema))
    original, runs = FrameReader.read, []

    def spy(self: FrameReader, groups: list[int], *given: Any) -> Any:
        runs.append(groups)
        return original(self, groups, *given)

    monkeypatch.setattr(FrameReader, "read", spy)
    monkeypatch.setattr(parquet_frames, "_LEAST_WORK", 0)
    monkeypatch.setattr(parquet_frames, "_LEAST_FILTERED_WORK", 0)
    table.read()
    assert runs == [[0], [1, 2], [3, 4, 5, 6], [*range(7, 15)], [*range(15, 20)]]
    runs.clear()
    rows = table.read("id < 35 or id >= 150")
    assert runs == [[0], [1, 2], [3], [*range(15, 20)]]
    assert rows["id"].to_pylist() == [*range(35), *range(150, 200)]
    table.delete(table.files, table.position_deletes([(table.files[0].file_path, at) for at in (5, 31, 199)]))
    assert table.read("id > 29", Schema(columns.POSITION))[0].to_pylist() == [30, *range(32, 199)]
    assert read(table, "id > 29") > 0


def test_batches_of_small_files_are_joined_before_they_become_a_frame(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet_frames, "_LEAST_WORK", 500)
    monkeypatch.setattr(parquet_frames, "_LEAST_FILTERED_WORK", 500)
    schema = SCHEMA.select("id")
    table = FileTable(tmp_path, schema)
    sizes, first = (3, 4, 900, 5, 6, 800, 2), 0
    for size in sizes:
        table.properties["write.format.default"] = "parquet" if size > 100 else "orc"
        table.append(pa.table({"id": pa.array(range(first, first + size), pa.int64())}, schema=to_arrow(schema)))
        first += size
    wanted = WantedFrame(empty_frame(schema).schema)
    tasks = [table.task(file, "id >= 1") for file in table.files]
    frames = list(read_frames(tasks, schema, schema, table.metadata, table.storage, wanted))
    assert [frame.height for frame in frames] == [6, 900, 11, 800, 2]
    assert pl.concat(frames)["id"].to_list() == [*range(1, first)]


def test_the_memory_of_decoded_rows_is_told_by_the_footer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_frames, "_LEAST_WORK", 0)
    rows = pa.table({"n": range(2000), "s": [str(key) * 30 for key in range(2000)], "f": [0.5] * 2000})
    table = FileTable(tmp_path, FOREIGN)
    add(table, rows, "long.parquet", row_group_size=500, use_dictionary=False)
    reader = ParquetReader(table.storage, table.files[0].file_path, None)
    assert reader.frames is not None
    told = reader.frames.decoded_bytes([0, 1, 2, 3], [0, 1, 2])
    reader.close()
    assert 0.8 < told / pl.read_parquet(table.files[0].file_path).estimated_size() < 1.25


def test_what_polars_refuses_is_read_by_pyarrow(
    table: FileTable, read: Callable[..., int], monkeypatch: pytest.MonkeyPatch
) -> None:
    original = ParquetReader.__init__

    def moved(self: ParquetReader, *given: Any) -> None:
        original(self, *given)
        if self.frames is not None:
            self.frames._path = "/nowhere"
            refused.append(self)

    refused: list[ParquetReader] = []
    monkeypatch.setattr(ParquetReader, "__init__", moved)
    assert read(table, "id > 3") == 0
    assert refused
