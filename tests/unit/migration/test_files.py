"""The files of a Hive table: which of them count, what their footers say, and which cannot be migrated."""

from __future__ import annotations

import threading
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hms_iceberg.arrow.metrics.footer_metrics import metrics_modes
from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.errors import InvalidInputError
from hms_iceberg.hms.rows.hive_rows import HiveColumn, HivePartition, HiveStorage, HiveTable
from hms_iceberg.migration.hive.footers import FooterReader, SourceFooters
from hms_iceberg.migration.hive.hive_types import TypeOptions
from hms_iceberg.migration.hive.source import SourceTable, inspect_source, list_files
from hms_iceberg.migration.migration_plan import MigrationOptions
from hms_iceberg.migration.migration_progress import in_threads, silent

SERDE = "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe"


def source_of(location: Path, columns: str, key: str | None = None, *values: str) -> SourceTable:
    """A table at a location; columns as `name type; name type`, partitions below it by their values."""
    pairs = [part.strip().split(" ", 1) for part in columns.split(";")]
    table = HiveTable(
        database="db",
        name="t",
        table_type="MANAGED_TABLE",
        columns=tuple(HiveColumn(*pair) for pair in pairs),
        partition_keys=(HiveColumn(*key.split()),) if key else (),
        storage=HiveStorage(str(location), "", "", SERDE),
        parameters={},
    )
    rows = [HivePartition((value,), HiveStorage(f"{location}/{value}", "", "", SERDE)) for value in values]
    return inspect_source(table, rows, TypeOptions())


def write(path: Path, columns: dict[str, Any], **options: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path, **options)


def read(source: SourceTable, **options: Any) -> SourceFooters:
    storage = ArrowStorage()
    listing = list_files(storage, [row.storage.location for row in source.partitions], 2, silent)
    reader = FooterReader(storage, source, metrics_modes(source.schema, {}))
    return reader.read_all(source, listing.files, 2, silent)


# --------------------------------------------------------------------------------------------- listing


def test_hidden_and_empty_files_are_left_out(tmp_path: Path) -> None:
    for name in ("part-0.parquet", "_SUCCESS", ".part-0.crc", "_temporary/0/part-1", "_metadata", "000000_0"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
    (tmp_path / "part-2.parquet").touch()

    listing = list_files(ArrowStorage(), [str(tmp_path)], 2, silent)

    assert sorted(file.location for file in listing.files) == [f"{tmp_path}/000000_0", f"{tmp_path}/part-0.parquet"]
    assert (listing.empty, listing.in_subdirectories, listing.total_bytes) == (1, None, 2)


def test_a_file_below_a_directory_is_pointed_out(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "f").write_bytes(b"x")

    assert list_files(ArrowStorage(), [str(tmp_path)], 2, silent).in_subdirectories == f"{tmp_path}/deep/f"


@pytest.mark.parametrize("other", ["{}", "{}/./a/", "file://{}/a", "{}/link"])
def test_a_file_in_two_partitions_is_pointed_out(tmp_path: Path, other: str) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "f").write_bytes(b"x")
    if "link" in other:
        (tmp_path / "link").symlink_to(tmp_path / "a")

    listing = list_files(ArrowStorage(), [other.format(tmp_path), f"{tmp_path}/a"], 2, silent)

    assert listing.shared == f"{tmp_path}/a/f"


def test_a_partition_without_a_directory_has_no_files(tmp_path: Path) -> None:
    seen: list[tuple[str, int, int]] = []

    listing = list_files(ArrowStorage(), [f"{tmp_path}/none", f"{tmp_path}/nil"], 1, lambda *step: seen.append(step))

    assert listing.files == ()
    assert seen == [("Listing partitions", 1, 2), ("Listing partitions", 2, 2)]


def test_threads_keep_the_order_and_stop_early_at_a_failure() -> None:
    started = []

    def work(number: int) -> int:
        started.append(number)
        if number == 3:
            raise ValueError(number)
        return number * 2

    assert list(in_threads(lambda n: n * 2, range(100), 4)) == [n * 2 for n in range(100)]
    with pytest.raises(ValueError, match="3"):
        list(in_threads(work, range(10_000), 2))
    assert len(started) < 100


def test_more_threads_than_items_do_no_harm() -> None:
    assert list(in_threads(lambda _: threading.current_thread().name != "", range(2), 8)) == [True, True]


