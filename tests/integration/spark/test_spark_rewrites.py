"""Spark as the engine that rewrites data files: it reads and writes the groups, plan and commits are Python's."""

from __future__ import annotations

import io
import random
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hms_iceberg.errors import StorageError
from hms_iceberg.maintenance import check_table
from hms_iceberg.spark import SparkEngine
from hms_iceberg.spec.data_types import DoubleType, LongType, NestedField, StringType, StructType
from hms_iceberg.spec.partitions.partition_specs import PartitionField, PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.transforms.partition_transforms import IdentityTransform
from tests.support.every_type import EVERY_TYPE
from tests.support.every_type import ROWS as ROWS_OF_EVERY_TYPE
from tests.support.hdfs_path import local_path
from tests.support.spark_tables import Rows, data_files, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hms_iceberg.catalog import Catalog
    from hms_iceberg.table import Table

pytestmark = pytest.mark.spark

ROWS = Rows({"id": pa.int64(), "p": pa.string()})
ALL = {"rewrite-all": "true"}


@pytest.fixture
def table(catalog: Catalog, namespace: str) -> Table:
    """Three files in each of two partitions, with a row id for each row and some of the rows deleted."""
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "p", StringType()))
    spec = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "p"))
    properties = {"format-version": "3", "write.delete.mode": "merge-on-read"}
    table = catalog.create_table(f"{namespace}.t", schema, partition_spec=spec, properties=properties)
    for number in (1, 2, 3):
        table.append(ROWS([(number, "a"), (10 + number, "a"), (20 + number, "b"), (30 + number, "b")]))
    table.delete("id in (2, 33)")
    return table


def seen(spark: SparkSession, table: Table) -> list[tuple[object, ...]]:
    spark.sql(f"refresh table {'.'.join(table.identifier)}")
    return rows_of(spark, f"select *, _row_id, _last_updated_sequence_number from {'.'.join(table.identifier)}")


def test_a_call_has_spark_write_each_group_without_its_deleted_rows(spark: SparkSession, table: Table) -> None:
    name = ".".join(table.identifier)
    before = seen(spark, table)
    spark.sql(f"cache table {name}")  # must not be taken for the files of a group, nor stay as it is
    ((rewritten, added, _, failed, deletes),) = spark.sql(
        f"call spark_catalog.system.rewrite_data_files(table => '{name}', options => map('rewrite-all', 'true'))"
    ).collect()
    assert (rewritten, added, failed, deletes) == (6, 2, 0, 2)
    assert seen(spark, table) == before
    spark.sql(f"uncache table {name}")
    files = data_files(table.refresh())
    assert sorted(file.partition for file in files) == [("a",), ("b",)]
    footers = [pq.read_metadata(io.BytesIO(local_path(file.file_path).read_bytes())) for file in files]
    assert all(footer.created_by.startswith("parquet") for footer in footers)
    assert not check_table(table).findings


def test_spark_sorts_rows_for_a_call_of_python(spark: SparkSession, ice: SparkSession, table: Table) -> None:
    before = seen(spark, table)
    result = table.maintenance.rewrite_data_files(
        engine=SparkEngine(spark), strategy="sort", sort_order="bucket(3, id), id desc", options=ALL
    )
    assert (result.rewritten_data_files_count, result.added_data_files_count) == (6, 2)
    assert seen(spark, table) == before
    by_bucket = rows_of(ice, "select ice.system.bucket(3, id), -id, id from range(40)")
    for part in ("a", "b"):
        ids = table.scan(f"p = '{part}'").to_arrow()["id"].to_pylist()
        assert ids == [number for _, _, number in by_bucket if number in ids]


@pytest.mark.parametrize("order", [{}, {"strategy": "sort", "sort_order": "zorder(p, id)"}])
def test_rows_move_into_the_partitions_of_another_spec(
    spark: SparkSession, table: Table, order: dict[str, str]
) -> None:
    before = seen(spark, table)
    with table.update_spec() as change:
        change.add_field("id", "bucket[2]")
    result = table.maintenance.rewrite_data_files(engine=SparkEngine(spark), options=ALL, **order)
    assert result.rewritten_data_files_count == 6 and result.failures == ()
    assert {file.spec_id for file in data_files(table.refresh())} == {table.metadata.default_spec_id}
    assert seen(spark, table) == before


