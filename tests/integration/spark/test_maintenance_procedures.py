"""`CALL … system.rewrite_data_files` and its like do what the Python actions do, and tell Java's results."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from hms_iceberg.catalog import Catalog
from hms_iceberg.spec.data_types import LongType, NestedField, StringType
from hms_iceberg.spec.partitions.partition_specs import PartitionField, PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.transforms.partition_transforms import IdentityTransform
from tests.support.spark_tables import Rows, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hms_iceberg.table import Table

pytestmark = pytest.mark.spark

ROWS = Rows({"id": pa.int64(), "p": pa.string()})


@pytest.fixture
def table(catalog: Catalog, namespace: str) -> Table:
    """Three files in each of two partitions."""
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "p", StringType()))
    spec = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "p"))
    properties = {"write.delete.mode": "merge-on-read", "write.delete.granularity": "partition"}
    table = catalog.create_table(f"{namespace}.t", schema, partition_spec=spec, properties=properties)
    for number in (1, 2, 3):
        table.append(ROWS([(number, "a"), (10 + number, "a"), (20 + number, "b"), (30 + number, "b")]))
    return table


def call(spark: SparkSession, table: Table, procedure: str, arguments: str = "") -> list[tuple[object, ...]]:
    name = ".".join(table.identifier)
    return rows_of(spark, f"call spark_catalog.system.{procedure}(table => '{name}'{arguments})")


def test_files_of_chosen_partitions_are_put_together(spark: SparkSession, table: Table) -> None:
    where = """, where => 'p = "a" and id < 100', options => map('rewrite-all', 'true')"""
    before = table.scan().to_arrow().sort_by("id")
    ((rewritten, added, size, failed, deletes),) = call(spark, table, "rewrite_data_files", where)
    assert (rewritten, added, failed, deletes) == (3, 1, 0, 0) and size > 0
    assert table.refresh().scan().to_arrow().sort_by("id").equals(before)
    like = """, where => "p like 'b%'", options => map('min-input-files', '2')"""
    assert call(spark, table, "rewrite_data_files", like)[0][:2] == (3, 1)
    assert table.refresh().scan().to_arrow().sort_by("id").equals(before)
    table.append(ROWS([(40, "b")]))
    order = ", sort_order => 'id DESC', options => map('min-input-files', '2')"
    assert call(spark, table, "rewrite_data_files", order)[0][:2] == (2, 1)
    ids = table.refresh().scan("p = 'b'").to_arrow()["id"].to_pylist()
    assert ids == sorted(ids, reverse=True)


def test_position_deletes_are_put_together(spark: SparkSession, table: Table) -> None:
    table.delete("id in (1, 21)")
    table.delete("id in (2, 22)")
    left = sorted(rows_of(spark, f"select * from {'.'.join(table.identifier)}"))
    everything = ", options => map('rewrite-all', 'true')"
    ((_, added, _, _),) = call(spark, table, "rewrite_position_delete_files", everything)
    assert added == 2 and sorted(rows_of(spark, f"select * from {'.'.join(table.identifier)}")) == left


def test_statistics_are_written(spark: SparkSession, table: Table) -> None:
    ((path,),) = call(spark, table, "compute_table_stats", ", columns => array('id')")
    assert table.refresh().metadata.statistics[0].statistics_path == path
    ((path,),) = call(spark, table, "compute_partition_stats")
    assert table.refresh().metadata.partition_statistics[0].statistics_path == path


def test_paths_are_rewritten(spark: SparkSession, table: Table) -> None:
    table.delete("id in (1, 21)")
    arguments = f", source_prefix => '{table.location()}', target_prefix => 's3://elsewhere/t'"
    ((version, file_list, manifests, deletes),) = call(spark, table, "rewrite_table_path", arguments)
    assert table.metadata_location.endswith(f"/{version}") and (manifests, deletes) == (4, 2)
    copies = dict(line.split(",") for line in table.storage.read(str(file_list)).decode().splitlines())
    assert f"s3://elsewhere/t/metadata/{version}" in copies.values()


@pytest.mark.parametrize(
    ("procedure", "arguments", "message"),
    [
        ("rewrite_data_files", ", where => 'nope = 1'", "Cannot parse predicates in where option: nope = 1"),
        ("rewrite_data_files", ", where => 'length(p) = 1'", "Cannot translate the where option"),
        ("rewrite_data_files", ", where => 'id = 1 order by id'", "Cannot parse predicates in where option"),
        ("rewrite_data_files", ", strategy => 'temp'", "unsupported strategy"),
        ("rewrite_data_files", ", options => map('bogus-option', '1')", "bogus-option"),
        ("remove_orphan_files", ", older_than => timestamp '2999-01-01'", "less than 24 hours"),
        ("remove_orphan_files", ", max_concurrent_deletes => 0", "max_concurrent_deletes"),
        ("rewrite_table_path", ", source_prefix => 'x', target_prefix => 'y'", "not under x"),
        ("compute_partition_stats", ", snapshot_id => 1", "no snapshot 1"),
    ],
)
def test_bad_arguments_are_refused(
    spark: SparkSession, table: Table, procedure: str, arguments: str, message: str
) -> None:
    before = table.metadata_location
    with pytest.raises(Exception, match=message):
        call(spark, table, procedure, arguments)
    assert table.refresh().metadata_location == before


def test_orphans_are_looked_for_among_the_files_of_a_view(spark: SparkSession, table: Table) -> None:
    for name, day in (("lost", "2020-01-01"), ("young", "2999-01-01")):
        table.storage.create(f"{table.location()}/data/{name}.parquet", b"x")
        row = f"select '{table.location()}/data/{name}.parquet' as file_path, timestamp '{day}' as last_modified"
        spark.sql(f"create or replace temporary view listed_{name} as {row}")
    spark.sql("create or replace temporary view listed as select * from listed_lost union all table listed_young")
    found = call(spark, table, "remove_orphan_files", ", file_list_view => 'listed', prefix_mismatch_mode => 'delete'")
    assert found == [(f"{table.location()}/data/lost.parquet",)]
    assert not table.storage.exists(str(found[0][0]))
    spark.sql("create or replace temporary view wrong as select 'a' as file_path, 1 as last_modified")
    with pytest.raises(Exception, match="Invalid last_modified column: int is not a timestamp"):
        call(spark, table, "remove_orphan_files", ", file_list_view => 'wrong'")


def test_orphans_are_told_and_left_in_a_dry_run(spark: SparkSession, table: Table) -> None:
    assert call(spark, table, "remove_orphan_files", ", dry_run => true") == []


def test_rows_are_forgotten_in_every_version(spark: SparkSession, table: Table) -> None:
    table.delete("id = 1")
    where = """, where => "id in (1, 21)\""""
    assert call(spark, table, "forget", where) == [(2, 2, 0, 4, None, None)]
    assert call(spark, table, "forget", where + ", dry_run => false")[0][4] is not None
    name = ".".join(table.identifier)
    for snapshot in table.refresh().snapshots():
        read = f"select id from {name} version as of {snapshot.snapshot_id} where id in (1, 21)"
        assert rows_of(spark, read) == []
    ((*_, due, report),) = call(spark, table, "forget", ", resume => true")
    assert due is not None and report is None