# --------------------------------------------------------------------------------------------- footers


def test_a_file_becomes_a_data_file_with_metrics_and_its_partitions_value(tmp_path: Path) -> None:
    write(tmp_path / "7" / "f.parquet", {"a": pa.array([3, None, 1], pa.int32()), "b": ["x", "y", "z"]})
    source = source_of(tmp_path, "a int; b string", "k int", "7")

    found = read(source)

    assert found.problems == ()
    [file] = found.data_files
    assert (file.partition, file.record_count, file.file_format) == ((7,), 3, "PARQUET")
    assert file.file_size_in_bytes == (tmp_path / "7" / "f.parquet").stat().st_size
    assert file.null_value_counts == {1: 1, 2: 0}
    assert file.lower_bounds == {1: (1).to_bytes(4, "little"), 2: b"x"}
    assert file.upper_bounds == {1: (3).to_bytes(4, "little"), 2: b"z"}


def test_names_are_matched_without_regard_to_case_and_mapped_at_every_depth(tmp_path: Path) -> None:
    struct = pa.struct([("Inner", pa.int32())])
    write(tmp_path / "1.parquet", {"Id": pa.array([1], pa.int32()), "s": pa.array([{"Inner": 1}], struct)})
    write(tmp_path / "2.parquet", {"ID": pa.array([9], pa.int32()), "l": pa.array([[{"Inner": 1}]], pa.list_(struct))})
    source = source_of(tmp_path, "id int; s struct<inner:int>; l array<struct<inner:int>>")

    found = read(source)

    assert sorted(file.upper_bounds[1] for file in found.data_files) == [b"\1\0\0\0", b"\x09\0\0\0"]
    mapping = found.name_mapping
    assert set(mapping.fields[0].names) == {"id", "Id", "ID"}
    assert set(mapping.fields[1].fields[0].names) == {"inner", "Inner"}
    element = mapping.fields[2].fields[0]
    assert element.names[0] == "element"
    assert set(element.fields[0].names) == {"inner", "Inner"}


def test_a_partition_column_inside_of_files_has_no_name_so_that_the_partition_decides(tmp_path: Path) -> None:
    write(tmp_path / "7" / "f.parquet", {"a": pa.array([1], pa.int32()), "K": pa.array([99], pa.int32())})
    source = source_of(tmp_path, "a int", "k int", "7")

    found = read(source)

    assert found.problems == ()
    assert [mapped.names for mapped in found.name_mapping.fields] == [("a",), ()]
    assert 2 not in found.data_files[0].lower_bounds


@pytest.mark.parametrize(
    ("hive", "array"),
    [
        ("int", pa.array([1], pa.int8())),
        ("bigint", pa.array([1], pa.int32())),
        ("double", pa.array([1], pa.float32())),
        ("decimal(9,2)", pa.array([Decimal("1.25")], pa.decimal128(7, 2))),
        ("date", pa.array([1], pa.date32())),
        ("map<string,int>", pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int32()))),
        ("array<bigint>", pa.array([[1]], pa.list_(pa.int32()))),
    ],
)
def test_a_file_with_a_type_that_may_be_promoted_is_taken(tmp_path: Path, hive: str, array: pa.Array) -> None:
    write(tmp_path / "f.parquet", {"a": array})

    assert read(source_of(tmp_path, f"a {hive}")).problems == ()


@pytest.mark.parametrize(
    ("hive", "array", "holds"),
    [
        ("int", pa.array([1], pa.int64()), "int64"),
        ("int", pa.array([1], pa.uint16()), "uint16"),
        ("bigint", pa.array([1], pa.uint32()), "uint32"),
        ("string", pa.array([b"x"], pa.binary()), "binary"),
        ("binary", pa.array(["x"], pa.string()), "string"),
        ("timestamp", pa.array([1], pa.timestamp("ns")), "timestamp[ns]"),
        ("timestamp", pa.array([1], pa.timestamp("ms", tz="UTC")), "timestamp[ms, tz=UTC]"),
        ("float", pa.array([1], pa.float64()), "double"),
        ("string", pa.array([1], pa.int32()), "int32"),
        ("int", pa.array(["1"]), "string"),
        ("decimal(9,2)", pa.array([Decimal("1.125")], pa.decimal128(7, 3)), "decimal128(7, 3)"),
        ("decimal(5,2)", pa.array([Decimal("1.25")], pa.decimal128(7, 2)), "decimal128(7, 2)"),
        ("timestamp", pa.array([1], pa.int64()), "int64"),
        ("array<int>", pa.array(["x"]), "string"),
        ("array<int>", pa.array([["x"]]), "string in the column 'a.element'"),
        ("struct<x:int>", pa.array([{"x": "1"}]), "string in the column 'a.x'"),
    ],
)
def test_a_file_with_another_type_is_refused_with_its_column(
    tmp_path: Path, hive: str, array: pa.Array, holds: str
) -> None:
    write(tmp_path / "f.parquet", {"a": array})

    [problem] = read(source_of(tmp_path, f"a {hive}")).problems

    assert problem.startswith(f"file {tmp_path}/f.parquet holds {holds}")


