"""Iceberg's ALTER TABLE statements in Spark SQL, in the session catalog and in named ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from hms_iceberg.spec.data_types import LongType, NestedField, StringType, TimestamptzType
from hms_iceberg.spec.schema import Schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hms_iceberg.catalog import Catalog
    from hms_iceberg.table import Table

pytestmark = pytest.mark.spark


@pytest.fixture
def table(catalog: Catalog, namespace: str) -> Table:
    schema = Schema(
        NestedField(1, "id", LongType(), True),
        NestedField(2, "s", StringType()),
        NestedField(3, "ts", TimestamptzType()),
    )
    return catalog.create_table(f"{namespace}.t", schema)


def test_partition_fields_order_and_identifier_fields(ice: SparkSession, table: Table, namespace: str) -> None:
    names = (f"{namespace}.t", f"ice.{namespace}.t")
    ice.sql(f"alter table {names[0]} add partition field bucket(4, id) as shard")
    ice.sql(f"alter table {names[1]} add partition field truncate(S, 2)")
    assert [str(each) for each in table.refresh().spec().fields] == [
        "1000: shard: bucket[4](1)",
        "1001: s_trunc_2: truncate[2](2)",
    ]
    ice.sql(f"alter table {names[1]} replace partition field shard with days(ts)")
    ice.sql(f"alter table {names[0]} drop partition field truncate(s, 2)")
    assert [each.name for each in table.refresh().spec().fields] == ["ts_day"]
    ice.sql(f"alter table {names[0]} write distributed by partition locally ordered by s desc, id")
    order = [str(each) for each in table.refresh().sort_order().fields]
    assert order == ["identity(2) desc nulls-last", "identity(1) asc nulls-first"]
    assert table.properties["write.distribution-mode"] == "hash"
    ice.sql(f"alter table {names[1]} write unordered")
    assert table.refresh().sort_order().fields == ()
    assert table.properties["write.distribution-mode"] == "none"
    ice.sql(f"use {names[1].rpartition('.')[0]}")
    try:
        ice.sql("alter table t set identifier fields ID")
        assert table.refresh().schema().identifier_field_ids == (1,)
        ice.sql("alter table t drop identifier fields id")
    finally:
        ice.sql("use spark_catalog.default")
    assert not table.refresh().schema().identifier_field_ids


def test_branches_and_tags(ice: SparkSession, table: Table, namespace: str) -> None:
    name = f"{namespace}.t"
    ice.sql(f"alter table {name} create branch early")  # before the first snapshot of main: an empty one is made
    assert table.refresh().current_snapshot() is None
    assert ice.sql(f"select * from {name}.branch_early").count() == 0
    row = pa.table({"id": [1]}, schema=pa.schema([pa.field("id", pa.int64(), nullable=False)]))
    table.append(row)
    first = table.current_snapshot()
    assert first is not None
    table.append(row)
    ice.sql(
        f"alter table ice.{name} create branch `b-1` as of version {first.snapshot_id} retain 7 days "
        "with snapshot retention 2 snapshots 3 hours"
    )
    branch = table.refresh().metadata.refs["b-1"]
    assert (branch.snapshot_id, branch.max_ref_age_ms) == (first.snapshot_id, 7 * 86_400_000)
    assert (branch.min_snapshots_to_keep, branch.max_snapshot_age_ms) == (2, 3 * 3_600_000)
    ice.sql(f"alter table {name} create branch if not exists `b-1`")
    ice.sql(f"alter table {name} replace branch `b-1` retain 1 hours")
    branch = table.refresh().metadata.refs["b-1"]
    assert (branch.snapshot_id, branch.max_ref_age_ms) == (table.metadata.current_snapshot_id, 3_600_000)
    ice.sql(f"alter table {name} create or replace tag v1 as of version {first.snapshot_id}")
    assert ice.sql(f"select * from {name}.tag_v1").count() == 1
    assert ice.sql(f"select * from ice.{name}.`branch_b-1`").count() == 2
    ice.sql(f"alter table {name} drop branch `b-1`")
    ice.sql(f"alter table {name} drop tag if exists nothing")
    assert set(table.refresh().metadata.refs) == {"main", "early", "v1"}


def test_what_is_refused_says_so_and_changes_nothing(ice: SparkSession, table: Table, namespace: str) -> None:
    from pyspark.errors import AnalysisException, ParseException

    name = f"{namespace}.t"
    before = table.refresh().metadata_location
    ice.sql(f"create table {namespace}.h (id int) using parquet")
    ice.sql(f"create view {namespace}.v as select 1 as id")
    for text, problem in (
        (f"alter table {name} create tag v", "NoSuchSnapshotError.*main has no snapshot"),
        (f"alter table {name} replace branch b", "NoSuchSnapshotError"),
        (f"alter table {name} create branch b as of version 5", "NoSuchSnapshotError.*5"),
        (f"alter table {name} drop branch main", "Cannot remove branch 'main'|NoSuchRefError"),
        (f"alter table {name} drop tag nope", "NoSuchRefError.*nope"),
        (f"alter table {name} add partition field hours(id)", "InvalidPartitionSpecError"),
        (f"alter table {name} drop partition field nope", "InvalidPartitionSpecError.*nope"),
        (f"alter table {name} write ordered by nope", "UnknownColumnError.*nope"),
        (f"alter table {name} set identifier fields s", "the column is optional"),
        (f"alter table {name} drop identifier fields id", "it is no identifier field"),
        (f"alter table {namespace}.h create branch b", "NotAnIcebergTableError.*h: it is not an Iceberg table"),
        (f"alter table {namespace}.v create branch b", "EXPECT_TABLE_NOT_VIEW|expects a table"),
        (f"alter table {namespace}.nope create branch b", "TABLE_OR_VIEW_NOT_FOUND"),
    ):
        with pytest.raises(AnalysisException, match=problem):
            ice.sql(text)
    with pytest.raises(ParseException, match=r"at or near 'c'. SqlParseError: expected the end(.|\n)*-\^\^\^"):
        ice.sql(f"alter table {name} create branch b c")
    with pytest.raises(ParseException) as caught:
        ice.sql(f"alter table {name} explode")
    assert "SqlParseError" not in str(caught.value)
    assert table.refresh().metadata_location == before
    assert ice.sql(f"show tblproperties {namespace}.h").where("key like 'hms%'").count() == 0


def test_variables_and_parameters_of_the_session_s_own_parser_stay(
    ice: SparkSession, table: Table, namespace: str
) -> None:
    ice.conf.set("branch", "from_a_variable")
    ice.sql(f"alter table {namespace}.t create branch ${{branch}}")
    assert "from_a_variable" in table.refresh().metadata.refs
    assert ice.sql("select :a + ?".replace("?", ":b"), args={"a": 1, "b": 2}).collect()[0][0] == 3
    assert ice.sql(f"select * from {namespace}.t where id = ?", args=[1]).count() == 0
