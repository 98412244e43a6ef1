"""CREATE, ALTER, DROP and SHOW of Iceberg views in SQL; in the session catalog, CREATE VIEW is Hive's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from hms_iceberg.spark import extend
from hms_iceberg.view import ViewVersion
from tests.support.spark_tables import rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hms_iceberg.catalog import Catalog
    from hms_iceberg.hms.embedded import EmbeddedMetastore

pytestmark = pytest.mark.spark


@pytest.fixture
def ice(spark: SparkSession, metastore: EmbeddedMetastore, catalog: Catalog, namespace: str) -> SparkSession:
    """A session of its own in a namespace of the catalog ice that has a table `events`."""
    events = catalog.create_table(f"{namespace}.events", pa.schema([("id", pa.int64()), ("name", pa.string())]))
    events.append(pa.table({"id": [1, 2, 3], "name": ["a", "b", "c"]}))
    session = extend(spark, catalogs={"ice": {"uri": metastore.uri}}).newSession()
    session.sql(f"use ice.{namespace}")
    return session


def refused(session: SparkSession, statement: str, message: str) -> None:
    from pyspark.errors import AnalysisException

    with pytest.raises(AnalysisException, match=message):
        session.sql(statement)


def test_a_view_has_its_query_columns_comments_and_properties_and_the_namespace_that_was_current(
    ice: SparkSession, catalog: Catalog, namespace: str
) -> None:
    ice.sql(
        "create view v (a comment 'the a', b) comment 'of events' tblproperties ('k' = 'it\\'s')"
        " as select id, name from events where id > 1"
    )
    view = catalog.load_view((namespace, "v"))
    version = view.current_version()
    assert [(field.name, field.doc) for field in view.schema().fields] == [("a", "the a"), ("b", None)]
    assert (version.default_catalog, version.default_namespace) == (None, (namespace,))
    assert version.summary == {"engine-name": "spark", "engine-version": ice.version}
    written_by = f"Spark {ice.version}"
    assert view.properties == {
        "k": "it's", "comment": "of events", "create_engine_version": written_by, "engine_version": written_by,
        "spark.query-column-names": "id,name",
    }  # fmt: skip
    ice.sql("use spark_catalog.default")
    assert rows_of(ice, f"select a, b from ice.{namespace}.v") == [(2, "b"), (3, "c")]
    ice.sql(f"use spark_catalog.{namespace}")
    ice.sql(f"create view ice.{namespace}.from_session as select * from events")
    assert catalog.load_view((namespace, "from_session")).current_version().default_catalog == "spark_catalog"
    assert ice.table(f"ice.{namespace}.from_session").count() == 3


def test_a_view_that_is_there_stays_unless_it_is_replaced_and_then_keeps_its_history(
    ice: SparkSession, catalog: Catalog, namespace: str
) -> None:
    ice.sql("create view v tblproperties ('k' = 'v') as select 1 as x")
    refused(ice, "create view v as select 2 as x", "VIEW_ALREADY_EXISTS")
    ice.sql("create view if not exists v as select 2 as x")
    assert rows_of(ice, "select x from v") == [(1,)]
    ice.sql("create or replace view v as with c as (select id from events) select max(id) as y from c")
    assert rows_of(ice, "select y from v") == [(3,)]
    view = catalog.load_view((namespace, "v"))
    assert ([entry.version_id for entry in view.history()], view.properties["k"]) == ([1, 2], "v")
    refused(ice, "create view events as select 1 as x", "already exists")
    refused(ice, "create or replace view events as select 1 as x", "already exists")
    refused(ice, "create table v (x int)", "already exists")
    refused(ice, "create view nowhere.v as select 1 as x", "SCHEMA_NOT_FOUND.*nowhere")


def test_a_view_of_all_columns_keeps_its_own_when_its_table_gets_more(ice: SparkSession) -> None:
    ice.sql("create view v as select * from events")
    ice.sql("create view w (a, b) as select * from events")
    ice.sql("alter table events add columns (before bigint first, after int)")
    assert rows_of(ice, "select * from v") == [(1, "a"), (2, "b"), (3, "c")]
    assert rows_of(ice, "select b, a from w where a > 1") == [("b", 2), ("c", 3)]
    ice.sql("alter table events rename column id to number")
    refused(ice, "select * from v", "has 2 columns, and its query 4")


def test_what_a_view_cannot_be_made_of_is_refused(ice: SparkSession, catalog: Catalog, namespace: str) -> None:
    ice.sql("create temporary view mine as select 1 as id")
    ice.udf.register("mine_too", lambda x: x, "int")
    ice.sql("create view v as select id from events")
    ice.sql("create view over_v as select id from v")
    for statement, message in (
        ("create view w as select * from mine", r"references temporary view: \[mine\]"),
        ("create view w as select 1 as x where 1 in (select id from mine)", r"references temporary view: \[mine\]"),
        ("create view w as select mine_too(1) as x", r"references temporary function: \[mine_too\]"),
        ("create view w as select id, id from events", "COLUMN_ALREADY_EXISTS"),
        ("create view w (a) as select id, name from events", "TOO_MANY_DATA_COLUMNS"),
        ("create view w (a, b, c) as select id, name from events", "NOT_ENOUGH_DATA_COLUMNS"),
        ("create view w as select * from missing", "TABLE_OR_VIEW_NOT_FOUND"),
        ("create view w as select interval '1' day as x", "Unsupported type interval day"),
        ("create or replace view v as select id from V", "Recursive cycle in view"),
        ("create or replace view v as select 1 as id where 1 in (select id from over_v)", "over_v -> ice"),
        ("alter view v as select 1 as id", "Use CREATE OR REPLACE VIEW"),
    ):
        refused(ice, statement, message)
    assert catalog.list_views(namespace) == [(namespace, "over_v"), (namespace, "v")]
    assert len(catalog.load_view((namespace, "v")).history()) == 1


def test_properties_are_set_and_unset_but_for_those_that_say_what_the_view_is(
    ice: SparkSession, catalog: Catalog, namespace: str
) -> None:
    ice.sql("create view v tblproperties ('k' = 'v') as select id from events")
    ice.sql("alter view v set tblproperties ('k' = 'w', 'z' = '1', 'comment' = 'new')")
    ice.sql("alter view v unset tblproperties ('z')")
    ice.sql("alter view v unset tblproperties if exists ('z')")
    location = f"{catalog.load_view((namespace, 'v')).location()}"
    assert rows_of(ice, "show tblproperties v") == [
        ("format-version", "1"), ("k", "w"), ("location", location), ("provider", "iceberg")
    ]  # fmt: skip
    missing = f"View ice.{namespace}.v does not have property: nope"
    assert rows_of(ice, "show tblproperties v ('nope')") == [("nope", missing)]
    refused(ice, "alter view v unset tblproperties ('z')", "Cannot remove property that is not set: 'z'")
    refused(ice, "alter view v set tblproperties ('format-version' = '2')", "Cannot set reserved property")
    assert catalog.load_view((namespace, "v")).properties["comment"] == "new"


def test_views_are_listed_renamed_and_dropped(ice: SparkSession, catalog: Catalog, namespace: str) -> None:
    other = f"{namespace}_other"
    catalog.create_namespace(other)
    ice.sql("create view v as select id from events")
    ice.sql("create view w as select id from v")
    ice.sql("create temporary view v_mine as select 1 as x")
    assert rows_of(ice, "show views") == [("", "v_mine", True), (namespace, "v", False), (namespace, "w", False)]
    assert rows_of(ice, f"show views in ice.{namespace} like 'v*'") == [("", "v_mine", True), (namespace, "v", False)]
    assert rows_of(ice, "show tables like 'events|v|w'") == [(namespace, "events", False)]
    ice.sql(f"alter view v rename to {other}.moved")
    assert ice.table(f"ice.{other}.moved").count() == 3
    refused(ice, f"alter view {other}.moved rename to spark_catalog.{other}.v", "Cannot move the view")
    refused(ice, f"alter view {other}.moved rename to w", "VIEW_ALREADY_EXISTS")
    refused(ice, "drop view events", "VIEW_NOT_FOUND")
    refused(ice, "drop table w", "TABLE_OR_VIEW_NOT_FOUND")
    refused(ice, "drop view v", "VIEW_NOT_FOUND")
    ice.sql("drop view if exists v")
    assert "DropView" not in ice.sql("explain drop view w").collect()[0][0]
    ice.sql("drop view w")
    assert catalog.list_views(namespace) == []
    assert rows_of(ice, "select count(*) from events") == [(3,)]


def test_what_show_create_table_says_makes_the_view_again(ice: SparkSession, catalog: Catalog, namespace: str) -> None:
    ice.sql(
        "create view v (`odd name` comment 'c\\'s', b) comment 'it\\'s' tblproperties ('k' = 'v')"
        " as select id + 1, name from events"
    )
    statement = ice.sql("show create table v").collect()[0][0]
    described = ice.sql("describe extended v").collect()
    assert [tuple(row) for row in described[:5]] == [
        ("odd name", "bigint", "c's"), ("b", "string", ""), ("", "", ""), ("# Detailed View Information", "", ""),
        ("Comment", "it's", ""),
    ]  # fmt: skip
    assert ("View Query Output Columns", "[(id + 1), name]", "") in [tuple(row) for row in described]
    before = catalog.load_view((namespace, "v"))
    ice.sql("drop view v")
    ice.sql(statement.replace("'format-version' = '1',\n", "").replace("'provider' = 'iceberg'", "'x' = 'y'"))
    after = catalog.load_view((namespace, "v"))
    assert (after.schema(), after.sql_for("spark")) == (before.schema(), before.sql_for("spark"))
    assert ice.sql("describe extended v").collect()[:5] == described[:5]


def test_in_the_session_catalog_new_views_are_hives_and_iceberg_views_are_changed_as_such(
    ice: SparkSession, catalog: Catalog, namespace: str
) -> None:
    ice.sql(f"use spark_catalog.{namespace}")
    ice.sql("create view hive_view as select id from events")
    ice.sql("create or replace view hive_view as select id, name from events")
    assert catalog.list_views(namespace) == []
    version = ViewVersion.of_sql({"spark": "select id from events"}, (namespace,))
    catalog.create_view((namespace, "v"), pa.schema([("id", pa.int64())]), version)
    ice.sql("create or replace temporary view v as select 0 as id")
    ice.sql("create or replace view v as select id, name from events where id < 3")
    assert ice.table(f"{namespace}.v").count() == 2
    ice.sql("drop view v")  # the temporary one
    ice.sql("alter view v set tblproperties ('k' = 'v')")
    assert catalog.load_view((namespace, "v")).properties["k"] == "v"
    assert ice.sql("show create table v").collect()[0][0].startswith(f"CREATE VIEW spark_catalog.{namespace}.v (")
    ice.sql("alter view v rename to v2")
    metadata = catalog.load_view((namespace, "v2")).metadata_location
    ice.sql("drop view v2")
    assert not catalog.storage.exists(metadata)
    ice.sql("drop view hive_view")
