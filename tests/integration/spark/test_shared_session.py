"""The session that all tests share is for each of them as it was for the first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.spark_session import SessionState

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hms_iceberg.table import Table

pytestmark = pytest.mark.spark


def test_what_a_test_leaves_in_the_session_is_taken_away(ice: SparkSession, orders: Table, namespace: str) -> None:
    seen = SessionState(ice)
    ice.conf.set("hive.exec.dynamic.partition.mode", "nonstrict")
    ice.sql("set time zone 'Asia/Tokyo'")
    ice.sql(f"use ice.{namespace}")
    ice.range(3).createOrReplaceTempView("three")
    ice.udf.register("left_behind", lambda x: x, "long")
    ice.sql("cache table three")
    kept = ice.range(5).localCheckpoint()
    ice.sql("call ice.system.begin_transaction()")
    ice.sql("delete from orders where id = 1")
    assert not seen.is_now() and kept.count() == 5
    seen.restore()
    assert seen.is_now()
    assert ice.conf.get("spark.sql.session.timeZone") == "UTC"
    assert ice.table(f"{namespace}.orders").count() == 6
    with pytest.raises(Exception, match="no open transaction"):
        ice.sql("call ice.system.rollback_transaction()")
