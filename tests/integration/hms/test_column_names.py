"""Names of columns that differ in case only, which a metastore does not tell apart: refused wherever they are made."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hms_iceberg.catalog import Catalog, load_catalog
from hms_iceberg.errors import IcebergError, InvalidSchemaError
from hms_iceberg.rest import RestSettings
from hms_iceberg.spec.data_types import LongType, NestedField, StructType
from hms_iceberg.spec.schema import Schema
from hms_iceberg.table import Table
from tests.support.hdfs_path import local_path
from tests.support.rest_server import served


def columns(*names: str) -> Schema:
    return Schema(*(NestedField(n, name, LongType()) for n, name in enumerate(names, 1)))


CHANGES: dict[str, Callable[[Catalog, Table], object]] = {
    "add": lambda catalog, table: table.update_schema().add_column("ID", LongType()).commit(),
    "rename": lambda catalog, table: table.update_schema().rename_column("b", "Id").commit(),
    "two at once": lambda catalog, table: (
        table.update_schema().add_column("c", LongType()).add_column("C", LongType()).commit()
    ),
    "union": lambda catalog, table: table.update_schema().union_by_name(columns("id", "ID")).commit(),
    "replace": lambda catalog, table: catalog.replace_table_transaction(table.identifier, columns("id", "ID")),
    "create": lambda catalog, table: catalog.create_table((*table.identifier[:1], "other"), columns("id", "ID")),
    "staged": lambda catalog, table: catalog.create_table_transaction(
        (*table.identifier[:1], "other"), columns("id", "ID")
    ),
}


@pytest.mark.parametrize("way", CHANGES)
def test_no_change_makes_columns_that_differ_in_case_only(catalog: Catalog, namespace: str, way: str) -> None:
    table = catalog.create_table(f"{namespace}.t", columns("id", "b"))
    before = {file.name for file in local_path(table.location()).rglob("*")}
    with pytest.raises(InvalidSchemaError, match="in case only"):
        CHANGES[way](catalog, table)
    assert catalog.load_table(table.identifier).metadata_location == table.metadata_location
    assert {file.name for file in local_path(table.location()).rglob("*")} == before
    assert not catalog.table_exists(f"{namespace}.other")


def test_what_a_metastore_can_name_stays_possible(catalog: Catalog, namespace: str) -> None:
    table = catalog.create_table(f"{namespace}.t", columns("id", "b"))
    with table.update_schema() as schema:
        schema.rename_column("id", "ID")
        schema.delete_column("b").add_column("B", LongType())
        schema.add_column("s", StructType(NestedField(1, "a", LongType()), NestedField(2, "A", LongType())))
    assert catalog.load_table(table.identifier).schema().column_names == ["ID", "B", "s", "s.a", "s.A"]


def test_a_table_that_came_with_such_columns_can_be_written_and_mended(
    catalog: Catalog, namespace: str, tmp_path: Path
) -> None:
    with load_catalog("folders", type="hadoop", warehouse=str(tmp_path)) as folders:
        folders.create_namespace("db")
        location = folders.create_table("db.t", columns("a", "A")).metadata_location
    table = catalog.register_table(f"{namespace}.t", location)
    table.set_properties({"x": "y"})
    with pytest.raises(InvalidSchemaError, match="in case only"):
        table.update_schema().add_column("B", LongType()).add_column("b", LongType()).commit()
    table.refresh().update_schema().rename_column("A", "b").commit()
    with pytest.raises(InvalidSchemaError, match="in case only"):
        table.refresh().update_schema().rename_column("b", "A").commit()


def test_a_client_of_the_rest_server_is_refused_as_well(catalog: Catalog, namespace: str) -> None:
    table = catalog.create_table(f"{namespace}.t", columns("id", "b"))
    with served(catalog, RestSettings()) as running, load_catalog("client", uri=running.url) as client:
        for make in (
            lambda: client.load_table(table.identifier).update_schema().add_column("ID", LongType()).commit(),
            lambda: client.create_table(f"{namespace}.other", columns("id", "ID")),
        ):
            with pytest.raises(IcebergError, match="in case only"):
                make()
    assert table.refresh().schema().column_names == ["id", "b"]
    assert catalog.list_tables(namespace) == [table.identifier]
