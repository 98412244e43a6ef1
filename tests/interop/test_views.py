"""Views of Apache Iceberg (Java) and ours are each other's views."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from hms_iceberg.catalog import Catalog
from hms_iceberg.spark import extend
from hms_iceberg.view import ViewVersion

pytestmark = [pytest.mark.interop, pytest.mark.spark]


def test_a_view_goes_to_java_and_back(iceberg_java: Any, catalog: Catalog, namespace: str) -> None:
    events = catalog.create_table((namespace, "events"), pa.schema([pa.field("id", pa.int64())]))
    events.append(pa.table({"id": [1, 2, 3]}))

    ours = catalog.create_view(
        (namespace, "ours"),
        pa.schema([pa.field("most", pa.int64())]),
        ViewVersion.of_sql({"spark": "select max(id) as most from events"}, (namespace,)),
        properties={"comment": "made here"},
    )
    assert iceberg_java.sql(f"select * from ice.{namespace}.ours") == [[3]]
    iceberg_java.sql(f"alter view ice.{namespace}.ours set tblproperties ('stage' = 'prod')")
    iceberg_java.sql(
        f"create or replace view ice.{namespace}.ours (least comment 'the first') as "
        f"select min(id) from ice.{namespace}.events"
    )
    ours.refresh()
    assert ours.schema().find_field("least").doc == "the first"
    assert [entry.version_id for entry in ours.history()] == [1, 2]
    assert ours.current_version().summary["engine-name"] == "spark"
    ours.set_current_version(1)
    assert iceberg_java.sql(f"select * from ice.{namespace}.ours") == [[3]]

    iceberg_java.sql(
        f"create view ice.{namespace}.theirs comment 'made there' as select id from ice.{namespace}.events where id > 1"
    )
    assert catalog.list_views(namespace) == [(namespace, "ours"), (namespace, "theirs")]
    theirs = catalog.load_view((namespace, "theirs"))
    assert (theirs.properties["comment"], theirs.schema().fields[0].name) == ("made there", "id")
    spark = theirs.sql_for("spark")
    assert spark is not None and "id > 1" in spark.sql
    theirs.replace(ViewVersion.of_sql({"spark": "select id from events where id > 2"}, (namespace,)))
    assert iceberg_java.sql(f"select * from ice.{namespace}.theirs") == [[3]]

    catalog.rename_view((namespace, "theirs"), (namespace, "renamed"))
    shown = iceberg_java.sql(f"show views in ice.{namespace}")
    assert sorted(name for _, name, is_temporary in shown if not is_temporary) == ["ours", "renamed"]
    iceberg_java.sql(f"drop view ice.{namespace}.renamed")
    assert catalog.list_views(namespace) == [(namespace, "ours")]
    catalog.drop_view((namespace, "ours"))
    shown = iceberg_java.sql(f"show views in ice.{namespace}")
    assert [name for _, name, is_temporary in shown if not is_temporary] == []


def test_a_view_made_in_sql_is_shown_alike_by_java(
    iceberg_java: Any, spark: Any, metastore: Any, catalog: Catalog, namespace: str
) -> None:
    events = catalog.create_table((namespace, "events"), pa.schema([pa.field("id", pa.int64())]))
    events.append(pa.table({"id": [1, 2, 3]}))
    ours = extend(spark, catalogs={"ice": {"uri": metastore.uri}}).newSession()
    for session, view in ((ours, f"ice.{namespace}.v"), (iceberg_java, f"ice.{namespace}.w")):
        session.sql(
            f"create view {view} (a comment 'the a', b) comment 'of events' tblproperties ('k' = 'v')"
            f" as with c as (select id, id + 1 from ice.{namespace}.events) select * from c where id > 1"
        )
        for statement in ("select * from", "describe", "show create table", "show tblproperties"):
            found = [list(row) for row in ours.sql(f"{statement} {view}").collect()]
            assert sorted(found) == sorted(iceberg_java.sql(f"{statement} {view}")), f"{statement} {view}"
    found = [list(row) for row in ours.sql(f"show views in ice.{namespace}").collect()]
    assert sorted(found) == sorted(iceberg_java.sql(f"show views in ice.{namespace}"))
    ours.sql(f"create or replace view ice.{namespace}.w as select 7 as b")
    assert iceberg_java.sql(f"select * from ice.{namespace}.w") == [[7]]
    iceberg_java.sql(f"create or replace view ice.{namespace}.v as select 8 as b")
    assert [tuple(row) for row in ours.sql(f"select * from ice.{namespace}.v").collect()] == [(8,)]