def test_a_group_that_fails_is_told_and_the_others_are_kept(spark: SparkSession, table: Table) -> None:
    lost = next(file for file in data_files(table) if file.partition == ("b",))
    local_path(lost.file_path).unlink()
    result = table.maintenance.rewrite_data_files(engine=SparkEngine(spark), options=ALL)
    assert (result.rewritten_data_files_count, result.failed_data_files_count) == (3, 3)
    assert len(result.failures) == 1 and "Spark could not rewrite 3 files" in result.failures[0]
    version, folder = table.refresh().metadata_location, local_path(table.location())
    files = sorted(folder.rglob("*.parquet"))
    with pytest.raises(StorageError, match="Spark could not rewrite"):
        table.maintenance.rewrite_data_files(
            engine=SparkEngine(spark), options={**ALL, "partial-progress.enabled": "false"}
        )
    arguments = f"table => '{'.'.join(table.identifier)}', options => map('rewrite-all', 'true')"
    with pytest.raises(Exception, match="Spark could not rewrite"):
        spark.sql(f"call spark_catalog.system.rewrite_data_files({arguments})")
    assert table.refresh().metadata_location == version and sorted(folder.rglob("*.parquet")) == files


def test_rows_along_a_curve_are_near_in_both_columns(spark: SparkSession, catalog: Catalog, namespace: str) -> None:
    schema = Schema(
        NestedField(1, "x", LongType()), NestedField(2, "at", StructType(NestedField(3, "y", DoubleType())))
    )
    table = catalog.create_table(f"{namespace}.grid", schema, properties={"format-version": "3"})
    cells = [(number // 64, {"y": number % 64 / 7}) for number in range(64 * 64)]
    random.Random(5).shuffle(cells)
    for start in range(0, len(cells), 512):
        table.append(Rows({"x": pa.int64(), "at": pa.struct([("y", pa.float64())])})(cells[start : start + 512]))
    before = seen(spark, table)
    ((rewritten, added, *_),) = spark.sql(
        f"call spark_catalog.system.rewrite_data_files(table => '{namespace}.grid', sort_order => 'zorder(x, at.y)', "
        "options => map('rewrite-all', 'true'))"
    ).collect()
    assert (rewritten, added) == (8, 1)
    assert seen(spark, table) == before
    places = table.refresh().scan().to_arrow().to_pylist()
    for quarter in range(4):
        for axis in ([row["x"] for row in places], [round(row["at"]["y"] * 7) for row in places]):
            part = axis[quarter * 1024 : (quarter + 1) * 1024]
            assert max(part) - min(part) < 40  # of 64; in an order by one column the other has all 64


def test_any_types_may_be_of_a_curve(spark: SparkSession, catalog: Catalog, namespace: str) -> None:
    table = catalog.create_table(f"{namespace}.every", EVERY_TYPE)
    for _ in range(3):
        spark.sql(f"insert into {namespace}.every values {ROWS_OF_EVERY_TYPE}")
    before = repr(rows_of(spark, f"select * from {namespace}.every"))
    primitive = [f"`{field.name}`" for field in EVERY_TYPE.fields if field.field_type.is_primitive]
    result = table.maintenance.rewrite_data_files(
        engine=SparkEngine(spark),
        strategy="sort",
        sort_order=f"zorder({', '.join([*primitive, 'st.x', 'st.u'])})",
        options={**ALL, "target-file-size-bytes": "20000", "max-file-size-bytes": "21000"},
    )
    assert result.failures == () and result.added_data_files_count > 1
    spark.sql(f"refresh table {namespace}.every")
    assert repr(rows_of(spark, f"select * from {namespace}.every")) == before
    assert not check_table(table.refresh()).findings
