"""Our Spark extension and Apache Iceberg's Spark runtime answer the same SQL on the same tables."""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.java_peer import encode

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.spark]

CREATE = (
    "create table ice.{name} (id bigint, price decimal(12,2), day date, at timestamp, name string, "
    "tags array<string>, place struct<x:double,label:string>) using iceberg {partitioned} "
    "tblproperties ('format-version'='{version}', 'write.delete.mode'='merge-on-read', "
    "'write.update.mode'='merge-on-read')"
)
INSERT = (
    "insert into ice.{name} select id, cast(id * 7.31 as decimal(12,2)), date_add(date'1969-12-30', cast(id as int)), "
    "timestamp'2024-02-28 23:00:00' + make_dt_interval(0, cast(id as int)), "
    "if(id % 5 = 0, null, concat('n', id % 3)), array(concat('t', id), null), "
    "named_struct('x', id / 2D, 'label', if(id % 2 = 0, null, 'odd')) from range({start}, {end})"
)
PARTITIONS = {
    "unpartitioned": "",
    "identity": "partitioned by (name)",
    "hidden": "partitioned by (bucket(2, id), days(at))",
}
QUERIES = (
    "select * from {name}",
    "select name, count(*), sum(price), max(place.x) from {name} group by name",
    "select id from {name} where name = 'n1' and price > 40.5",
    "select id, place.label from {name} where day between date'1970-01-03' and date'1970-01-20' and place.x < 8",
    "select count(*) from {name} where name is null",
    "select a.id, b.price from {name} a join {name} b on a.id = b.id + 1 where b.at < timestamp'2024-02-29 12:00:00'",
)


def answers(rows: list[Any]) -> list[str]:
    return sorted(json.dumps(encode(row)) for row in rows)


@pytest.mark.parametrize("version", ["2", "3"])
@pytest.mark.parametrize("partitioned", PARTITIONS.values(), ids=PARTITIONS.keys())
def test_both_give_the_same_rows_after_java_deletes_and_updates(
    spark: SparkSession, iceberg_java: Any, namespace: str, partitioned: str, version: str
) -> None:
    name = f"{namespace}.t_{uuid.uuid4().hex[:8]}"
    iceberg_java.sql(CREATE.format(name=name, partitioned=partitioned, version=version))
    iceberg_java.sql(INSERT.format(name=name, start=0, end=30))
    iceberg_java.sql(f"delete from ice.{name} where id % 7 = 3")
    iceberg_java.sql(f"update ice.{name} set name = 'changed' where id in (1, 2, 28)")
    iceberg_java.sql(INSERT.format(name=name, start=30, end=40))
    iceberg_java.sql(f"alter table ice.{name} rename column price to amount")
    iceberg_java.sql(f"alter table ice.{name} rename column amount to price")

    for query in QUERIES:
        expected = answers(iceberg_java.sql(query.format(name=f"ice.{name}")))
        assert answers(spark.sql(query.format(name=name)).collect()) == expected, query

    [[first]] = iceberg_java.sql(f"select snapshot_id from ice.{name}.snapshots order by committed_at limit 1")
    travelled = spark.sql(f"select * from {name} version as of {first}").collect()
    assert answers(travelled) == answers(iceberg_java.sql(f"select * from ice.{name} version as of {first}"))
    assert len(travelled) == 30
