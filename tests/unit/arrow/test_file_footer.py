"""Footers as other programs wrote them: bounds that are kept hold for every value, and numbers do not contradict."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest

from hms_iceberg.arrow.columns.projection import file_leaves
from hms_iceberg.arrow.formats.parquet_reader import ParquetReader
from hms_iceberg.arrow.metrics.footer_metrics import data_file_from_parquet, read_footer
from hms_iceberg.arrow.metrics.variant_bounds import variant_bounds
from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.errors import CorruptDataFileError, UnsupportedError
from hms_iceberg.spec.data_types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    StringType,
    TimestampType,
    UUIDType,
)
from hms_iceberg.spec.field_mapping import create_name_mapping
from hms_iceberg.spec.schema import NestedField, Schema
from hms_iceberg.spec.values.single_values import from_bytes
from tests.support.parquet_footers import (
    CHUNK_BYTES,
    CHUNK_VALUES,
    GROUP_BYTES,
    GROUP_ROWS,
    GROUPS,
    ORDERS,
    ROWS,
    STRUCT,
    Struct,
    changed,
    chunks,
    extremes,
    groups,
    set_statistics,
    set_writer,
)

DECIMALS = [Decimal(each) for each in ("1.00", "1.27", "1.28", "2.00", "24.00", "327.68")]
SIGNED_DECIMALS = [*DECIMALS, Decimal("-0.01"), Decimal("-2.56")]


def big_endian(width: int) -> Any:
    return lambda value: int(value.scaleb(2)).to_bytes(width, "big", signed=True)


def little(code: str) -> Any:
    return lambda value: struct.pack(f"<{code}", value)


# Name, Arrow's type, the table's, values, how a file stores one.
COLUMNS: dict[str, tuple[pa.DataType, IcebergType, list[Any], Any]] = {
    "decimals in bytes": (pa.decimal128(25, 2), DecimalType(25, 2), DECIMALS, big_endian(11)),
    "signed decimals in bytes": (pa.decimal128(25, 2), DecimalType(25, 2), SIGNED_DECIMALS, big_endian(11)),
    "text": (pa.string(), StringType(), ["a", "z", "é", "日", "\U0001f680"], str.encode),
    "binary": (pa.binary(), BinaryType(), [b"\x01", b"\x7f", b"\x80", b"\xff\x01"], bytes),
    "fixed": (pa.binary(2), FixedType(2), [b"\x01\x00", b"\x7f\xff", b"\x80\x01"], bytes),
    "uuid": (pa.binary(16), UUIDType(), [UUID(int=1), UUID(int=127 << 120), UUID(int=128 << 120)], lambda v: v.bytes),
    "unsigned": (pa.uint32(), LongType(), [1, 2**31 - 1, 2**31, 2**32 - 1], little("I")),
    "int": (pa.int32(), IntegerType(), [-(2**31), -1, 0, 2**31 - 1], little("i")),
    "long": (pa.int64(), LongType(), [-(2**63), -1, 0, 2**63 - 1], little("q")),
    "date": (pa.date32(), DateType(), [-400_000, -1, 0, 20_000], little("i")),
    "timestamp": (pa.timestamp("us"), TimestampType(), [-1, 0, 10**15], little("q")),
    "boolean": (pa.bool_(), BooleanType(), [False, True], little("?")),
    "float": (pa.float32(), FloatType(), [-1.5, -0.0, 0.0, 2.5], little("f")),
    "double": (pa.float64(), DoubleType(), [-1.5, -0.0, 0.0, 2.5], little("d")),
}
NEW, OLD = True, False
MR = "parquet-mr version {} (build 4aba4dae7bb0d4edbcf7923ae1339f28fd3f7fcf)"
# What each writer is named, whether it says the order of columns, and the types that its statistics are kept of.
PLAIN = {"int", "long", "date", "timestamp", "boolean", "float", "double"}
IN_ORDER = {"text", "binary", "fixed", "uuid"}
BY_TYPE = {"decimals in bytes", "signed decimals in bytes", "unsigned"}
EVERY = PLAIN | IN_ORDER | BY_TYPE
WRITERS: list[tuple[str | None, bool, set[str]]] = [
    (MR.format("1.6.0"), OLD, PLAIN),
    (MR.format("1.8.2"), OLD, PLAIN),
    (MR.format("1.9.0-cdh6.3.2"), OLD, PLAIN),
    (MR.format("1.10.0-SNAPSHOT"), OLD, PLAIN),
    (MR.format("1.10.0"), NEW, EVERY),
    (MR.format("1.12.3-databricks-0001"), NEW, EVERY),
    ("parquet-mr", OLD, PLAIN),
    ("parquet-mr-trino version 421 (build n/a)", NEW, EVERY),
    ("parquet-cpp-arrow version 26.0.1", NEW, EVERY),
    ("parquet-cpp-arrow version 26.0.1", OLD, PLAIN),
    ("parquet-cpp version 1.2.0", OLD, PLAIN - {"float", "double"}),
    ("parquet-cpp version 1.5.1-SNAPSHOT", NEW, PLAIN | IN_ORDER),
    ("impala version 2.9.0-RELEASE (build n/a)", OLD, PLAIN - {"float", "double"}),
    ("impala version 4.0.0-RELEASE (build n/a)", NEW, EVERY),
    ("DuckDB v1.4.0", NEW, EVERY),
    ("parquet-rs version 0.3.0", OLD, PLAIN),
    ("parquet-rs version 55.1.0", NEW, PLAIN | IN_ORDER),
    ("github.com/parquet-go/parquet-go version 0.32.0(build )", NEW, PLAIN | IN_ORDER),
    ("Polars", NEW, PLAIN | IN_ORDER),
    ("HVR 5.3.0/9 (linux_glibc2.5-x64-64bit)", OLD, PLAIN),
    ("", OLD, PLAIN),
    (None, OLD, PLAIN),
    (None, NEW, PLAIN | IN_ORDER),
]


def written(folder: Path, name: str, values: list[Any]) -> str:
    """A file of a column of values and a null."""
    arrow = COLUMNS[name][0]
    array = pa.array([each.bytes if isinstance(each, UUID) else each for each in [*values, None]], arrow)
    location = str(folder / "f.parquet")
    pq.write_table(pa.table({"c": array}), location)
    return location


def bounds(location: str, kind: IcebergType) -> tuple[Any, Any] | None:
    """The bounds that a manifest would have; None without any."""
    schema = Schema(NestedField(1, "c", kind))
    file = data_file_from_parquet(ArrowStorage(), location, schema, name_mapping=create_name_mapping(schema))
    assert (file.value_counts, file.record_count) == ({1: file.record_count}, file.record_count)
    if 1 not in (file.lower_bounds or {}):
        return None
    assert file.lower_bounds is not None
    low, high = file.lower_bounds[1], (file.upper_bounds or {}).get(1)
    return from_bytes(kind, low), None if high is None else from_bytes(kind, high)


def by_writer(
    created_by: str | None, ordered: bool, pair: tuple[bytes, bytes], nulls: int = 1
) -> Callable[[Struct], None]:
    """Gives the first column of a file the extremes that a writer left."""

    def change(footer: Struct) -> None:
        set_writer(footer, created_by, ordered=ordered)
        set_statistics(chunks(groups(footer)[0])[0], *pair, old=not ordered, nulls=nulls)

    return change


@pytest.mark.parametrize("name", COLUMNS)
def test_bounds_are_kept_of_the_writers_that_order_a_type_and_cover_its_values(tmp_path: Path, name: str) -> None:
    _, kind, values, store = COLUMNS[name]
    written(tmp_path, name, values)
    whole = (tmp_path / "f.parquet").read_bytes()
    stored = {store(each): each for each in values}
    true = store(min(values)), store(max(values))
    if name in ("float", "double"):
        true = store(-1.5), store(2.5)
    wrong = {extremes(stored, order) for order in ("unsigned", "signed")} - {true}
    for created_by, ordered, kept in WRITERS:
        for pair in {true} if name in kept else {true, *wrong}:
            (tmp_path / "f.parquet").write_bytes(whole)
            found = bounds(changed(tmp_path / "f.parquet", by_writer(created_by, ordered, pair)), kind)
            assert (found is not None) == (name in kept), (created_by, ordered, pair)
            if found is not None:
                assert found[0] <= min(values) <= max(values) <= found[1], (created_by, ordered, found)


@pytest.mark.parametrize("name", ["decimals in bytes", "text", "binary", "fixed"])
@pytest.mark.parametrize(
    ("created_by", "ordered", "kept"),
    [
        (MR.format("1.6.0"), OLD, False),  # wrote over the bytes
        (MR.format("1.8.0rc2"), OLD, False),
        (MR.format("1.8.0"), OLD, True),
        ("parquet-mr", OLD, False),
        ("parquet-mr version (build abc)", OLD, False),
        ("HVR 5.3.0/9", OLD, False),
        (None, OLD, False),
        ("impala version 2.2.0", OLD, True),
        ("Polars", NEW, True),
    ],
)
def test_one_value_has_no_order_but_may_have_been_overwritten(
    tmp_path: Path, name: str, created_by: str | None, ordered: bool, kept: bool
) -> None:
    _, kind, values, store = COLUMNS[name]
    location = written(tmp_path, name, [values[2]])
    found = bounds(changed(location, by_writer(created_by, ordered, (store(values[2]),) * 2)), kind)
    assert (found is not None) == (kept and (ordered or "decimals" in name))  # pyarrow gives no others
    assert found is None or found[0] <= values[2] <= found[1]


@pytest.mark.parametrize("name", ["signed decimals in bytes", "text", "int", "unsigned", "double"])
def test_extremes_that_lie_the_wrong_way_round_are_not_believed_of_anyone(tmp_path: Path, name: str) -> None:
    _, kind, values, store = COLUMNS[name]
    location = written(tmp_path, name, values)
    low, high = store(min(values)), store(max(values))
    changed(location, lambda footer: set_statistics(chunks(groups(footer)[0])[0], high, low, old=False))
    assert bounds(location, kind) is None


@pytest.mark.parametrize(("low", "high"), [(1.0, math.nan), (math.nan, 1.0), (math.nan, math.nan)])
def test_extremes_of_floats_that_are_not_a_number_are_not_believed(tmp_path: Path, low: float, high: float) -> None:
    location = written(tmp_path, "double", [1.0, math.nan])
    pair = struct.pack("<d", low), struct.pack("<d", high)
    changed(location, lambda footer: set_statistics(chunks(groups(footer)[0])[0], *pair, old=False))
    assert bounds(location, DoubleType()) is None


def test_a_zero_stands_for_either_sign(tmp_path: Path) -> None:
    location = written(tmp_path, "double", [-0.0, 0.0])
    changed(
        location,
        lambda footer: set_statistics(
            chunks(groups(footer)[0])[0], struct.pack("<d", 0.0), struct.pack("<d", -0.0), old=False
        ),
    )
    found = bounds(location, DoubleType())
    assert found is not None
    assert [math.copysign(1, each) for each in found] == [-1, 1]


@pytest.mark.parametrize("columns", [3, 20])
def test_orders_are_told_for_each_column(tmp_path: Path, columns: int) -> None:
    location = tmp_path / "f.parquet"
    values = pa.array(DECIMALS, COLUMNS["decimals in bytes"][0])
    pq.write_table(pa.table({f"c{number}": values for number in range(columns)}), location)
    true = big_endian(11)(DECIMALS[0]), big_endian(11)(DECIMALS[-1])
    wrong = extremes(map(big_endian(11), DECIMALS), "signed")
    assert wrong != true

    def change(footer: Struct) -> None:
        footer[ORDERS][1][1][1] = {7: (STRUCT, {})}  # of a kind that is not known yet
        set_statistics(chunks(groups(footer)[0])[1], *wrong, old=True)

    footer = read_footer(ArrowStorage(), changed(location, change))
    kept = [footer.statistics(0, leaf).extremes for leaf in range(columns)]
    assert kept == [true, None, *[true] * (columns - 2)]


@pytest.mark.parametrize(
    ("values", "options", "stored"),
    [
        (pa.array([1.0, 2.0], pa.float16()), {}, (b"\x00\x3c", b"\x00\x40")),
        (pa.array([1, 2], pa.timestamp("ns")), {"use_deprecated_int96_timestamps": True}, (b"\0" * 12, b"\1" * 12)),
    ],
)
def test_types_without_an_order_that_columns_have_tell_no_extremes(
    tmp_path: Path, values: pa.Array, options: dict[str, Any], stored: tuple[bytes, bytes]
) -> None:
    location = str(tmp_path / "f.parquet")
    pq.write_table(pa.table({"c": values}), location, **options)
    changed(location, lambda footer: set_statistics(chunks(groups(footer)[0])[0], *stored, old=False))
    assert read_footer(ArrowStorage(), location).statistics(0, 0).extremes is None


@pytest.mark.parametrize("nulls", [-1, 6, 2**40])
def test_more_nulls_than_values_are_not_believed(tmp_path: Path, nulls: int) -> None:
    location = written(tmp_path, "int", COLUMNS["int"][2])
    changed(location, by_writer("parquet-cpp-arrow version 26.0.1", NEW, (b"\1\0\0\0", b"\2\0\0\0"), nulls))
    found = read_footer(ArrowStorage(), location).statistics(0, 0)
    assert (found.values, found.nulls, found.extremes) == (5, None, (1, 2))


def test_a_row_group_without_known_extremes_leaves_the_file_without_bounds(tmp_path: Path) -> None:
    location = tmp_path / "f.parquet"
    pq.write_table(pa.table({"c": pa.array(DECIMALS, pa.decimal128(25, 2))}), location, row_group_size=1)
    assert bounds(str(location), DecimalType(25, 2)) == (min(DECIMALS), max(DECIMALS))

    def change(footer: Struct) -> None:
        set_writer(footer, MR.format("1.8.2"), ordered=False)
        for number, group in enumerate(groups(footer)):
            stored = big_endian(11)(DECIMALS[number])
            set_statistics(chunks(group)[0], stored, stored if number else big_endian(11)(Decimal(99)), old=True)

    assert bounds(changed(location, change), DecimalType(25, 2)) is None


def test_values_of_variants_have_no_bounds_that_old_statistics_tell(tmp_path: Path) -> None:
    kind = pa.struct(
        [("metadata", pa.binary()), ("typed_value", pa.struct([("d", pa.struct([("typed_value", pa.string())]))]))]
    )
    rows = [{"metadata": b"\x01\x00\x00", "typed_value": {"d": {"typed_value": each}}} for each in ("a", "é")]
    location = tmp_path / "f.parquet"
    pq.write_table(pa.table({"v": pa.array(rows, kind)}), location)

    def found() -> tuple[bytes | None, bytes | None]:
        footer = read_footer(ArrowStorage(), str(location))
        leaves = [
            leaf for leaf in file_leaves(footer.metadata.schema.to_arrow_schema()) if leaf.path[-1] == "typed_value"
        ]
        return variant_bounds(footer, [0], [replace(leaf, below=leaf.path[1:]) for leaf in leaves], None, {}, ())

    assert found()[0] is not None

    def change(footer: Struct) -> None:
        set_writer(footer, MR.format("1.8.2"), ordered=False)
        set_statistics(chunks(groups(footer)[0])[1], "é".encode(), b"a", old=True)

    changed(location, change)
    assert found() == (None, None)


def test_a_file_with_columns_that_are_encrypted_by_parquets_own_keys_is_refused(tmp_path: Path) -> None:
    class Keys(pe.KmsClient):  # type: ignore[misc]
        def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> bytes:
            return key_bytes.hex().encode()

        def unwrap_key(self, wrapped_key: bytes, master_key_identifier: str) -> bytes:
            return bytes.fromhex(wrapped_key.decode())

    settings = pe.EncryptionConfiguration(footer_key="f", column_keys={"k": ["a"]}, plaintext_footer=True)
    properties = pe.CryptoFactory(lambda _: Keys()).file_encryption_properties(pe.KmsConnectionConfig(), settings)
    rows = pa.table({"a": [1], "c": ["x"]})
    location = str(tmp_path / "f.parquet")
    with pq.ParquetWriter(location, rows.schema, encryption_properties=properties) as writer:
        writer.write_table(rows)
    with pytest.raises(UnsupportedError, match=r"f\.parquet.*encrypted"):
        read_footer(ArrowStorage(), location)
    with pytest.raises(UnsupportedError, match=r"f\.parquet.*encrypted"):
        ParquetReader(ArrowStorage(), location, None)


# ---------------------------------------------------------------------------------------------- numbers of rows


def of_group(number: int, value: int) -> Any:
    def change(footer: Struct) -> None:
        groups(footer)[0][number] = (groups(footer)[0][number][0], value)

    return change


def of_chunk(number: int, value: int) -> Any:
    def change(footer: Struct) -> None:
        chunk = chunks(groups(footer)[0])[0]
        chunk[number] = (chunk[number][0], value)

    return change


def of_footer(value: int) -> Any:
    def change(footer: Struct) -> None:
        footer[ROWS] = (footer[ROWS][0], value)

    return change


def without_a_group(footer: Struct) -> None:
    footer[GROUPS][1][1].pop()


@pytest.mark.parametrize(
    "change",
    [
        of_footer(5),
        of_footer(7),
        of_footer(-6),
        without_a_group,
        of_group(GROUP_ROWS, 2),
        of_group(GROUP_ROWS, -3),
        of_group(GROUP_BYTES, -1),
        of_chunk(CHUNK_VALUES, 2),
        of_chunk(CHUNK_VALUES, 4),
        of_chunk(CHUNK_VALUES, -3),
        of_chunk(CHUNK_BYTES, -1),
    ],
)
def test_footers_that_contradict_themselves_are_refused(tmp_path: Path, change: Any) -> None:
    location = tmp_path / "f.parquet"
    pq.write_table(pa.table({"c": range(6), "l": [[1, 2], [], None] * 2}), location, row_group_size=3)
    read_footer(ArrowStorage(), str(location))
    changed(location, change)
    with pytest.raises(CorruptDataFileError, match=r"f\.parquet"):
        read_footer(ArrowStorage(), str(location))


def test_a_footer_that_says_no_rows_has_those_of_its_row_groups(tmp_path: Path) -> None:
    location = tmp_path / "f.parquet"
    pq.write_table(pa.table({"c": range(6)}), location, row_group_size=4)
    changed(location, of_footer(0))
    assert read_footer(ArrowStorage(), str(location)).rows == 6
