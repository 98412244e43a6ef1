from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import duckdb
import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from hms_iceberg.arrow.columns.arrow_schema import to_arrow
from hms_iceberg.errors import CorruptDataFileError, NullValueError, TypeMismatchError, UnsupportedError
from hms_iceberg.maintenance.rewrite.data_files import rewrite_data_files
from hms_iceberg.spec.data_types import (
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    VariantType,
)
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.variant.building import variant_of
from hms_iceberg.spec.variant.layout import metadata_bytes
from hms_iceberg.table.table import Table
from hms_iceberg.variant import variant_column, variants_to_json, variants_to_python
from tests.support.row_tables import MODES, create

UTC = dt.timezone.utc
NO_NAMES = metadata_bytes([])
SCHEMA = Schema(NestedField(1, "n", LongType()), NestedField(2, "v", VariantType()))

ROWS = """
    select i as n, case
        when i % 7 = 0 then null
        when i % 11 = 0 then ('text ' || i)::variant
        when i % 13 = 0 then [i, null]::variant
        when i % 17 = 0 then {'a': 'no number', 'extra': {'deep': date '2020-01-01'}}::variant
        when i % 19 = 0 then {'ü': 1, 'list': [{'x': i}, {'x': null}]}::variant
        else {'a': i, 'b': repeat('x', 20 + 90 * (i % 4)) || i, 'list': [{'x': i}],
              'e': 1.25::decimal(5, 2), 'f': i / 3, 'g': i % 2 = 0,
              'd': case when i % 2 = 0 then {'z': 1.5::double} end}::variant
    end as v from range(1000) t(i)
"""


PARTS = pa.struct({"metadata": pa.binary(), "value": pa.binary()})
SCHEMA_WITH_NULLS = pa.schema({"n": pa.int64(), "v": PARTS})


def read(folder: Path, schema: Schema, *locations: Path) -> Table:
    table = create(folder / "table", version=3, schema=schema)
    table.add_files([str(location) for location in locations])
    return table


