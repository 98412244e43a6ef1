"""Iceberg views in Spark: their names are those of the view's own catalog and namespace."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

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

ViewMaker = Callable[..., None]


@pytest.fixture
def extended(spark: SparkSession, metastore: EmbeddedMetastore) -> SparkSession:
    """A session of its own, with the metastore as the catalog ice as well."""
    return extend(spark, catalogs={"ice": {"uri": metastore.uri}}).newSession()


@pytest.fixture
def other(catalog: Catalog, namespace: str) -> str:
    """Another namespace, with a table of the same name as the first one's."""
    name = f"{namespace}_other"
    catalog.create_namespace(name)
    for each, ids in ((namespace, [1, 2, 3]), (name, [70, 80])):
        catalog.create_table(f"{each}.events", pa.schema([("id", pa.int64())])).append(pa.table({"id": ids}))
    return name


@pytest.fixture
def view(catalog: Catalog, namespace: str) -> ViewMaker:
    def create(name: str, sql: str, columns: dict[str, pa.DataType], default_catalog: str | None = None) -> None:
        fields = [pa.field(key, kind, metadata={"doc": f"the {key}"}) for key, kind in columns.items()]
        version = ViewVersion.of_sql({"trino": "select broken", "spark": sql}, (namespace,), default_catalog)
        catalog.create_view((namespace, name), pa.schema(fields), version)

    return create


@pytest.mark.parametrize("prefix", ["", "spark_catalog.", "ice."])
def test_names_are_those_of_the_views_namespace_whatever_the_session_uses(
    extended: SparkSession, namespace: str, other: str, view: ViewMaker, prefix: str
) -> None:
    view("v", "select max(id) from events", {"most": pa.int64()})
    query = f"with v2 as (select most from v) select v2.most, e.id from v2 join {namespace}.events e on e.id < 3"
    view("nested", query, {"most": pa.int64(), "n": pa.int64()})
    extended.sql("create or replace temporary view events as select 1000L as id")
    for current in ("spark_catalog.default", f"spark_catalog.{other}", f"ice.{other}", f"ice.{namespace}"):
        extended.sql(f"use {current}")
        if prefix or current.startswith("spark_catalog"):
            assert rows_of(extended, f"select * from {prefix}{namespace}.v") == [(3,)]
            assert rows_of(extended, f"select n, most from {prefix}{namespace}.nested where n > 1") == [(2, 3)]
    extended.sql(f"use ice.{namespace}")
    assert rows_of(extended, "select most from v") == [(3,)]
    extended.sql("create or replace temporary view v as select 5 as most")
    assert rows_of(extended, "select most from v") == [(5,)]
    assert rows_of(extended, "with v as (select 6 as most) select most from v") == [(6,)]


def test_columns_have_the_views_names_types_and_comments_by_their_position(
    extended: SparkSession, namespace: str, other: str, view: ViewMaker
) -> None:
    view("v", "select cast(id as int) as a, id as b from events", {"b": pa.int64(), "c": pa.int64()})
    for name in (f"{namespace}.v", f"ice.{namespace}.v"):
        frame = extended.table(name)
        assert [(field.name, field.dataType.simpleString()) for field in frame.schema] == [
            ("b", "bigint"), ("c", "bigint")
        ]  # fmt: skip
        assert [field.metadata["comment"] for field in frame.schema] == ["the b", "the c"]
        assert rows_of(extended, f"select x.b, y.c from {name} x join {name} y on x.b = y.c where x.b > 1") == [
            (2, 2), (3, 3)
        ]  # fmt: skip
        described = {row.col_name: row.comment for row in extended.sql(f"describe {name}").collect()}
        assert described["b"] == "the b"
        assert rows_of(extended, f"select count(*) from {name} where b in (select c from {name} where c > 2)") == [(1,)]


def test_a_default_catalog_goes_before_the_views_own(
    extended: SparkSession, namespace: str, other: str, view: ViewMaker
) -> None:
    view("through_ice", "select count(*) as n from events", {"n": pa.int64()}, "ice")
    view("nowhere", "select count(*) as n from events", {"n": pa.int64()}, "nowhere")
    assert rows_of(extended, f"select n from {namespace}.through_ice") == [(3,)]
    with pytest.raises(Exception, match="nowhere"):
        extended.table(f"{namespace}.nowhere")


def test_what_a_view_cannot_be_is_refused(
    extended: SparkSession, catalog: Catalog, namespace: str, other: str, view: ViewMaker
) -> None:
    from pyspark.errors import AnalysisException

    view("v", "select id from events", {"id": pa.int64()})
    view("wide", "select id, id as again from events", {"id": pa.int64()})
    view("lost", "select id from gone", {"id": pa.int64()})
    view("loop", "select id from loop", {"id": pa.int64()})
    extended.sql(f"use {other}")
    name = f"{namespace}.v"
    refused: list[tuple[str, Any]] = [
        (f"select * from {namespace}.wide", r"has 1 columns, and its query 2"),
        (f"select * from {namespace}.lost", r"TABLE_OR_VIEW_NOT_FOUND.*gone"),
        (f"select * from {namespace}.loop", r"nested too deep"),
        (f"select * from {name} version as of 1", r"is a view, which has no versions"),
        (f"alter view {name} as select 1 as id", r"Nothing was changed"),
        (f"insert into {name} values (1)", r".*"),
    ]
    for statement, message in refused:
        with pytest.raises(AnalysisException, match=message):
            extended.sql(statement)
    assert catalog.load_view((namespace, "v")).sql_for("spark").sql == "select id from events"  # type: ignore[union-attr]
    assert extended.table(name).count() == 3
