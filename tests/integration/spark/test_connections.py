"""What the extension holds on to in a session that lives long."""

from __future__ import annotations

import os
import threading
import time
from contextlib import closing
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hms_iceberg.catalog import Catalog
    from hms_iceberg.hms.embedded import EmbeddedMetastore

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


def test_commits_that_wait_for_a_lock_hold_up_no_query(
    spark: SparkSession, metastore: EmbeddedMetastore, catalog: Catalog, namespace: str
) -> None:
    from hms_iceberg.hms.connection.client import HmsClient
    from hms_iceberg.hms.connection.client_settings import ClientSettings
    from hms_iceberg.hms.connection.thrift_types import ttypes

    tables = [f"{namespace}.t{number}" for number in range(6)]
    for name in tables:
        catalog.create_table(name, pa.schema([("id", pa.int64())]))
    with closing(HmsClient(ClientSettings.from_properties({"uri": metastore.uri}))) as client:
        kind = {"type": ttypes.LockType.EXCLUSIVE, "level": ttypes.LockLevel.TABLE, "dbname": namespace}
        locked = [ttypes.LockComponent(**kind, tablename=name.split(".")[1]) for name in tables]
        request = ttypes.LockRequest(locked, user="joe", hostname="far-away", agentInfo="Iceberg-of-joe")
        lock_id = client.lock(request, namespace).lockid
        writing = [threading.Thread(target=spark.sql, args=(f"insert into {name} values (1)",)) for name in tables]
        try:
            for thread in writing:
                thread.start()
            time.sleep(3)
            assert spark.sql(f"select count(*) from {tables[0]}").collect()[0][0] == 0
            assert all(thread.is_alive() for thread in writing)
        finally:
            client.unlock(lock_id, namespace)
        for thread in writing:
            thread.join()
    assert [catalog.load_table(name).scan().count() for name in tables] == [1] * 6