def test_a_file_that_is_not_parquet_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")

    [problem] = read(source_of(tmp_path, "a int")).problems

    assert f"{tmp_path}/notes.txt" in problem


def test_a_file_with_field_ids_of_its_own_is_refused(tmp_path: Path) -> None:
    field = pa.field("a", pa.int32(), metadata={"PARQUET:field_id": "7"})
    (tmp_path / "x").mkdir()
    pq.write_table(pa.table([pa.array([1], pa.int32())], schema=pa.schema([field])), tmp_path / "x" / "f.parquet")

    [problem] = read(source_of(tmp_path / "x", "a int")).problems

    assert "numbers the column 'a' as field 7" in problem


def test_columns_that_differ_only_in_case_are_refused_even_if_one_is_the_tables(tmp_path: Path) -> None:
    write(tmp_path / "f.parquet", {"id": pa.array([1], pa.int32()), "ID": pa.array([2], pa.int32())})

    [problem] = read(source_of(tmp_path, "id int")).problems

    assert "f.parquet has several columns for 'id': ['id', 'ID']" in problem


def test_columns_that_differ_only_in_case_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "f.parquet", {"A": pa.array([1], pa.int32()), "a ": pa.array([2]), "aA": pa.array([1])})
    write(tmp_path / "g.parquet", {"AB": pa.array([1], pa.int32()), "Ab": pa.array([1], pa.int32())})

    [problem] = read(source_of(tmp_path, "a int; ab int")).problems

    assert "g.parquet has several columns for 'ab'" in problem


@pytest.mark.parametrize(
    ("array", "options", "kinds"),
    [
        (pa.array([1], pa.timestamp("us")), {}, {"local"}),
        (pa.array([1], pa.timestamp("us", tz="UTC")), {}, {"instant"}),
        (pa.array([1], pa.timestamp("us")), {"use_deprecated_int96_timestamps": True}, {"instant"}),
    ],
)
def test_a_timestamp_is_an_instant_or_local_as_its_files_say(
    tmp_path: Path, array: pa.Array, options: dict[str, Any], kinds: set[str]
) -> None:
    write(tmp_path / "f.parquet", {"at": array}, **options)

    found = read(source_of(tmp_path, "at timestamp"))

    assert (found.problems, found.timestamps) == ((), {1: frozenset(kinds)})


def test_at_most_ten_problems_are_collected(tmp_path: Path) -> None:
    for number in range(30):
        (tmp_path / f"{number}").write_text("no Parquet")

    assert len(read(source_of(tmp_path, "a int")).problems) == 10


def test_a_footer_is_read_once_however_often_the_table_is_looked_at(tmp_path: Path) -> None:
    write(tmp_path / "1.parquet", {"a": pa.array([1], pa.int32())})
    source, storage = source_of(tmp_path, "a int"), ArrowStorage()
    reader = FooterReader(storage, source, metrics_modes(source.schema, {}))
    first = list_files(storage, [str(tmp_path)], 1, silent)
    before = reader.read_all(source, first.files, 1, silent)
    write(tmp_path / "2.parquet", {"a": pa.array([2], pa.int32())})
    second = list_files(storage, [str(tmp_path)], 1, silent)

    after = reader.read_all(source, second.files, 1, silent)

    assert any(file is before.data_files[0] for file in after.data_files)
    assert len(after.data_files) == 2


# --------------------------------------------------------------------------------------------- options


@pytest.mark.parametrize("options", [{"timestamp_type": "date"}, {"threads": 0}])
def test_options_that_make_no_sense_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        MigrationOptions(**options)