@pytest.mark.parametrize(
    "shredding",
    [
        None,
        "STRUCT(a BIGINT, b VARCHAR, list STRUCT(x BIGINT)[], d STRUCT(z DOUBLE))",
        "STRUCT(a VARCHAR, ü INTEGER, extra STRUCT(other INTEGER))",
        "BIGINT[]",
        "VARCHAR",
    ],
)
def test_shredded_variants_are_what_duckdb_reads(tmp_path: Path, shredding: str | None) -> None:
    location = tmp_path / "rows.parquet"
    options = f", shredding {{'v': '{shredding}'}}" if shredding else ""
    with duckdb.connect() as connection:
        connection.sql(f"copy ({ROWS}) to '{location}' (format parquet, row_group_size 300{options})")
        wanted = connection.sql(f"select n, v::json::varchar from '{location}' order by n").fetchall()
    assert "typed_value" in str(pq.ParquetFile(location).schema)
    table = read(tmp_path, SCHEMA, location)
    rows = table.scan().to_arrow().sort_by("n")
    found = zip(rows["n"].to_pylist(), variants_to_json(rows["v"]).to_pylist(), strict=True)
    assert [(n, v and json.loads(v)) for n, v in found] == [(n, v and json.loads(v)) for n, v in wanted]
    some = table.scan("n >= 990", selected_fields=("v",)).to_arrow()
    assert variants_to_json(some["v"]).to_pylist() == variants_to_json(rows["v"]).to_pylist()[990:]


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.bool_(), [True, False]),
        (pa.int8(), [-128, 127]),
        (pa.int16(), [-(2**15), 5]),
        (pa.int32(), [-(2**31), 5]),
        (pa.int64(), [2**63 - 1, 0]),
        (pa.float32(), [1.5, float("-inf")]),
        (pa.float64(), [1e300, -0.0]),
        (pa.decimal128(5, 2), [Decimal("-999.99"), Decimal("0.01")]),
        (pa.decimal128(18, 0), [Decimal(-(10**17)), Decimal(3)]),
        (pa.decimal128(38, 38), [Decimal("0." + "9" * 38), Decimal("-0." + "1" * 38)]),
        (pa.date32(), [dt.date(1, 1, 1), dt.date(2020, 1, 1)]),
        (pa.time64("us"), [dt.time(0), dt.time(23, 59, 59, 999_999)]),
        (pa.timestamp("us"), [dt.datetime(1, 1, 1), dt.datetime(2020, 1, 1, 1, 1, 1, 1)]),
        (pa.timestamp("us", "UTC"), [dt.datetime(2020, 1, 1, tzinfo=dt.timezone.utc)]),
        (pa.timestamp("ns"), [-1]),
        (pa.timestamp("ns", "UTC"), [2**62]),
        (pa.string(), ["", "ä" * 40]),
        (pa.binary(), [b"", b"\x00" * 100]),
        (pa.binary(16), [UUID(int=5).bytes]),
    ],
    ids=lambda each: str(each) if isinstance(each, pa.DataType) else "",
)
def test_every_primitive_type_can_be_shredded(tmp_path: Path, kind: pa.DataType, values: list[Any]) -> None:
    # A column of the type alone, one that a value of another type stands beside, and elements of lists.
    text = variant_of("other").value
    rows: list[dict[str, Any] | None] = [{"metadata": NO_NAMES, "value": None, "typed_value": each} for each in values]
    rows += [{"metadata": NO_NAMES, "value": text, "typed_value": None}, None]
    rows += [{"metadata": NO_NAMES, "value": None, "typed_value": None}]
    shredded = pa.struct({"metadata": pa.binary(), "value": pa.binary(), "typed_value": kind})
    element = pa.struct({"value": pa.binary(), "typed_value": kind})
    listed = pa.struct({"metadata": pa.binary(), "typed_value": pa.list_(element)})
    lists = [
        {"metadata": NO_NAMES, "typed_value": [{"value": None, "typed_value": each} for each in values]},
        {"metadata": NO_NAMES, "typed_value": [{"value": text, "typed_value": None}]},
        {"metadata": NO_NAMES, "typed_value": []},
        None,
    ]
    lists += [None] * (len(rows) - len(lists))
    location = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"v": pa.array(rows, shredded), "l": pa.array(lists[: len(rows)], listed)}), location)
    schema = Schema(NestedField(1, "v", VariantType()), NestedField(2, "l", VariantType()))
    found = read(tmp_path, schema, location).scan().to_arrow()
    wanted = values
    if kind == pa.binary(16):
        wanted = [UUID(bytes=each) for each in values]
    elif str(kind).startswith("timestamp[ns"):
        wanted = [np.datetime64(each, "ns") for each in values]
    assert repr(variants_to_python(found["v"])) == repr([*wanted, "other", None, None])
    assert found["v"].is_null().to_pylist() == [False] * (len(values) + 1) + [True, False]
    assert repr(variants_to_python(found["l"])[:4]) == repr([wanted, ["other"], [], None][: len(rows)])


def test_variants_below_structs_and_lists_are_read(tmp_path: Path) -> None:
    kind = pa.struct({"value": pa.binary(), "metadata": pa.binary(), "typed_value": pa.int64()})
    five = {"value": None, "metadata": NO_NAMES, "typed_value": 5}
    rows = pa.table(
        {
            "s": pa.array([{"v": five}, None, {"v": None}], pa.struct({"v": kind})),
            "l": pa.array([[five, None], [], None], pa.list_(kind)),
        }
    )
    location = tmp_path / "rows.parquet"
    pq.write_table(rows, location)
    pair = StructType(NestedField(3, "v", VariantType()))
    schema = Schema(NestedField(1, "s", pair), NestedField(2, "l", ListType(4, VariantType())))
    found = read(tmp_path, schema, location).scan().to_arrow()
    five = {"metadata": NO_NAMES, "value": b"\x18" + (5).to_bytes(8, "little")}
    assert found["s"].to_pylist() == [{"v": five}, None, {"v": None}]
    assert found["l"].to_pylist() == [[five, None], [], None]


