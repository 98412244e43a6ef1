"""Rows of random tables, by all ways to read them in Python, beside DuckDB.

`HMS_ICEBERG_DIFFERENTIAL=7:500` takes the seed 7 and 500 tables, for a long search.
"""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

import pytest

from hms_iceberg import load_catalog
from hms_iceberg.arrow.formats import parquet_frames
from tests.support.random_reads import TwoTables

SEED, TABLES = map(int, os.environ.get("HMS_ICEBERG_DIFFERENTIAL", "41:4").split(":"))
FILTERS = 4


@pytest.mark.parametrize("seed", range(SEED, SEED + TABLES))
def test_every_way_to_read_gives_the_rows_that_duckdb_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    random = Random(seed)
    for name in ("_LEAST_WORK", "_LEAST_FILTERED_WORK"):  # of tables so small, Polars would decode none
        monkeypatch.setattr(parquet_frames, name, random.choice([1, 1, 10**12]))
    catalog = load_catalog("random", type="hadoop", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    tables = TwoTables(catalog, "db.t", random)
    for _ in range(random.randint(1, 5)):
        tables.change()
    assert [*tables.differences(FILTERS)] == [], tables.log
