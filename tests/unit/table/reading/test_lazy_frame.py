from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from polars.testing import assert_frame_equal

from hms_iceberg.arrow.formats import parquet_frames
from hms_iceberg.spec.data_types import (
    BooleanType,
    DateType,
    DoubleType,
    FixedType,
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
from hms_iceberg.spec.schema import Schema
from hms_iceberg.table import Table
from hms_iceberg.table.reading.lazy_frame import pushed_down
from tests.support.row_tables import create, live

SCHEMA = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "city", StringType()),
    NestedField(3, "day", DateType()),
    NestedField(4, "at", TimestampType()),
    NestedField(5, "zoned", TimestamptzType()),
    NestedField(6, "x", DoubleType()),
    NestedField(7, "flag", BooleanType()),
    NestedField(8, "s", StructType(NestedField(9, "n", LongType()), NestedField(10, "t", StringType()))),
)
START = dt.datetime(2026, 1, 1)


def row(key: int) -> dict[str, Any]:
    return {
        "id": key,
        "city": None if key % 7 == 0 else ("Oslo", "Rome", "Bonn")[key % 3],
        "day": (START + dt.timedelta(days=key)).date(),
        "at": START + dt.timedelta(hours=key),
        "zoned": (START + dt.timedelta(hours=key)).replace(tzinfo=dt.timezone.utc),
        "x": float("nan") if key % 5 == 0 else key / 2,
        "flag": key % 2 == 0,
        "s": None if key % 4 == 0 else {"n": key, "t": str(key)},
    }


@pytest.fixture(autouse=True, params=["pyarrow", "polars"])
def decoder(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_LEAST_WORK", "_LEAST_FILTERED_WORK"):
        monkeypatch.setattr(parquet_frames, name, 0 if request.param == "polars" else 1 << 60)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    made = create(tmp_path_factory.mktemp("lazy"), schema=SCHEMA)
    schema = made.scan().to_arrow().schema
    for start in range(0, 40, 10):
        made.append(pa.Table.from_pylist([row(key) for key in range(start, start + 10)], schema=schema))
    return made


UTC = dt.timezone.utc
QUERIES: dict[str, tuple[pl.Expr, int]] = {
    "equal": (pl.col("id") == 15, 1),
    "turned": (pl.lit(33) <= pl.col("id"), 1),
    "both": ((pl.col("id") > 12) & (pl.col("id") < 18), 1),
    "either": ((pl.col("id") < 3) | (pl.col("id") > 35), 2),
    "between": (pl.col("id").is_between(11, 12), 1),
    "date": (pl.col("day") < dt.date(2026, 1, 4), 1),
    "timestamp": (pl.col("at") >= START + dt.timedelta(hours=31), 1),
    "with zone": (pl.col("zoned") == START.replace(tzinfo=UTC) + dt.timedelta(hours=3), 1),
    "prefix": (pl.col("city").str.starts_with("R"), 4),
    "null": (pl.col("city").is_null() & (pl.col("id") < 10), 1),
    "not null": (pl.col("city").is_not_null(), 4),
    "nan": (pl.col("x").is_nan() & (pl.col("id") > 33), 1),
    "above NaN": (pl.col("x") > 19, 4),
    "flag": (pl.col("flag") & (pl.col("id") > 35), 1),
    "field of a struct": (pl.col("s").struct.field("n") == 13, 1),
    "partly understood": ((pl.col("id") + 1 == 14) & (pl.col("id") < 20), 2),
    "not understood": (~(pl.col("id") + 1 == 14), 4),
    "half of an or": ((pl.col("id") == 3) | (pl.col("id") % 2 == 0), 4),
    "in": (pl.col("id").is_in([3, 4]), 4),
}


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_gives_what_polars_gives_over_all_rows_and_plans_only_files_that_may_match(
    table: Table, name: str
) -> None:
    test, files = QUERIES[name]
    every = table.scan().to_polars()
    found = table.to_polars().filter(test).select("id", "city").collect()
    assert_frame_equal(found.sort("id"), every.filter(test).select("id", "city").sort("id"))
    pushed = pushed_down(test)
    scan = table.scan() if pushed is None else table.scan(pushed)
    assert len(list(scan.plan_files())) == files


def test_only_the_columns_and_rows_of_a_query_are_read(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    first = next(iter(table.scan().plan_files())).file.file_path
    others = [Path(each.file_path.removeprefix("file:")) for each in live(table) if each.file_path != first]
    moved = [(each, each.with_suffix(".gone")) for each in others]
    for old, new in moved:
        old.rename(new)
    try:
        assert table.to_polars().head(5).collect().height == 5
    finally:
        for old, new in moved:
            new.rename(old)
    assert table.to_polars().select("flag").collect().columns == ["flag"]
    assert table.scan(selected_fields=("s.n", "id")).to_polars_lazy().select("s").collect()["s"].dtype == pl.Struct(
        {"n": pl.Int64}
    )


def test_filters_and_limits_of_the_scan_stay(table: Table) -> None:
    lazy = table.scan("id < 12", limit=7).to_polars_lazy()
    assert lazy.collect().height == 7
    assert lazy.filter(pl.col("id") >= 100).collect().height == 0
    seven = lazy.collect()["id"]
    assert lazy.filter(pl.col("id") == 0).collect().height == int((seven == 0).sum())
    narrowed = table.scan("id < 12").to_polars_lazy().filter(pl.col("id") >= 9).collect()
    assert sorted(narrowed["id"]) == [9, 10, 11]


def test_a_scan_without_rows_has_its_columns(table: Table) -> None:
    lazy = table.scan("id < 0").to_polars_lazy()
    assert lazy.collect_schema().names() == [field.name for field in SCHEMA.fields]
    assert lazy.collect().schema == lazy.collect_schema()
    assert lazy.select("day").collect().schema == {"day": pl.Date}


def test_uuids_and_fixed_bytes_in_nested_columns_are_bytes(tmp_path: Path) -> None:
    kind, raw = pa.binary(16), bytes(range(16))
    uuids = pa.schema(
        [
            ("u", kind),
            ("l", pa.list_(kind)),
            ("m", pa.map_(pa.string(), kind)),
            ("s", pa.struct([("x", kind), ("l", pa.list_(pa.struct([("y", kind)])))])),
        ]
    )
    within = StructType(NestedField(16, "y", UUIDType()))
    deep = StructType(NestedField(13, "x", UUIDType()), NestedField(14, "l", ListType(15, within, False)))
    schema = Schema(
        NestedField(1, "u", UUIDType()),
        NestedField(2, "l", ListType(10, UUIDType(), False)),
        NestedField(3, "m", MapType(11, StringType(), 12, FixedType(16), False)),
        NestedField(4, "s", deep),
    )
    value = {"u": raw, "l": [raw, None], "m": [("k", raw)], "s": {"x": raw, "l": [{"y": raw}, None]}}
    table = create(tmp_path / "uuids", schema=schema)
    table.append(pa.Table.from_pylist([value, dict.fromkeys(uuids.names)], schema=uuids))

    lazy = table.to_polars()
    frames = [table.scan().to_polars(), lazy.collect(), lazy.filter(pl.col("u") == raw).collect()]

    assert [frame.height for frame in frames] == [2, 2, 1]
    for frame in frames:
        assert frame.schema == frames[0].schema
        full = frame.filter(pl.col("u").is_not_null()).to_arrow().to_pylist()
        assert [row["l"] for row in full] == [value["l"]] and [row["s"] for row in full] == [value["s"]]
    assert table.scan("l is null").to_polars_lazy().collect().height == 1
