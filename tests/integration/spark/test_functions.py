"""Iceberg's transforms as functions of Spark: results as PyIceberg has them, and files left out by them."""

from __future__ import annotations

import datetime as dt
import re
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from hms_iceberg.spec.data_types import LongType, NestedField, StringType, TimestamptzType, UUIDType
from hms_iceberg.spec.partitions.partition_specs import PartitionField, PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.transforms.partition_transforms import BucketTransform, DayTransform, TruncateTransform
from tests.support.spark_tables import Rows, plan_text
from tests.support.transform_cases import CALLS, EPOCH, VALUES, of_pyiceberg

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hms_iceberg.catalog import Catalog

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("generated", [True, False])
def test_transforms_are_those_of_pyiceberg_for_every_type_and_at_the_extremes(
    ice: SparkSession, generated: bool
) -> None:
    mode = "CODEGEN_ONLY" if generated else "NO_CODEGEN"
    ice.conf.set("spark.sql.codegen.factoryMode", mode)
    ice.conf.set("spark.sql.codegen.wholeStage", generated)
    excluded = "org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation"
    ice.conf.set("spark.sql.optimizer.excludedRules", excluded)
    try:
        for type_name, values in VALUES.items():
            calls = [(name, number) for name, number, each in CALLS if each == type_name]
            frame = ice.createDataFrame([(value,) for value in [*values, None]], f"v {type_name}").coalesce(1)
            texts = [f"ice.system.{name}({number}, v)" if number else f"ice.SYSTEM.{name}(v)" for name, number in calls]
            got = [tuple(row) for row in frame.selectExpr(*texts).collect()]
            expected = [
                tuple(of_pyiceberg(name, number, type_name, value) for name, number in calls) for value in values
            ]
            assert got == [*expected, (None,) * len(calls)], type_name
    finally:
        for key in ("codegen.factoryMode", "codegen.wholeStage", "optimizer.excludedRules"):
            ice.conf.unset(f"spark.sql.{key}")


def test_small_integers_the_version_and_what_is_refused(ice: SparkSession) -> None:
    from pyspark.errors import AnalysisException

    row = ice.sql(
        "select ice.system.truncate(10, cast(-7 as tinyint)) a, ice.system.truncate(10, 17S) b, "
        "ice.system.bucket(16Y, 34S) c, ice.system.iceberg_version() d, ice.bucket(16, 34) e"
    )
    assert row.dtypes[:3] == [("a", "tinyint"), ("b", "smallint"), ("c", "int")]
    assert row.collect()[0][:3] == (-10, 10, 3)
    assert re.fullmatch(r"hms_iceberg \d+\.\d+\.\d+", row.collect()[0].d)
    for call, problem in (
        ("bucket(16, 1.5D)", "Expected value to be date, tinyint"),
        ("bucket(16)", "Wrong number of inputs"),
        ("bucket(16L, 1)", "number of buckets to be tinyint"),
        ("truncate(1, date'2020-01-01')", "Expected value to be tinyint"),
        ("hours(date'2020-01-01')", "Expected value to be timestamp"),
        ("years('2020')", "Expected value to be date or timestamp"),
    ):
        with pytest.raises(AnalysisException, match=re.escape(problem)):
            ice.sql(f"select ice.system.{call}")
    with pytest.raises(AnalysisException, match=r"UNRESOLVED_ROUTINE|cannot be found"):
        ice.sql("select ice.system.weeks(date'2020-01-01')")
    assert {"bucket", "hours"} <= {each[0].split(".")[-1] for each in ice.sql("show functions in ice.system").collect()}


def test_conditions_on_transforms_leave_files_out_and_no_row(
    ice: SparkSession, catalog: Catalog, namespace: str
) -> None:
    schema = Schema(
        NestedField(1, "id", LongType()),
        NestedField(2, "at", TimestamptzType()),
        NestedField(3, "name", StringType()),
        NestedField(4, "key", UUIDType()),
    )
    spec = PartitionSpec(
        PartitionField(1, 1000, BucketTransform(4), "id_bucket"),
        PartitionField(2, 1001, DayTransform(), "day"),
        PartitionField(3, 1002, TruncateTransform(1), "initial"),
    )
    rows = Rows({"id": pa.int64(), "at": pa.timestamp("us", "UTC"), "name": pa.string(), "key": pa.binary(16)})
    table = catalog.create_table(f"{namespace}.t", schema, partition_spec=spec)
    table.append(
        rows(
            (
                n if n % 7 else None,
                EPOCH + dt.timedelta(days=n % 3, hours=n) if n % 5 else None,
                "ab"[n % 2] + str(n),
                bytes([n] * 16),
            )
            for n in range(40)
        )
    )
    name = f"ice.{namespace}.t"
    frame = ice.createDataFrame(table.scan().to_arrow().drop(["key"]).to_pylist(), "id long, at timestamp, name string")
    frame.createOrReplaceTempView("plain_rows")
    fewer = [
        "ice.system.bucket(4, id) = 2",
        "ice.system.bucket(8, id) = 2",
        "2 = ice.system.bucket(4, id)",
        "ice.system.bucket(4, id) in (0, 3)",
        "ice.system.bucket(4, id) <> 2",
        "not (ice.system.bucket(4, id) <=> 2)",
        "ice.system.days(at) = date'1970-01-02'",
        "ice.system.days(at) > date'1970-01-02' or ice.system.days(at) is null",
        "ice.system.hours(at) < 3",
        "ice.system.years(at) = 1",
        "ice.system.truncate(1, name) = 'b'",
        "ice.system.truncate(2, name) = 'b1'",
    ]
    as_many = [
        "ice.system.bucket(4, id + 1) = 2",
        "ice.system.truncate(1, upper(name)) = 'B'",
    ]
    plain = ice.sql(f"select name, {', '.join([*fewer, *as_many])} from plain_rows").collect()
    for number, condition in enumerate([*fewer, *as_many], 1):
        planned = ice.sql(f"select name from {name} where {condition}")
        (found,) = re.findall(r"(\d+) of (\d+) files", plan_text(planned))
        assert (found[0] != found[1] or found[1] == "0") == (condition in fewer), (condition, found)
        wanted = sorted(row.name for row in plain if row[number])
        assert sorted(row.name for row in planned.collect()) == wanted, condition
    by_text = "ice.system.bucket(4, key) = ice.system.bucket(4, cast(key as string))"
    assert ice.sql(f"select * from {name} where {by_text}").count() == 40
