"""SQL about partitions and statistics, which Spark means of partitions that a catalog keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.spark_tables import rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hms_iceberg.catalog import Catalog

pytestmark = pytest.mark.spark


@pytest.fixture
def visits(spark: SparkSession, namespace: str) -> str:
    """A table of two specs, with a null, a character that paths escape, and a partition whose rows are deleted."""
    name = f"{namespace}.visits"
    spark.sql(f"create table {name} (id bigint comment 'key', city string, ts timestamp) using iceberg")
    spark.sql(f"alter table {name} add partition field city")
    spark.sql(f"insert into {name} values (1, 'a/b', timestamp'2024-01-01 00:00:00'), (2, null, null)")
    spark.sql(f"alter table {name} add partition field days(ts)")
    spark.sql(f"insert into {name} values (3, 'Ulm', timestamp'2024-01-02 00:00:00'), (4, 'gone', null)")
    spark.sql(f"delete from {name} where city = 'gone'")
    return name


def test_partitions_are_shown_as_the_metadata_has_them(ice: SparkSession, visits: str) -> None:
    spark = ice
    for name in (visits, f"ice.{visits}"):
        assert rows_of(spark, f"show partitions {name}") == [
            ("city=Ulm/ts_day=2024-01-02",),
            ("city=a%2Fb",),
            ("city=null",),
        ]
    assert rows_of(spark, f"show partitions {visits} partition (city = 'a/b')") == [("city=a%2Fb",)]
    assert rows_of(spark, f"show partitions {visits} partition (ts_day = '2024-01-02')") == [
        ("city=Ulm/ts_day=2024-01-02",)
    ]
    assert rows_of(spark, f"show partitions {visits} partition (city = 'elsewhere')") == []
    with pytest.raises(Exception, match="has no partition field 'ts': it has city, ts_day"):
        spark.sql(f"show partitions {visits} partition (ts = '2024-01-02')").collect()


def test_a_partition_is_described(spark: SparkSession, visits: str) -> None:
    assert ("id", "bigint", "key") in rows_of(spark, f"describe {visits} partition (city = null)")
    told = {row[0]: row[1] for row in rows_of(spark, f"describe extended {visits} partition (city = 'Ulm')")}
    assert told["Partition Values"] == "[city=Ulm, ts_day=2024-01-02]"
    assert told["Partition Statistics"].endswith(" bytes, 1 rows")
    assert (told["Data Files"], told["Delete Files"]) == ("1", "0")
    with pytest.raises(Exception, match=r"0 partitions of .* have .*, and not one"):
        spark.sql(f"describe {visits} partition (city = 'elsewhere')").collect()


def test_analyze_writes_the_statistics_of_iceberg(ice: SparkSession, visits: str, catalog: Catalog) -> None:
    def fields() -> set[int]:
        metadata = catalog.load_table(visits).metadata
        return {each for file in metadata.statistics for blob in file.blob_metadata for each in blob.fields}

    ice.sql(f"analyze table ice.{visits} compute statistics for columns city")
    assert fields() == {2} and not catalog.load_table(visits).metadata.partition_statistics
    ice.sql(f"analyze table {visits} compute statistics noscan")
    assert fields() == {2} and catalog.load_table(visits).metadata.partition_statistics
    ice.sql(f"analyze table {visits} compute statistics")
    assert fields() == {1, 2, 3}


def test_what_catalogs_do_with_partitions_is_refused_with_what_to_do(spark: SparkSession, visits: str) -> None:
    for statement, remedy in {
        f"msck repair table {visits}": "call system.add_files",
        f"alter table {visits} recover partitions": "call system.add_files",
        f"alter table {visits} add partition (city = 'x')": "Insert the rows",
        f"alter table {visits} drop partition (city = 'Ulm')": "delete from",
        f"alter table {visits} partition (city = 'Ulm') rename to partition (city = 'x')": "Update the column",
        f"truncate table {visits} partition (city = 'Ulm')": "delete from",
    }.items():
        with pytest.raises(Exception, match=remedy):
            spark.sql(statement)
    assert spark.table(visits).count() == 3