@pytest.mark.parametrize("name", ["rows.orc", "rows.avro"])
def test_variants_of_orc_and_avro_files_are_read(tmp_path: Path, name: str) -> None:
    rows = documents(0, 12)
    location = tmp_path / name
    if name.endswith("orc"):
        orc.write_table(rows, str(location))
    else:
        fields = [{"name": part, "type": "bytes"} for part in ("metadata", "value")]
        variant = {"type": "record", "name": "r2", "fields": fields, "logicalType": "variant"}
        columns = [{"name": "n", "type": "long"}, {"name": "v", "type": ["null", variant]}]
        with location.open("wb") as file:
            fastavro.writer(file, {"type": "record", "name": "rows", "fields": columns}, rows.to_pylist())
    table = read(tmp_path, SCHEMA, location)
    assert found_in(table) == DOCUMENTS[:12]
    assert table.scan("v is not null").count() == 9
    found = table.scan("variant_get(v, '$.x.y', 'double') > 2 and variant_get(v, '$.list[1]', 'int') < 9").to_arrow()
    assert sorted(found["n"].to_pylist()) == [6, 7, 8]
    table.delete("not (variant_get(v, '$.n', 'int') < 8)")
    assert sorted(table.scan().to_arrow()["n"].to_pylist()) == [0, 1, 2, 3, 4, 5, 6, 7, 10]


OBJECT = variant_of({"b": 1})
FIELD = pa.struct({"value": pa.binary(), "typed_value": pa.int64()})


@pytest.mark.parametrize(
    ("kind", "value", "typed", "problem"),
    [
        (pa.int64(), variant_of(1).value, 5, "both a value and a shredded value"),
        (pa.list_(FIELD), variant_of(1).value, [], "both a value and a shredded value"),
        (pa.struct({"b": FIELD}), variant_of(1).value, {"b": {"typed_value": 1}}, "no object"),
        (pa.struct({"c": FIELD}), OBJECT.value, {"c": {"typed_value": 1}}, "lack the name 'c'"),
        (pa.struct({"b": FIELD}), OBJECT.value[:-1], {"b": {"typed_value": 1}}, "beyond the end"),
    ],
)
def test_shredded_variants_that_contradict_themselves_are_refused(
    tmp_path: Path, kind: pa.DataType, value: bytes, typed: Any, problem: str
) -> None:
    shredded = pa.struct({"metadata": pa.binary(), "value": pa.binary(), "typed_value": kind})
    location = tmp_path / "rows.parquet"
    row = {"metadata": OBJECT.metadata, "value": value, "typed_value": typed}
    pq.write_table(pa.table({"n": [1], "v": pa.array([row], shredded)}), location)
    table = read(tmp_path, SCHEMA, location)
    with pytest.raises(CorruptDataFileError, match=f"column 'v' of .*rows.parquet: .*{problem}"):
        table.scan().to_arrow()
    assert table.scan(selected_fields=("n",)).to_arrow().num_rows == 1


def test_a_shredded_field_counts_as_missing_if_only_the_other_fields_have_it(tmp_path: Path) -> None:
    # As in Java: the file is wrong, and a reader of the shredded field alone would not see it.
    kind = pa.struct({"metadata": pa.binary(), "value": pa.binary(), "typed_value": pa.struct({"b": FIELD})})
    row = {"metadata": OBJECT.metadata, "value": OBJECT.value, "typed_value": {"b": {}}}
    location = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"n": [1], "v": pa.array([row], kind)}), location)
    assert variants_to_python(read(tmp_path, SCHEMA, location).scan().to_arrow()["v"]) == [{}]


@pytest.mark.parametrize("kind", [pa.uint32(), pa.binary(4), pa.time64("ns"), pa.timestamp("ms")], ids=str)
def test_types_that_variants_lack_are_refused(tmp_path: Path, kind: pa.DataType) -> None:
    location = tmp_path / "rows.parquet"
    column = pa.array([None], pa.struct({"metadata": pa.binary(), "typed_value": kind}))
    pq.write_table(pa.table({"n": [1], "v": column}), location)
    with pytest.raises(UnsupportedError, match=r"column 'v' .* no form of a variant"):
        read(tmp_path, SCHEMA, location).scan().to_arrow()


def test_columns_of_variants_are_made_of_python_values(tmp_path: Path) -> None:
    column = variant_column([variant_of({"a": [1]}), None, variant_of(None)])
    assert variants_to_json(pa.chunked_array([column, column])).to_pylist() == ['{"a":[1]}', None, "null"] * 2
    assert variants_to_json(column.slice(1)).to_pylist() == [None, "null"]
    with pytest.raises(TypeMismatchError, match="expected a variant column"):
        variants_to_json(pa.array([1]))


