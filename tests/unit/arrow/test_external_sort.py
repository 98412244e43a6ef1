"""Rows that do not fit into memory are sorted as if they did."""

from __future__ import annotations

import math
import random
import resource
import tempfile
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, product
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from hms_iceberg.arrow.rows.row_order import RowSorter, ZOrder, along_hilbert
from hms_iceberg.arrow.writing.external_sort import sorted_parts
from hms_iceberg.errors import StorageError
from hms_iceberg.spec.data_types import DoubleType, LongType, NestedField, StringType
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.sort_orders import NullOrder, SortDirection, SortField, SortOrder
from hms_iceberg.spec.transforms.partition_transforms import IdentityTransform

SCHEMA = Schema(NestedField(1, "a", LongType()), NestedField(2, "b", StringType()), NestedField(3, "c", DoubleType()))
ARROW = pa.schema([("a", pa.int64()), ("b", pa.string()), ("c", pa.float64())])
ASC, DESC, FIRST, LAST = SortDirection.ASC, SortDirection.DESC, NullOrder.NULLS_FIRST, NullOrder.NULLS_LAST


def random_rows(count: int, distinct: int) -> pa.Table:
    chance = random.Random(distinct)
    numbers = [None if chance.random() < 0.1 else chance.randrange(distinct) for _ in range(count)]
    texts = [None if chance.random() < 0.1 else chr(97 + chance.randrange(26)) * 3 for _ in range(count)]
    doubles = [chance.choice([None, math.nan, -1.5, 0.0, 2.5]) for _ in range(count)]
    return pa.table({"a": numbers, "b": texts, "c": doubles}, schema=ARROW)


def in_order(rows: pa.Table, order: Any, memory: int, parts: int = 1) -> pa.Table:
    """The rows of all parts, which are read side by side."""
    with (
        sorted_parts(rows.to_batches(max_chunksize=1000), ARROW, order, memory, parts) as found,
        ThreadPoolExecutor(parts) as pool,
    ):
        assert len(found) == parts
        return pa.Table.from_batches(chain.from_iterable(pool.map(list, found)), ARROW)


@pytest.mark.parametrize("memory", [1, 50_000, 10**9])
@pytest.mark.parametrize(("distinct", "parts"), [(1, 2), (5, 1), (5, 3), (10_000, 1), (10_000, 2)])
def test_the_order_is_that_of_a_database(memory: int, distinct: int, parts: int) -> None:
    rows = random_rows(6_000, distinct)
    fields = [(1, DESC, LAST), (2, ASC, FIRST), (3, ASC, LAST)]
    order = SortOrder(*(SortField(source, IdentityTransform(), way, nulls) for source, way, nulls in fields))
    found = in_order(rows, RowSorter(SCHEMA, order), memory, parts)
    expected = duckdb.sql("from rows order by a desc nulls last, b nulls first, c nulls last").to_arrow_table()
    assert repr(found.to_pylist()) == repr(expected.to_pylist())


def test_a_z_order_parts_both_columns() -> None:
    """A sixteenth of the rows along the curve covers about a third of each column."""
    chance = random.Random(7)
    rows = pa.table(
        {
            "a": [chance.randrange(10**9) for _ in range(20_000)],
            "b": ["x"] * 20_000,
            "c": [chance.random() for _ in range(20_000)],
        },
        schema=ARROW,
    )
    found = in_order(rows, ZOrder(SCHEMA, [1, 3], SCHEMA, rows.slice(0, 5000).to_batches()), 100_000)
    assert sorted(found["a"].to_pylist()) == sorted(rows["a"].to_pylist())
    spans = []
    for start in range(0, 20_000, 1250):
        part = found.slice(start, 1250)
        for name, whole in (("a", 10**9), ("c", 1.0)):
            values = part[name].to_pylist()
            spans.append((max(values) - min(values)) / whole)
    assert sum(spans) / len(spans) < 0.4  # sorted by one of them alone: 0.53


@pytest.mark.parametrize(("columns", "bits"), [(1, 6), (2, 5), (3, 4), (4, 3)])
def test_each_step_on_the_curve_is_one_in_one_column(columns: int, bits: int) -> None:
    cells = np.array(list(product(range(1 << bits), repeat=columns)))
    digits = along_hilbert(list(cells.T), bits)
    places = sum(
        ((each.astype(np.int64) >> bit) & 1) << (bit * columns + columns - 1 - number)
        for number, each in enumerate(digits)
        for bit in range(bits)
    )
    assert sorted(places) == list(range(len(cells)))
    assert set(np.abs(np.diff(cells[np.argsort(places)], axis=0)).sum(axis=1)) == {1}


def test_nulls_and_nan_have_their_place_on_a_z_order() -> None:
    rows = random_rows(2_000, 50)
    found = in_order(rows, ZOrder(SCHEMA, [1, 2, 3], SCHEMA, rows.to_batches()), 10**9)
    assert sorted(map(repr, found.to_pylist())) == sorted(map(repr, rows.to_pylist()))


@pytest.mark.parametrize("room", ["none", "too little"])
def test_a_temporary_folder_without_room_is_one_clear_error_and_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: str
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone" if room == "none" else tmp_path))
    order = RowSorter(SCHEMA, SortOrder(SortField(1, IdentityTransform(), ASC, FIRST)))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, limits[1]))
    try:
        with pytest.raises(StorageError, match=f"temporary folder {tmp_path}.*TMPDIR"):
            in_order(random_rows(20_000, 50), order, 100_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert list(tmp_path.iterdir()) == []
