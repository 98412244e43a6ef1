"""Arrow data of every layout is written as what it says, or refused before anything is written."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hms_iceberg.arrow.columns.arrow_schema import from_arrow
from hms_iceberg.arrow.columns.casting import SchemaFit
from hms_iceberg.catalog.catalog import Catalog
from hms_iceberg.catalog.loading import load_catalog
from hms_iceberg.errors import TypeMismatchError
from hms_iceberg.table.table import Table
from tests.support.arrow_inputs import LAYOUTS, Given, comparable, plain_leaves

LEAVES = plain_leaves()
# Lists of it have no form in files.
_UNKNOWN = ("plain of null", "dictionary of null", "runs of null", "struct of null")


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    catalog = load_catalog("folder", type="hadoop", warehouse=str(tmp_path))
    catalog.create_namespace("n")
    return catalog


def layouts(leaves: dict[str, Given], depth: int) -> Iterator[tuple[str, Given]]:
    if not depth:
        yield from leaves.items()
        return
    for name, given in layouts(leaves, depth - 1):
        for layout, made in LAYOUTS.items():
            if layout != "plain" or depth == 1:
                try:
                    yield f"{layout} of {name}", made(given)
                except pa.ArrowNotImplementedError:  # pyarrow cannot make it for the test
                    assert "runs" in name or layout == "runs"


def table_of(catalog: Catalog, schema: pa.Schema, **properties: str) -> Table:
    return catalog.create_table("n.t", schema, properties={"format-version": "3", **properties})


def live_files(table: Table) -> list[Path]:
    folder = Path(table.location().removeprefix("file:")) / "data"
    return sorted(folder.rglob("*")) if folder.exists() else []


def test_every_layout_within_every_other_keeps_its_values() -> None:
    some = {name: LEAVES[name] for name in ("int64", "bool8", "uuid", "null", "decimal256(6, 2)")}
    text = {"string_view": LEAVES["string_view"]}
    for name, (array, values) in (*layouts(LEAVES, 1), *layouts(some, 2), *layouts(text, 3)):
        array.validate(full=True)
        schema = from_arrow(pa.schema([("c", array.type)]), 3)
        batch = pa.record_batch([array], names=["c"])
        fitted = SchemaFit(batch.schema, schema).fit(batch)
        fitted.validate(full=True)
        assert comparable(fitted.column(0).to_pylist()) == comparable(values), name


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_every_layout_is_read_back_as_it_was_given(catalog: Catalog, file_format: str) -> None:
    given = dict([*layouts(LEAVES, 1), *layouts({"string_view": LEAVES["string_view"]}, 2)])
    given = {name: each for name, each in given.items() if name in _UNKNOWN or not name.endswith("of null")}
    if file_format == "avro":  # whose maps have each key once
        given = {name: each for name, each in given.items() if "map" not in name}
    rows = pa.table({name: array for name, (array, _) in given.items()})
    table = table_of(catalog, rows.schema, **{"write.format.default": file_format})
    table.append(rows)
    got = table.scan().to_arrow()
    assert got.num_rows == 4
    for name, (_, values) in given.items():
        assert comparable(got[name].to_pylist()) == comparable(values), name


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_upsert_and_overwrite_take_every_layout(catalog: Catalog, mode: str) -> None:
    given = dict(layouts({name: LEAVES[name] for name in ("string_view", "decimal64(6, 2)", "bool8")}, 1))
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([1, 2, 3, 4], pa.int32()), pa.array([10, 11, 12, 13]))
    keys = pa.array(["a", "b", "c", "d"]).dictionary_encode()
    rows = pa.table({"id": runs, "key": keys, **{name: array for name, (array, _) in given.items()}})
    table = table_of(catalog, rows.schema, **{"write.merge.mode": mode, "write.delete.mode": mode})
    table.append(rows.slice(1, 2))
    assert table.upsert(rows, join_cols=["id", "key"]).rows_inserted == 2
    table.overwrite(rows.slice(2), "id >= 12")
    got = table.scan().to_arrow().sort_by("id")
    assert got["id"].to_pylist() == [10, 11, 12, 13]
    assert got["key"].to_pylist() == ["a", "b", "c", "d"]
    for name, (_, values) in given.items():
        assert comparable(got[name].to_pylist()) == comparable(values), name


def raw(kind: pa.DataType, values: Any, validity: bytes | None = None) -> pa.Array:
    """An array of bytes that nothing has looked at."""
    buffers = [validity and pa.py_buffer(validity), pa.py_buffer(values.tobytes())]
    return pa.Array.from_buffers(kind, len(values), buffers)


def text(data: bytes, validity: bytes | None = None, ends: list[int] | None = None) -> pa.Array:
    """Text of these bytes and offsets, whether they are right or not; one value by default."""
    ends = ends or [0, len(data)]
    offsets = pa.py_buffer(np.array(ends, np.int32).tobytes())
    buffers = [validity and pa.py_buffer(validity), offsets, pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.string(), len(ends) - 1, buffers)


def list_of(kind: pa.DataType, *parts: Any, validity: bytes | None = None) -> pa.Array:
    """A list or list view of three values, of these offsets and sizes, whether they are right or not."""
    buffers = [
        validity and pa.py_buffer(validity),
        *(pa.py_buffer(np.array(part, np.int32).tobytes()) for part in parts),
    ]
    length = len(parts[0]) - (len(parts) == 1)
    return pa.Array.from_buffers(kind, length, buffers, children=[pa.array([1, 2, 3])])


def runs(ends: list[int]) -> pa.Array:
    """Runs with these ends, whether they are right or not."""
    kind = pa.run_end_encoded(pa.int32(), pa.int64())
    children = [pa.array(ends, pa.int32()), pa.array(range(len(ends)))]
    return pa.Array.from_buffers(kind, ends[-1], [None], children=children)


def map_with_null_key() -> pa.Array:
    """A map with a key that its dictionary says is null; pyarrow does not make one of a plain null."""
    keys = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int8()), pa.array(["a", None]))
    return pa.MapArray.from_arrays(pa.array([0, 2], pa.int32()), keys, pa.array([1, 2]))


BROKEN: dict[str, tuple[pa.Array, pa.DataType]] = {
    "text that is none": (text(b"\xff\xfe"), pa.string()),
    "large text that is none": (pa.array([b"a", b"\xff"], pa.large_binary()).view(pa.large_string()), pa.string()),
    "a character in two values": (text("ä".encode(), ends=[0, 1, 2]), pa.string()),
    "text beyond its bytes": (text(b"abc", ends=[0, 9, 3]), pa.string()),
    "text that goes back": (text(b"abcdef", ends=[0, 4, 2, 6]), pa.string()),
    "more digits than its type": (raw(pa.decimal128(4, 2), np.array([123456, 0], np.int64)[None]), pa.decimal128(4, 2)),
    "an hour of no day": (raw(pa.time64("us"), np.array([86_400_000_000])), pa.time64("us")),
    "half a day": (raw(pa.date64(), np.array([43_200_000])), pa.date32()),
    "a list view beyond its values": (list_of(pa.list_view(pa.int64()), [0, 2], [1, 5]), pa.list_(pa.int64())),
    "a list view of negative size": (list_of(pa.list_view(pa.int64()), [0, 1], [1, -1]), pa.list_(pa.int64())),
    "a list beyond its values": (list_of(pa.list_(pa.int64()), [0, 9, 3]), pa.list_(pa.int64())),
    "a list that goes back": (list_of(pa.list_(pa.int64()), [0, 3, 1, 2]), pa.list_(pa.int64())),
    "a map with a null key": (map_with_null_key(), pa.map_(pa.string(), pa.int64())),
    "a dictionary's missing value": (
        pa.DictionaryArray.from_arrays(pa.array([0, 5]), pa.array(["a"]), safe=False),
        pa.string(),
    ),
    "a dictionary's negative place": (
        pa.DictionaryArray.from_arrays(pa.array([0, -1]), pa.array(["a"]), safe=False),
        pa.string(),
    ),
    "runs that go back": (runs([2, 1, 3]), pa.int64()),
    "a time too far for microseconds": (raw(pa.timestamp("s"), np.array([2**62])), pa.timestamp("us")),
    "nanoseconds below a microsecond": (raw(pa.timestamp("ns"), np.array([1])), pa.timestamp("us")),
    "a number too wide": (pa.array([2**40]).dictionary_encode(), pa.int32()),
    "sparse union": (
        pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1])]),
        pa.int64(),
    ),
    "dense union": (
        pa.UnionArray.from_dense(pa.array([0], pa.int8()), pa.array([0], pa.int32()), [pa.array([1])]),
        pa.int64(),
    ),
    "months and days": (pa.array([pa.MonthDayNano([1, 2, 3])]), pa.int64()),
    "a duration": (pa.array([dt.timedelta(1)]), pa.int64()),
    "a decimal of 39 digits": (pa.array([Decimal(10**38)], pa.decimal256(39, 0)), pa.decimal128(38, 0)),
    "a decimal of negative scale": (pa.array([Decimal(100)], pa.decimal128(3, -2)), pa.decimal128(5, 0)),
    "an opaque extension": (
        pa.ExtensionArray.from_storage(pa.opaque(pa.int64(), "x", "y"), pa.array([1])),
        pa.int64(),
    ),
    "a tensor": (
        pa.FixedShapeTensorArray.from_numpy_ndarray(np.zeros((1, 2, 2), np.int64)),
        pa.list_(pa.int64()),
    ),
    "a uuid for bytes": (pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"a" * 16], pa.binary(16))), pa.binary()),
    "JSON for bytes": (pa.ExtensionArray.from_storage(pa.json_(pa.string()), pa.array(["{}"])), pa.binary()),
}


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("case", BROKEN)
def test_what_contradicts_itself_or_does_not_fit_is_refused_before_anything_is_written(
    catalog: Catalog, case: str, nested: bool
) -> None:
    array, kind = BROKEN[case]
    if nested:
        array = pa.StructArray.from_arrays([array], names=["c"])
        kind = pa.struct([("c", kind)])
    table = table_of(catalog, pa.schema([("c", kind)]))
    with pytest.raises(TypeMismatchError, match=r"column 'c.*of table n\.t"):
        table.append(pa.table({"c": array}))
    assert live_files(table) == []
    assert table.refresh().current_snapshot() is None


def test_what_lies_behind_nulls_is_not_looked_at(catalog: Catalog) -> None:
    hidden = b"\x01"  # the second of two values is null
    given = {
        "s": raw(pa.timestamp("s"), np.array([1, 2**62]), hidden),
        "ns": raw(pa.timestamp("ns"), np.array([1000, 1]), hidden),
        "clock": raw(pa.time64("ns"), np.array([1000, 2**62 + 1]), hidden),
        "day": raw(pa.date64(), np.array([86_400_000, 1]), hidden),
        "text": pa.concat_arrays([pa.array(["a"]), text(b"\xff", b"\0")]),
        "list": list_of(pa.list_view(pa.int64()), [0, 2], [1, 2**30], validity=hidden),
    }
    kinds = {"s": pa.timestamp("us"), "ns": pa.timestamp("us"), "clock": pa.time64("us"), "day": pa.date32()}
    table = catalog.create_table("n.t", pa.schema(kinds | {"text": pa.string(), "list": pa.list_(pa.int64())}))
    table.append(pa.table(given))
    second = dt.datetime(1970, 1, 1, 0, 0, 1)
    micro = dt.datetime(1970, 1, 1, 0, 0, 0, 1)
    assert table.scan().to_arrow().to_pylist() == [
        {"s": second, "ns": micro, "clock": micro.time(), "day": dt.date(1970, 1, 2), "text": "a", "list": [1]},
        dict.fromkeys(given),
    ]


def test_a_map_with_a_key_twice_is_kept_or_refused(catalog: Catalog) -> None:
    array, values = LAYOUTS["map"](LEAVES["int64"])
    for file_format in ("parquet", "orc"):
        properties = {"write.format.default": file_format}
        table = catalog.create_table(f"n.{file_format}", pa.schema([("m", array.type)]), properties=properties)
        table.append(pa.table({"m": array}))
        assert table.scan().to_arrow()["m"].to_pylist() == values
    table = table_of(catalog, pa.schema([("m", array.type)]), **{"write.format.default": "avro"})
    with pytest.raises(TypeMismatchError, match="the key '1' twice"):
        table.append(pa.table({"m": array}))
    assert [each for each in live_files(table) if each.is_file()] == []
    table.append(pa.table({"m": array.slice(1)}))
    assert table.scan().to_arrow()["m"].to_pylist() == values[1:]


@pytest.mark.parametrize("layout", ["fixed list", "large list with hidden values", "struct", "dictionary"])
def test_files_that_say_another_kind_of_list_or_text_are_read(catalog: Catalog, tmp_path: Path, layout: str) -> None:
    """Parquet files of Arrow hold its types, by which readers give their columns."""
    leaves = {name: LEAVES[name] for name in ("string_view", "large_string", "int64", "timestamp[ns]")}
    leaves["inner"] = LAYOUTS["fixed list"](LEAVES["int64"])
    given = {name: LAYOUTS[layout](leaf) for name, leaf in leaves.items() if (layout, name) != ("dictionary", "inner")}
    if layout == "dictionary":
        given = {
            name: (array.cast(array.type.value_type).dictionary_encode(), values)
            for name, (array, values) in given.items()
            if "view" not in name
        }
    rows = pa.table({name: array for name, (array, _) in given.items()})
    pq.write_table(rows, tmp_path / "given.parquet")
    table = table_of(catalog, rows.schema)
    table.add_files([str(tmp_path / "given.parquet")])
    got = table.scan().to_arrow()
    for name, (_, values) in given.items():
        assert comparable(got[name].to_pylist()) == comparable(values), name
        assert comparable(table.scan(selected_fields=(name,)).to_arrow()[name].to_pylist()) == comparable(values)


def test_frames_of_polars_are_taken_as_they_are(catalog: Catalog) -> None:
    frame = pl.DataFrame(
        {
            "category": pl.Series(["b", "a", None], dtype=pl.Categorical),
            "enum": pl.Series(["a", None, "b"], dtype=pl.Enum(["b", "a"])),
            "categories": pl.Series([["b", None], None, []], dtype=pl.List(pl.Categorical)),
            "enums": pl.Series([["a", "b"], None, [None, "a"]], dtype=pl.Array(pl.Enum(["b", "a"]), 2)),
            "rows": pl.Series([{"e": "a"}, None, {"e": None}], dtype=pl.Struct({"e": pl.Enum(["a"])})),
            "clock": pl.Series([dt.time(1), None, dt.time(23, 59, 59, 999999)]),
            "time": pl.Series([dt.datetime(2020, 1, 1), None, None], dtype=pl.Datetime("ns", "Asia/Kathmandu")),
            "tiny": pl.Series([1, None, 255], dtype=pl.UInt8),
            "bytes": pl.Series([b"a", None, b""]),
        }
    )
    kinds = {
        **dict.fromkeys(("category", "enum"), pa.string()),
        **dict.fromkeys(("categories", "enums"), pa.list_(pa.string())),
        "rows": pa.struct([("e", pa.string())]),
        "clock": pa.time64("us"),
        "time": pa.timestamp("us", "UTC"),
        "tiny": pa.int32(),
        "bytes": pa.binary(),
    }
    table = catalog.create_table("n.t", pa.schema(kinds))
    for given in (frame, frame.to_arrow(), pa.table(frame), frame.lazy().collect()):
        table.overwrite(given)
        assert comparable(table.scan().to_arrow().to_pylist()) == comparable(frame.to_dicts())


def test_a_frame_with_a_type_that_pyarrow_lacks_is_refused_by_name(catalog: Catalog) -> None:
    table = catalog.create_table("n.t", pa.schema([("id", pa.int64())]))
    with pytest.raises(TypeMismatchError, match=r"Cannot write DataFrame: pyarrow has no type .*_pli128"):
        table.append(pl.DataFrame({"id": pl.Series([1], dtype=pl.Int128)}))