DOCUMENTS = [
    {"n": n, "v": None if n % 5 == 0 else {"n": n, "list": [n, str(n), None], "x": {"y": n / 2}}} for n in range(40)
]


def documents(start: int, stop: int) -> pa.Table:
    rows = DOCUMENTS[start:stop]
    values = variant_column(row["v"] and variant_of(row["v"]) for row in rows)
    return pa.table({"n": [row["n"] for row in rows], "v": values})


def found_in(table: Table) -> list[dict[str, Any]]:
    rows = table.scan().to_arrow().sort_by("n")
    return [{"n": n, "v": v} for n, v in zip(rows["n"].to_pylist(), variants_to_python(rows["v"]), strict=True)]


def found_by_duckdb(table: Table) -> list[dict[str, Any]]:
    files = [task.file.file_path for task in table.scan().plan_files()]
    with duckdb.connect() as connection:
        found = connection.sql(
            f"select n, v::json::varchar, typeof(v) from read_parquet({files}) order by n"
        ).fetchall()
    assert {kind for _, _, kind in found} == {"VARIANT"}
    return [{"n": n, "v": v and json.loads(v)} for n, v, _ in found]


def test_variants_that_are_written_are_what_duckdb_reads(tmp_path: Path) -> None:
    table = create(tmp_path, version=3, schema=SCHEMA, **{"write.parquet.row-group-size-bytes": "1000"})
    table.append(documents(0, 20))
    table.append(documents(20, 40).select(["v", "n"]))
    assert found_in(table) == found_by_duckdb(table) == DOCUMENTS


@pytest.mark.parametrize("mode", MODES)
def test_rows_with_variants_are_changed(tmp_path: Path, mode: str) -> None:
    table = create(tmp_path, version=3, schema=SCHEMA, mode=mode)
    table.append(documents(0, 30))
    table.delete("n = 3")
    table.delete("v is null and n > 20")
    table.update({"n": 104}, "n = 4")
    table.upsert(documents(29, 40), join_cols=["n"])
    kept = [row for row in DOCUMENTS if row["n"] not in (3, 25)]
    wanted = sorted((row | {"n": 104 if row["n"] == 4 else row["n"]} for row in kept), key=lambda row: row["n"])
    assert found_in(table) == wanted
    rewrite_data_files(table, options={"rewrite-all": True})
    table.refresh()
    assert found_in(table) == found_by_duckdb(table) == wanted


def test_variants_below_structs_lists_and_maps_are_written(tmp_path: Path) -> None:
    one = variant_column([variant_of({"a": 1})])[0].as_py()
    pair = StructType(NestedField(4, "v", VariantType(), required=True))
    kinds = {"s": pair, "l": ListType(5, VariantType(), False), "m": MapType(6, StringType(), 7, VariantType(), False)}
    schema = Schema(*(NestedField(place, name, kind) for place, (name, kind) in enumerate(kinds.items(), start=1)))
    table = create(tmp_path, version=3, schema=schema)
    rows = [{"s": {"v": one}, "l": [one, None], "m": [("k", one), ("z", None)]}, {"s": None, "l": [], "m": None}]
    table.append(pa.Table.from_pylist(rows, to_arrow(schema)))
    assert table.scan().to_arrow().to_pylist() == rows
    assert table.scan("variant_get(s.v, '$.a', 'int') = 1").count() == 1
    assert table.scan("variant_get(s.v, '$.a', 'int') is null").count() == 1
    location = next(iter(table.scan().plan_files())).file.file_path
    assert str(pq.ParquetFile(location).schema).count("(Variant(1))") == 3


