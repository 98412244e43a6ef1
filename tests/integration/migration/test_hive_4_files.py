"""Files that Hive 4.1's own writers wrote, in New York (`tests/golden/hive_4`, by `WriteRows.java`).

They name their writer's time zone and calendar. As Spark does, Parquet's and Avro's timestamps are taken for instants,
and ORC's for the clock that Hive shows.
"""

from __future__ import annotations

import datetime as dt
import math
import shutil
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from hms_iceberg.catalog import Catalog
from hms_iceberg.hms.connection.thrift_types import ttypes
from hms_iceberg.migration import migrate
from tests.support.hive_warehouse import HiveWarehouse

FILES = Path(__file__).resolve().parents[2] / "golden" / "hive_4"
SERDES = {
    "parquet": "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe",
    "orc": "org.apache.hadoop.hive.ql.io.orc.OrcSerde",
    "avro": "org.apache.hadoop.hive.serde2.avro.AvroSerDe",
}
COLUMNS = (
    "i8 tinyint, i16 smallint, i32 int, i64 bigint, f32 float, f64 double, b boolean, d9 decimal(9,2), "
    "d38 decimal(38,10), s string, bin binary, day date, at timestamp, l array<bigint>, m map<string,int>, "
    "st struct<inner:int,l:array<struct<x:string>>>"
)
DAYS = [dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date(2024, 2, 29), dt.date(1900, 1, 1)]
CLOCKS = [
    dt.datetime(1969, 12, 31, 23, 59, 58, 123000),
    dt.datetime(1970, 1, 1),
    dt.datetime(2024, 7, 1, 12, 0, 0, 500000),
    dt.datetime(1950, 1, 1, 0, 0, 0, 1000),
]


@pytest.mark.parametrize("form", list(SERDES))
def test_files_of_hive_4_have_the_rows_that_were_written(catalog: Catalog, namespace: str, form: str) -> None:
    warehouse = HiveWarehouse(catalog, namespace)
    columns = COLUMNS if form != "avro" else COLUMNS.replace("i8 tinyint, i16 smallint", "i8 int, i16 int")
    serde = ttypes.SerDeInfo(serializationLib=SERDES[form], parameters={})
    made = warehouse.create("t", columns, serdeInfo=serde)
    shutil.copy(FILES / form, made.location / "000000_0")

    migrate(catalog, (namespace, "t"))

    rows = catalog.load_table((namespace, "t")).scan().to_arrow().to_pylist()
    assert [_values(row) for row in rows[:4]] == [_written(number, form) for number in range(4)]
    assert len(rows) == 5 and set(rows[4].values()) == {None}


def _values(row: dict[str, Any]) -> list[Any]:
    return [None if isinstance(value, float) and math.isnan(value) else value for value in row.values()]


def _written(n: int, form: str) -> list[Any]:
    clock = CLOCKS[n]
    at = clock if form == "orc" else (clock + dt.timedelta(hours=4 if n == 2 else 5)).replace(tzinfo=dt.timezone.utc)
    return [
        *(n, n * 300, n * 100000, n * 10000000000),
        *(pytest.approx(n / 3), None if n == 2 else n / 7, n % 2 == 0),
        *(Decimal(f"{n}.25"), Decimal(f"123456789012345678.{n}00000001") + Decimal("0E-10")),
        *(f"s{n}", f"b{n}".encode(), DAYS[n], at),
        *([n, None], [(f"k{n}", n)], {"inner": n, "l": [{"x": f"x{n}"}]}),
    ]
