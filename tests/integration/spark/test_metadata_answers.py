"""count, min and max of a whole table are answered from metadata, and never otherwise than by reading."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyarrow import orc
from pyspark.errors import AnalysisException

from hms_iceberg.arrow.columns.projection import file_leaves, identified
from hms_iceberg.arrow.metrics.footer_metrics import metrics_modes
from hms_iceberg.migration.hive.format_footers import read_source_footer
from hms_iceberg.scan.manifests.manifest_source import manifests_of
from hms_iceberg.spec.data_types import LongType
from hms_iceberg.spec.field_mapping import create_name_mapping
from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.spec.transforms.partition_transforms import IdentityTransform
from tests.support.spark_tables import Rows, data_files, delete_positions, delete_vector, plan_text, rows_of

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from hms_iceberg.catalog import Catalog
    from hms_iceberg.table import Table

pytestmark = pytest.mark.spark


ANSWERED = (
    "select count(*) from {}",
    "select count(1) + 1, count(*) as n from {}",
    "select count(*) from {} where kind = 'click'",
    "select count(*) from {} where kind is null or kind = 'view'",
    "select count(*) from {} where kind = 'none'",
    "select count(kind) from {}",
    "select count(*), max(id) from {}",
    "select count(*), min(id) + 1, max(at), max(size) from {}",
    "select max(id), min(at) from {} where kind = 'click'",
    "select max(id) from {} where kind = 'none'",
    "select max(i), min(j) - 1, count(*) from (select id as i, i as j, upper(kind) as k from {})",
    "select max(j) from (select i as j from (select id as i, kind from {}) where kind = 'click')",
)
READ = (
    "select max(i), count(*) from (select -id as i from {})",
    "select count(distinct kind) from {}",
    "select count(*) filter (where id > 3) from {}",
    "select max(id + 1) from {}",
    "select max(kind) from {}",
    "select max(id) from {} where id > 3",
    "select max(i) from (select id + 1 as i from {})",
    "select count(*) from {} where id > 3",
    "select count(*) from {} where upper(kind) = 'CLICK'",
    "select count(*) from {} where kind = 'click' and id + 1 > 10",
    "select kind, count(*) from {} group by kind",
    "select count(*) from (select * from {} limit 5)",
    "select count(*) from (select distinct kind from {})",
)


def test_aggregates_are_answered_from_metadata_where_that_is_right(
    spark: SparkSession, events: Table, namespace: str
) -> None:
    schema = "id long, kind string, at timestamp_ntz, size double"
    spark.createDataFrame(events.scan().to_arrow().to_pylist(), schema).createOrReplaceTempView("all_events")
    for query in (*ANSWERED, *READ):
        frame = spark.sql(query.format(f"{namespace}.events"))
        assert ("BatchScan" in plan_text(frame)) == (query in READ), query
        expected: list[Any] = spark.sql(query.format("all_events")).collect()
        assert sorted(map(str, frame.collect())) == sorted(map(str, expected)), query


@pytest.mark.parametrize(
    "condition",
    [
        "id in (select id from {} where id > 4)",
        "exists (select 1 from {} o where o.id = t.id and o.id > 4)",
        "id > (select max(id) - 2 from {})",
    ],
)
def test_rows_that_a_subquery_chooses_are_counted(
    spark: SparkSession, orders: Table, namespace: str, condition: str
) -> None:
    name = f"{namespace}.orders"
    query = f"select count(*), min(id) from {name} t where {condition.format(name)}"
    assert rows_of(spark, query) == [(2, 5)]


def test_deleted_rows_are_not_counted(spark: SparkSession, catalog: Catalog, namespace: str, commit: Any) -> None:
    rows = Rows({"id": pa.int64()})
    counts = {}
    for version in ("2", "3"):
        table = catalog.create_table(f"{namespace}.v{version}", rows.schema, properties={"format-version": version})
        table.append(rows([(n,) for n in range(10)]))
        (file,) = data_files(table)
        if version == "2":
            commit(table, delete_positions(table, (file, [1, 2])), delete_positions(table, (file, [2, 3])))
        else:
            commit(table, delete_vector(table, file, [1, 2]))
        frame = spark.sql(f"select count(*) from {namespace}.v{version}")
        counts[version] = (frame.collect()[0][0], "BatchScan" in plan_text(frame))
    assert counts == {"2": (7, True), "3": (8, False)}
    for version, least in (("2", 0), ("3", 0)):
        frame = spark.sql(f"select min(id), max(id), count(id) from {namespace}.v{version}")
        assert frame.collect()[0][0] == least
        assert "BatchScan" in plan_text(frame)


def test_all_rows_are_counted_without_a_look_into_any_manifest(
    spark: SparkSession, catalog: Catalog, namespace: str
) -> None:
    rows = Rows({"id": pa.int64()})
    table = catalog.create_table(f"{namespace}.counted", rows.schema)
    table.append(rows([(n,) for n in range(10)]))
    first = table.current_snapshot()
    table.append(rows([(n,) for n in range(10, 15)]))
    table.delete("id < 3")  # copy-on-write: rows move on to a manifest of other files
    assert first is not None
    for snapshot in table.snapshots():
        for manifest in manifests_of(snapshot, table.storage):
            table.storage.delete(manifest.manifest_path)
    counted = "select count(*) from {}"
    assert spark.sql(counted.format(f"{namespace}.counted")).collect()[0][0] == 12
    travel = f"{namespace}.counted version as of {first.snapshot_id}"
    assert spark.sql(counted.format(travel)).collect()[0][0] == 10
    with pytest.raises(AnalysisException, match="MissingFileError"):
        spark.sql(f"select count(id) from {namespace}.counted").collect()


def test_the_least_and_the_greatest_of_every_type_are_those_of_the_rows(
    spark: SparkSession, catalog: Catalog, namespace: str
) -> None:
    columns = {
        "flag": (pa.bool_(), [True, None, True, False], True),
        "small": (pa.int32(), [3, None, -7, 5], True),
        "large": (pa.int64(), [2**40, 1, None, -(2**50)], True),
        "single": (pa.float32(), [1.5, None, -2.5, 8.0], True),
        "double": (pa.float64(), [1.5, None, -2.5, 8.0], True),
        "with_nan": (pa.float64(), [1.5, None, float("nan"), 8.0], False),
        "least_is_zero": (pa.float64(), [0.0, None, 1.0, 8.0], False),
        "money": (pa.decimal128(20, 2), [Decimal("-1.50"), None, Decimal("99999999999999.99"), Decimal("0.00")], True),
        "day": (pa.date32(), [dt.date(1969, 12, 31), None, dt.date(2024, 2, 29), dt.date(1970, 1, 1)], True),
        "at": (pa.timestamp("us", "UTC"), [dt.datetime(1960, 1, 1), None, dt.datetime(2024, 1, 1), None], True),
        "nothing": (pa.int64(), [None, None, None, None], True),
        "text": (pa.string(), ["b", None, "a" * 40, "c"], False),
        "data": (pa.binary(), [b"b", None, b"a" * 40, b"c"], False),
        "part": (pa.int32(), [7, 8, None, 9], True),
    }
    arrow = pa.table({name: pa.array(values, kind) for name, (kind, values, _) in columns.items()})
    table = catalog.create_table(f"{namespace}.types", arrow.schema)
    with table.update_spec() as update:
        update.add_field("part", IdentityTransform(), "part_is")
    table.append(arrow.slice(0, 2))
    table.append(arrow.slice(2))
    for name, (_, _, is_known) in columns.items():
        query = f"select min({name}), max({name}), count({name}) from {namespace}.types"
        frame = spark.sql(query)
        assert ("BatchScan" not in plan_text(frame)) == is_known, name
        read: Any = spark.sql(query.replace(f"{namespace}.types", f"(select * from {namespace}.types limit 100)"))
        assert str(frame.collect()[0]) == str(read.collect()[0]), name


def test_a_column_that_older_files_lack_is_read(spark: SparkSession, catalog: Catalog, namespace: str) -> None:
    rows = Rows({"id": pa.int64()})
    table = catalog.create_table(f"{namespace}.grown", rows.schema)
    table.append(rows([(1,), (2,)]))
    with table.update_schema() as update:
        update.add_column("more", LongType())
    table.append(Rows({"id": pa.int64(), "more": pa.int64()})([(3, 30), (4, None)]))
    frame = spark.sql(f"select min(more), max(more), count(more), count(*) from {namespace}.grown")
    assert tuple(frame.collect()[0]) == (30, 30, 1, 4)


def test_rough_bounds_that_orcs_statistics_give_are_no_answers(
    spark: SparkSession, catalog: Catalog, namespace: str, tmp_path: Path
) -> None:
    times = pa.array([dt.datetime(2020, 1, 1, 0, 0, 0, 123456), dt.datetime(2020, 1, 2, 0, 0, 0, 1)])
    rows = pa.table({"day": [dt.date(2020, 1, 1), dt.date(2020, 1, 2)], "at": times})
    orc.write_table(rows, str(tmp_path / "f"))
    table = catalog.create_table(f"{namespace}.rough", rows.schema)
    mapping = create_name_mapping(table.schema())
    footer = read_source_footer(table.storage, str(tmp_path / "f"), "ORC")
    leaves = file_leaves(identified(footer.schema, mapping))
    metrics = footer.metrics(leaves, table.schema(), metrics_modes(table.schema(), {}))
    size = (tmp_path / "f").stat().st_size
    file = DataFile(file_path=str(tmp_path / "f"), file_format="ORC", record_count=2, file_size_in_bytes=size)
    with table.transaction() as transaction:
        transaction.set_properties({"schema.name-mapping.default": mapping.to_json()})
        transaction.new_append().append_file(replace(file, **metrics.as_fields())).commit()

    assert metrics.lower_bounds.keys() == {1, 2}
    (found,) = spark.sql(f"select min(day), max(day), min(at), max(at) from {namespace}.rough").collect()
    assert list(found) == [*rows["day"].to_pylist(), *times.to_pylist()]
    assert "BatchScan" not in plan_text(spark.sql(f"select min(day), max(day) from {namespace}.rough"))
