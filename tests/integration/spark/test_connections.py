"""What the extension holds on to in a session that lives long."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hms_iceberg.catalog import Catalog

pytestmark = pytest.mark.spark


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="open files are counted in /proc")
def test_many_queries_leave_no_connections_behind(spark: SparkSession, catalog: Catalog, namespace: str) -> None:
    table = catalog.create_table(f"{namespace}.t", pa.schema([("id", pa.int64())]))
    table.append(pa.table({"id": [1, 2, 3]}))

    def query(times: int) -> int:
        for _ in range(times):
            assert spark.sql(f"select * from {namespace}.t where id > 1").toArrow().num_rows == 2
        return len(os.listdir("/proc/self/fd"))

    before = query(5)
    assert query(25) < before + 10