def test_variants_are_shredded_as_their_first_rows_suggest(tmp_path: Path) -> None:
    shredding = {"write.parquet.shred-variants": "true", "write.parquet.variant-inference-buffer-size": "90"}
    table = create(tmp_path, version=3, schema=SCHEMA, **shredding, **{"write.parquet.row-group-size-bytes": "20000"})
    values: list[Any] = [
        None if n % 31 == 0 else {
            "int": n, "text": f"{n}" * (n % 40), "real": n / 3, "yes": n % 2 == 0, "day": dt.date(1, 1, n % 28 + 1),
            "at": dt.datetime(1969, 12, 31, 23, 59, 59, n), "zoned": dt.datetime(2020, 1, 1, n % 24, tzinfo=UTC),
            "time": dt.time(n % 24), "id": UUID(int=n), "bytes": bytes(n % 5), "exact": Decimal(n).scaleb(-2),
            "scales": Decimal(n).scaleb(-(n % 3)), "mixed": n if n % 2 else "odd", "nulls": None,
            "list": list(range(n % 4)), "nested": {"a": {"b": [{"c": n}, {"c": None}]}, "ä": -n},
            **({"rare": n} if n % 50 == 0 else {}), **({"often": n} if n % 5 == 0 else {}),
        }
        for n in range(300)
    ]  # fmt: skip
    values += ["text", 5, None, [1, 2], {}, {"int": "text", "list": 5, "nested": [], "exact": Decimal("9.999")}] * 20
    column = variant_column(None if value is None else variant_of(value) for value in values)
    table.append(pa.table({"n": range(len(values)), "v": column}))
    rows = table.scan().to_arrow().sort_by("n")
    assert variants_to_python(rows["v"]) == values
    location = next(iter(table.scan().plan_files())).file.file_path
    kind = pq.ParquetFile(location, arrow_extensions_enabled=False).schema_arrow.field("v").type
    typed = {field.name: field.type.field("typed_value").type for field in kind.field("typed_value").type}
    assert {name: str(kind) for name, kind in typed.items() if not pa.types.is_nested(kind)} == {
        "at": "timestamp[us]", "bytes": "binary", "day": "date32[day]", "exact": "decimal128(2, 2)",
        "int": "int8", "often": "int8", "real": "double", "text": "string", "yes": "bool",
        "zoned": "timestamp[us, tz=UTC]",
    }  # fmt: skip
    assert [name for name, kind in typed.items() if pa.types.is_nested(kind)] == ["list", "nested"]
    json_of_duckdb = [row["v"] for row in found_by_duckdb(table)]
    assert [each and each["nested"] for each in json_of_duckdb[:300]] == [
        each and each["nested"] for each in values[:300]
    ]


@pytest.mark.parametrize("mode", MODES)
def test_rows_with_shredded_variants_are_changed(tmp_path: Path, mode: str) -> None:
    table = create(tmp_path, version=3, schema=SCHEMA, mode=mode, **{"write.parquet.shred-variants": "true"})
    table.append(documents(0, 40))
    table.delete("n in (3, 25)")
    table.append(documents(0, 0))
    wanted = [row for row in DOCUMENTS if row["n"] not in (3, 25)]
    assert found_in(table) == wanted
    rewrite_data_files(table, options={"rewrite-all": True})
    table.refresh()
    assert found_in(table) == found_by_duckdb(table) == wanted


@pytest.mark.parametrize("values", [[None], [variant_of(None)] * 9, [variant_of({"a": None})] * 9, [variant_of({})]])
def test_variants_without_any_value_are_written_as_they_are(tmp_path: Path, values: list[Any]) -> None:
    table = create(tmp_path, version=3, schema=SCHEMA, **{"write.parquet.shred-variants": "true"})
    table.append(pa.table({"n": range(len(values)), "v": variant_column(values)}))
    location = next(iter(table.scan().plan_files())).file.file_path
    assert "typed_value" not in str(pq.ParquetFile(location).schema)
    assert variants_to_python(table.scan().to_arrow()["v"]) == [each and each.to_python() for each in values]


def test_what_cannot_be_written_as_variants_is_refused(tmp_path: Path) -> None:
    table = create(tmp_path, version=3, schema=SCHEMA)
    with pytest.raises(TypeMismatchError, match=r"'v'.*hms_iceberg.variant"):
        table.append(pa.table({"n": [1], "v": [{"a": 1}]}))
    with pytest.raises(TypeMismatchError, match=r"'v'.*hms_iceberg.variant"):
        table.append(pa.table({"n": [1], "v": ["text"]}))
    with pytest.raises(NullValueError, match=r"'v'.*lacks its metadata or its value"):
        table.append(pa.table({"n": [1], "v": [{"metadata": b"", "value": None}]}, SCHEMA_WITH_NULLS))
    for name in ("orc", "avro"):
        other = create(tmp_path / name, version=3, schema=SCHEMA, **{"write.format.default": name})
        with pytest.raises(UnsupportedError, match=f"'v' to {name} files.*write.format.default to parquet"):
            other.append(documents(0, 1))
