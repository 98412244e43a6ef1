"""Small manifests are decoded together, and what a later plan asks for besides is decoded then."""

from __future__ import annotations

import struct

import pytest

from hms_iceberg.scan.manifests.cache import ManifestCache
from hms_iceberg.spec.data_types import LongType, NestedField
from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.spec.schema import Schema
from tests.support.snapshots import ManifestTable

SCHEMA = Schema(*(NestedField(n, f"c{n}", LongType()) for n in range(1, 5)))


def data_file(number: int) -> DataFile:
    """Column 3 is all null in every third file; every fourth file has no metrics of column 4."""
    columns = [n for n in range(1, 5) if n != 4 or number % 4]
    known = [n for n in columns if n != 3 or number % 3]
    bounds = {n: struct.pack("<q", number * n) for n in known}
    return DataFile(
        file_path=f"{number:03}",
        file_format="PARQUET",
        record_count=5,
        file_size_in_bytes=10,
        value_counts=dict.fromkeys(columns, 5),
        null_value_counts={n: 0 if n in known else 5 for n in columns},
        lower_bounds=bounds,
        upper_bounds=bounds,
    )


@pytest.mark.parametrize("room", [0, 20_000, 10**8])
def test_plans_of_many_small_manifests_are_right_whatever_the_cache_keeps(room: int) -> None:
    table = ManifestTable(SCHEMA)
    table.storage.manifest_cache = ManifestCache(max_bytes=room)
    for number in range(30):
        table.commit(data_file(number), data_file(number + 100))
    table.commit_manifests([each for each in table.manifests if each != table.manifests[4]], 1_000_007)
    live = sorted({f"{n:03}" for n in (*range(30), *range(100, 130))} - {"025", "125"})

    def expected(column: int, least: int) -> list[str]:
        null = {name for name in live if column == 3 and int(name) % 3 == 0}
        unknown = {name for name in live if column == 4 and int(name) % 4 == 0}
        return [name for name in live if name in unknown or (name not in null and int(name) * column >= least)]

    for _ in range(2):
        assert table.planned() == live
        for column, least in ((1, 20), (3, 40), (4, 110), (1, 105)):
            assert table.planned(f"c{column} >= {least}") == expected(column, least)
        assert table.planned("c3 is null") == [name for name in live if int(name) % 3 == 0]
