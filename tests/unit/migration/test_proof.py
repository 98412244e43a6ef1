"""Summaries of tables: equal for the same rows in any order and any pieces, unlike for any other."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from hms_iceberg.migration.verify import TableSummary, differences, empty_summary, summarise

SCHEMA = pa.schema(
    [
        ("i", pa.int64()),
        ("s", pa.string()),
        ("f", pa.float64()),
        ("d", pa.decimal128(38, 2)),
        ("at", pa.timestamp("us", tz="UTC")),
        ("b", pa.binary()),
        ("l", pa.list_(pa.int32())),
        ("st", pa.struct([("x", pa.int32())])),
        ("m", pa.map_(pa.string(), pa.int32())),
    ]
)
MOMENT = dt.datetime(2013, 1, 1, tzinfo=dt.timezone.utc)
ROWS: list[dict[str, Any]] = [
    {"i": (1 << 63) - 1, "s": "a", "f": float("nan"), "d": Decimal("9" * 36 + ".99"), "at": MOMENT, "b": b"\0"},
    {"i": (1 << 63) - 1, "s": "", "f": -0.5, "d": Decimal("9" * 36 + ".99"), "at": None, "b": b""},
    {"i": None, "s": None, "f": None, "d": None, "l": [1, None], "st": {"x": 1}, "m": [("k", 1)]},
    {"i": -5, "s": "ü", "f": 2.5, "l": [], "st": None, "m": []},
]


def summary(*groups: list[dict[str, Any]]) -> TableSummary:
    batches = [pa.RecordBatch.from_pylist(group, schema=SCHEMA) for group in groups]
    return summarise(batches, SCHEMA)


def test_a_summary_does_not_depend_on_the_order_of_rows_or_on_how_they_are_cut() -> None:
    whole = summary(ROWS)

    assert summary(ROWS[::-1]) == summary(ROWS[:1], [], ROWS[1:]) == whole
    assert summary(ROWS[2:]).plus(summary(ROWS[:2])) == whole
    assert whole.plus(empty_summary(SCHEMA)) == whole and list(differences(whole, whole)) == []


def test_sums_are_exact_however_large_they_are() -> None:
    columns = summary(ROWS).columns

    assert columns["i"].total == str(2 * ((1 << 63) - 1) - 5)
    assert columns["d"].total == "1" + "9" * 36 + ".98"
    assert (columns["f"].nulls, columns["f"].nans, columns["f"].least, columns["f"].greatest) == (1, 1, -0.5, 2.5)
    assert (columns["at"].least, columns["s"].greatest, columns["l"].total) == (MOMENT.isoformat(), "ü", None)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("i", 0),
        ("s", "A"),
        ("f", None),
        ("d", Decimal("1")),
        ("at", MOMENT + dt.timedelta(microseconds=1)),
        ("b", None),
        ("l", [1]),
        ("st", {"x": None}),
        ("m", [("k", 2)]),
    ],
)
def test_any_other_value_is_a_difference_in_its_column(column: str, value: Any) -> None:
    found = list(differences(summary(ROWS), summary([{**ROWS[0], column: value}, *ROWS[1:]])))

    assert found and all(each.startswith(f"column '{column}'") for each in found)


def test_a_row_that_is_there_twice_is_a_difference() -> None:
    found = list(differences(summary(ROWS), summary([*ROWS, ROWS[0], ROWS[0]])))

    assert found[0] == "the Hive table has 4 rows, the Iceberg table 6"


def test_values_in_other_rows_are_a_difference() -> None:
    swapped = [{**ROWS[0], "s": ROWS[1]["s"]}, {**ROWS[1], "s": ROWS[0]["s"]}, *ROWS[2:]]

    assert list(differences(summary(ROWS), summary(swapped))) == [
        "the values of every column are the same, but stand in other rows"
    ]
