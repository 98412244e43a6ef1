"""Counts and bounds of variants in the metrics of Parquet files."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hms_iceberg.maintenance.check.consistency import check_table
from hms_iceberg.spec.data_types import LongType, NestedField, StructType, VariantType
from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.variant.bounds import bounds_object, field_bounds
from hms_iceberg.spec.variant.building import variant_of
from hms_iceberg.spec.variant.layout import NULL_VALUE, metadata_bytes
from hms_iceberg.spec.variant.variant import Variant
from hms_iceberg.table.table import Table
from hms_iceberg.variant import variant_column
from tests.support.manifest_files import data_files
from tests.support.row_tables import create

SCHEMA = Schema(NestedField(1, "n", LongType()), NestedField(2, "v", VariantType()))
UTC = dt.timezone.utc
SHREDDED = {"write.parquet.shred-variants": "true"}


def values_of(n: int) -> dict[str, Any]:
    return {
        "i": n - 7, "wide": n * 10**12, "real": n / 3 - 1, "exact": Decimal(n - 5).scaleb(-2), "yes": n % 2 == 0,
        "large": Decimal(n).scaleb(-3) + 10**20, "text": "é" * n + "z", "bytes": b"\xff" * n,
        "day": dt.date(1969, 12, 28) + dt.timedelta(n), "at": dt.datetime(1969, 12, 31, 23, 59, 59, n),
        "zoned": dt.datetime(2020, 1, 1, n % 24, tzinfo=UTC), "list": [n], "deep": {"a": {"b": n, "c.d": -n}},
        "mixed": n if n % 2 else "t", "sometimes": n if n % 3 else None, "null": None, "it's": n, "\t\\": n,
        "part": {"p": n} if n % 4 else 5, "nan": math.nan if n == 3 else float(n),
    }  # fmt: skip


def written(tmp_path: Path, values: list[Any], **properties: str) -> DataFile:
    table = create(tmp_path / "table", version=3, schema=SCHEMA, **{**SHREDDED, **properties})
    return appended(table, values)


def appended(table: Table, values: list[Any]) -> DataFile:
    column = variant_column(None if value is None else variant_of(value) for value in values)
    table.append(pa.table({"n": range(len(values)), "v": column}))
    return the_file(table)


def the_file(table: Table) -> DataFile:
    (file,) = data_files(table.metadata, table.storage)
    return file


def bounds(file: DataFile, column: int = 2) -> dict[str, tuple[Any, Any]]:
    """Path to the bounds of the field, as Python values."""
    found = [field_bounds((side or {}).get(column, b"")) for side in (file.lower_bounds, file.upper_bounds)]
    return {path: tuple(python(side.get(path)) for side in found) for path in sorted({*found[0], *found[1]})}


def python(value: bytes | None) -> Any:
    return "none" if value is None else Variant(metadata_bytes([]), value).to_python()


def extremes(values: list[Any], path: str, *names: str) -> dict[str, tuple[Any, Any]]:
    found = []
    for each in values:
        for name in names:
            each = each.get(name) if isinstance(each, dict) else None
        if each is not None:
            found.append(each)
    return {path: (min(found), max(found))}


def test_fields_whose_values_are_of_one_type_have_bounds(tmp_path: Path) -> None:
    values = [values_of(n) for n in range(20)] + [None, {}]
    file = written(tmp_path, values, **{"write.metadata.metrics.default": "full"})
    names = ("i", "wide", "real", "exact", "yes", "large", "text", "bytes", "day", "at", "zoned", "sometimes")
    wanted: dict[str, Any] = {}
    for name in names:
        wanted |= extremes(values, f"$['{name}']", name)
    wanted |= extremes(values, "$['deep']['a']['b']", "deep", "a", "b")
    wanted |= extremes(values, "$['deep']['a']['c.d']", "deep", "a", "c.d")
    wanted |= extremes(values, "$['it\\'s']", "it's") | extremes(values, "$['\\t\\\\']", "\t\\")
    assert bounds(file) == wanted
    assert (file.value_counts or {})[2] == 22
    assert (file.null_value_counts or {})[2] == 1
    assert 2 not in (file.nan_value_counts or {})


def test_fields_of_partly_shredded_objects_have_bounds(tmp_path: Path) -> None:
    values: list[Any] = [{"p": {"q": n, f"other{n}": 1}, f"rest{n}": 2} for n in range(30)] + [{"p": 5}, 7, [1]]
    location = str(tmp_path / "rows.parquet")
    with duckdb.connect() as connection:
        rows = ", ".join(f"({n}, {text}::variant)" for n, text in enumerate(map(duck, values)))
        connection.sql(
            f"copy (select * from (values {rows}) t(n, v)) to '{location}' (format parquet, "
            "shredding {'v': 'STRUCT(p STRUCT(q INTEGER))'})"
        )
    table = create(tmp_path / "table", version=3, schema=SCHEMA)
    table.add_files([location])
    file = the_file(table)
    assert bounds(file) == {"$['p']['q']": (0, 29)}
    assert (file.null_value_counts or {})[2] == 0


def duck(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"'{name}': {duck(each)}" for name, each in value.items()) + "}"
    return str(value)


def test_bounds_of_text_and_bytes_are_cut_as_those_of_columns(tmp_path: Path) -> None:
    values = [{"t": text * 20, "b": data * 20} for text, data in (("é", b"a"), ("😀", b"\xff"))]
    found = bounds(written(tmp_path, values))
    assert found == {"$['b']": (b"a" * 16, "none"), "$['t']": ("é" * 16, "😀" * 15 + "😁")}
    assert bounds(written(tmp_path / "b", [{"t": "\U0010ffff" * 20}])) == {"$['t']": ("\U0010ffff" * 16, "none")}


@pytest.mark.parametrize(("mode", "counted", "bounded"), [("none", 0, 0), ("counts", 1, 0), ("truncate(3)", 1, 1)])
def test_metrics_modes_hold_for_variants(tmp_path: Path, mode: str, counted: int, bounded: int) -> None:
    file = written(tmp_path, [{"t": "abcdef"}, None], **{"write.metadata.metrics.column.v": mode})
    assert (file.null_value_counts or {}).get(2) == (1 if counted else None)
    assert bounds(file) == ({"$['t']": ("abc", "abd")} if bounded else {})


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ([5, 2**40, None], {"$": (5, 2**40)}),
        (["b", "a"], {"$": ("a", "b")}),
        ([1, "a"], {}),
        ([Decimal("0.1"), Decimal("0.01")], {}),
        ([1.5, -0.0, 0.0], {"$": (-0.0, 1.5)}),
        ([1.5, math.nan], {}),
        ([math.nan], {}),
        ([-math.inf, math.inf], {"$": (-math.inf, math.inf)}),
        ([None, None], {}),
        ([[1], [2]], {}),
        ([{"a": None}, {"a": None}], {}),
        ([{"a": 1}, {"a": None}, {}], {"$['a']": (1, 1)}),
        ([True, True], {"$": (True, True)}),
        ([], {}),
    ],
)
def test_bounds_are_given_only_where_all_values_are_of_one_type(
    tmp_path: Path, values: list[Any], wanted: dict[str, Any]
) -> None:
    assert values == [] or bounds(written(tmp_path, values)) == wanted


def test_a_field_that_is_null_in_every_row_leaves_the_metrics_of_all_others_alone(tmp_path: Path) -> None:
    # Java's metrics of such a file fail: the column of the field is there, and has no value.
    values = [{"a": n, "b": "t"} for n in range(5)]
    table = create(
        tmp_path, version=3, schema=SCHEMA, **SHREDDED, **{"write.parquet.variant-inference-buffer-size": "2"}
    )
    column = variant_column(variant_of(value) for value in values)
    location = tmp_path / "rows.parquet"
    pair = pa.struct({"value": pa.binary(), "typed_value": pa.int64()})
    kind = pa.struct({"metadata": pa.binary(), "value": pa.binary(), "typed_value": pa.struct({"a": pair, "b": pair})})
    metadata = column.field(0)[0].as_py()
    typed = [{"a": {"value": None, "typed_value": n}, "b": {"value": None, "typed_value": None}} for n in range(5)]
    rows = [{"metadata": metadata, "value": None, "typed_value": each} for each in typed]
    pq.write_table(pa.table({"n": range(5), "v": pa.array(rows, kind)}), location)
    table.add_files([str(location)])
    file = the_file(table)
    assert bounds(file) == {"$['a']": (0, 4)}
    assert {1, 2} == set(file.null_value_counts or {})


def test_one_value_of_another_type_in_a_later_row_group_takes_the_bounds_away(tmp_path: Path) -> None:
    properties = {"write.parquet.variant-inference-buffer-size": "10", "write.parquet.row-group-size-bytes": "5000"}
    values: list[Any] = [{"a": n % 100, "b": n % 100, "c": float(n)} for n in range(3000)]
    values[2900] = {"a": "text", "b": None, "c": math.nan}
    file = written(tmp_path, values, **properties)
    assert len(file.split_offsets or ()) > 2
    assert bounds(file) == {"$['b']": (0, 99)}


def test_variants_within_structs_have_bounds_and_those_in_lists_have_none(tmp_path: Path) -> None:
    schema = Schema(NestedField(1, "s", StructType(NestedField(2, "v", VariantType()))))
    pair = pa.struct({"metadata": pa.binary(), "value": pa.binary(), "typed_value": pa.int32()})
    rows = [{"v": {"metadata": metadata_bytes([]), "value": None, "typed_value": n}} for n in range(3)]
    location = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"s": pa.array([*rows, None], pa.struct({"v": pair}))}), location)
    table = create(tmp_path / "table", version=3, schema=schema)
    table.add_files([str(location)])
    file = the_file(table)
    assert bounds(file) == {"$": (0, 2)}
    assert (file.value_counts or {})[2] == 4
    assert (file.null_value_counts or {})[2] == 1


def test_files_without_shredded_variants_have_counts(tmp_path: Path) -> None:
    table = create(tmp_path, version=3, schema=SCHEMA)
    file = appended(table, [{"a": 1}, None, None])
    assert bounds(file) == {}
    assert ((file.value_counts or {})[2], (file.null_value_counts or {})[2]) == (3, 2)
    assert len(list(table.scan("v is null").plan_files())) == 1
    assert not check_table(table, record_counts=True, values=True).findings


@pytest.mark.parametrize("damaged", [b"", b"\x01", b"\x01\x01\x00", bounds_object({"$": NULL_VALUE})[:-2], b"\x02\x00"])
def test_damaged_bounds_tell_nothing(damaged: bytes) -> None:
    assert field_bounds(damaged) == {}
