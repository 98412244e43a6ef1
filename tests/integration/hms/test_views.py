"""Iceberg views in the real metastore: their rows, their versions, and who may have their names."""

from __future__ import annotations

import threading
import uuid
from pathlib import Path

import pyarrow as pa
import pytest

from hms_iceberg.catalog import Catalog, load_catalog
from hms_iceberg.errors import (
    CommitStateUnknownError,
    InvalidInputError,
    MetastoreError,
    NoSuchNamespaceError,
    NoSuchTableError,
    NoSuchViewError,
    TableAlreadyExistsError,
    UnsupportedError,
    ViewAlreadyExistsError,
)
from hms_iceberg.hms.commit.scratch_rows import scratch_row
from hms_iceberg.hms.embedded import EmbeddedMetastore
from hms_iceberg.view import View, ViewVersion
from tests.support.thrift_proxy import Fault, ThriftProxy

COLUMNS = pa.schema([pa.field("n", pa.int64())])


def query(text: str, **others: str) -> ViewVersion:
    return ViewVersion.of_sql({"spark": text, **others}, ("db",))


@pytest.fixture
def view(catalog: Catalog, namespace: str) -> View:
    return catalog.create_view(
        (namespace, "seen"), COLUMNS, query("select 1 as n"), properties={"comment": "of a test"}
    )


def files(view: View) -> set[str]:
    return {
        path.name
        for path in Path(view.location().removeprefix("file:"), "metadata").iterdir()
        if path.suffix == ".json"
    }


def test_a_view_is_a_hive_view_that_points_at_its_metadata(catalog: Catalog, view: View) -> None:
    row = catalog.metastore.client.get_table(*view.identifier)  # type: ignore[attr-defined]
    parameters = row.parameters
    assert (row.tableType, parameters["table_type"], parameters["comment"]) == (
        "VIRTUAL_VIEW",
        "ICEBERG-VIEW",
        "of a test",
    )
    assert (parameters["metadata_location"], parameters["uuid"]) == (view.metadata_location, str(view.uuid()))
    assert (row.viewOriginalText, row.viewExpandedText) == ("select 1 as n", "select 1 as n")
    assert [(column.name, column.type) for column in row.sd.cols] == [("n", "bigint")]
    first = view.metadata_location
    view.replace(query("select 2 as n", hive="select 2 n"), pa.schema([*COLUMNS, pa.field("day", pa.date32())]))
    view.set_properties({"stage": "prod"}).remove_properties("comment", "absent")
    row = catalog.metastore.client.get_table(*view.identifier)  # type: ignore[attr-defined]
    assert row.parameters["metadata_location"] == view.metadata_location != first
    assert (row.parameters["stage"], "comment" in row.parameters) == ("prod", False)
    assert row.viewOriginalText == "select 2 n", "Hive's own query, where there is one"
    assert [column.name for column in row.sd.cols] == ["n", "day"]


def test_a_view_is_loaded_replaced_and_brought_back(catalog: Catalog, view: View) -> None:
    loaded = catalog.load_view(view.identifier)
    assert loaded == view and loaded.sql_for("Spark") == view.sql_for("spark")
    assert view.metadata_location.endswith(".gz.metadata.json")
    view.replace(query("select 2 as n"))
    assert [entry.version_id for entry in catalog.load_view(view.identifier).history()] == [1, 2]
    assert loaded.current_version().version_id == 1 and loaded.refresh().current_version().version_id == 2
    location = view.metadata_location
    assert view.replace(query("select 2 as n")).metadata_location == location, "nothing changed, nothing is written"
    assert view.set_current_version(1).sql_for("spark").sql == "select 1 as n"  # type: ignore[union-attr]
    again = catalog.create_or_replace_view(view.identifier, COLUMNS, query("select 3 as n"), properties={"a": "1"})
    assert (again.uuid(), again.current_version().version_id) == (view.uuid(), 3)
    assert again.properties == {"comment": "of a test", "a": "1"}
    before = files(view)
    with pytest.raises(InvalidInputError, match="no query in spark"):
        view.replace(ViewVersion.of_sql({"trino": "select 4 as n"}))
    assert files(view) == before


def test_defaults_and_overrides_of_the_catalog_surround_a_views_properties(
    metastore: EmbeddedMetastore, view: View
) -> None:
    around = {"view-default.a": "1", "view-default.b": "1", "view-override.c": "3", "table-default.a": "0"}
    catalog = load_catalog("around", type="hive", uri=metastore.uri, warehouse=metastore.warehouse, **around)
    given = {"b": "2", "c": "2"}
    made = catalog.create_view((view.identifier[0], "around"), COLUMNS, query("select 1 as n"), properties=given)
    replaced = catalog.create_or_replace_view(view.identifier, COLUMNS, query("select 3 as n"), properties=given)
    for each in (made, replaced):
        assert {key: each.properties[key] for key in "abc"} == {"a": "1", "b": "2", "c": "3"}


def test_names_are_of_one_kind(catalog: Catalog, namespace: str, view: View) -> None:
    table = catalog.create_table((namespace, "events"), COLUMNS)
    catalog.metastore.client.create_table(scratch_row(namespace, "hives", "1"))  # type: ignore[attr-defined]
    assert catalog.list_views(namespace.upper()) == [view.identifier]
    assert catalog.list_tables(namespace) == [table.identifier]
    assert catalog.view_exists((namespace.upper(), "SEEN")) and not catalog.view_exists(table.identifier)
    assert not catalog.table_exists(view.identifier)
    with pytest.raises(NoSuchTableError, match="load_view"):
        catalog.load_table(view.identifier)
    with pytest.raises(NoSuchTableError):
        catalog.drop_table(view.identifier)
    with pytest.raises(NoSuchViewError, match="load_table"):
        catalog.load_view(table.identifier)
    with pytest.raises(NoSuchViewError, match="a Hive view"):
        catalog.load_view((namespace, "hives"))
    with pytest.raises(NoSuchViewError):
        catalog.drop_view((namespace, "absent"))
    with pytest.raises(NoSuchNamespaceError):
        catalog.list_views(f"absent_{uuid.uuid4().hex}")
    before = files(view)
    with pytest.raises(ViewAlreadyExistsError):
        catalog.create_view(view.identifier, COLUMNS, query("select 9 as n"), location=view.location())
    for taken in ("events", "hives"):
        with pytest.raises(TableAlreadyExistsError, match="a table or a Hive view"):
            catalog.create_view((namespace, taken), COLUMNS, query("select 9 as n"), location=view.location())
    with pytest.raises(TableAlreadyExistsError):
        catalog.create_table(view.identifier, COLUMNS)
    assert files(view) == before, "what was written for them is deleted again"


def test_a_view_is_renamed_registered_and_dropped(catalog: Catalog, namespace: str, view: View) -> None:
    other = f"other_{uuid.uuid4().hex[:8]}"
    catalog.create_namespace(other)
    catalog.create_table((namespace, "events"), COLUMNS)
    for taken in ("events", view.name()[-1]):
        with pytest.raises(ViewAlreadyExistsError):
            catalog.rename_view(view.identifier, (namespace, taken))
    moved = catalog.rename_view(view.identifier, (other, "moved"))
    assert (moved.uuid(), catalog.list_views(namespace)) == (view.uuid(), [])
    with pytest.raises(NoSuchViewError):
        view.set_properties({"a": "1"})
    catalog.create_view(view.identifier, COLUMNS, query("select 5 as n"))
    with pytest.raises(NoSuchViewError, match="another view of that name"):
        view.set_properties({"a": "1"})
    twin = catalog.register_view((other, "twin"), moved.metadata_location)
    assert twin.sql_for("spark") == moved.sql_for("spark")
    twin.set_properties({"gc.enabled": "false"})
    kept, gone = twin.metadata_location, moved.metadata_location
    catalog.drop_view((other, "twin"))
    catalog.drop_view((other, "moved"))
    assert catalog.storage.exists(kept) and not catalog.storage.exists(gone)
    catalog.drop_namespace(other)


@pytest.mark.parametrize("tells", [True, False], ids=["told", "not told"])
def test_a_view_that_was_registered_from_the_file_of_a_view_that_is_dropped_stays_readable(
    catalog: Catalog, namespace: str, view: View, tells: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    twin = catalog.register_view(f"{namespace}.twin", view.metadata_location)
    if not tells:

        def refuse(*arguments: object) -> None:
            raise MetastoreError("not now")

        monkeypatch.setattr(catalog.metastore.client, "list_databases", refuse)  # type: ignore[attr-defined]
    catalog.drop_view(view.identifier)
    monkeypatch.undo()
    assert catalog.load_view(twin.identifier).sql_for("spark") == view.sql_for("spark")
    catalog.drop_view(twin.identifier)
    assert not catalog.storage.exists(view.metadata_location), "nobody names it any more"


def test_writers_of_one_view_all_get_through(metastore: EmbeddedMetastore, view: View) -> None:
    failures: list[BaseException] = []

    def write(number: int, lock: str) -> None:
        try:
            with load_catalog("writer", uri=metastore.uri, **{"iceberg.engine.hive.lock-enabled": lock}) as catalog:
                catalog.load_view(view.identifier).set_properties({f"writer-{number}": "was here"})
        except BaseException as error:
            failures.append(error)

    for lock in ("true", "false"):
        threads = [threading.Thread(target=write, args=(f"{lock}-{number}", lock)) for number in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert failures == []
    assert len([key for key in view.refresh().properties if key.startswith("writer-")]) == 6


def test_a_lost_answer_is_told_truly(metastore: EmbeddedMetastore, view: View) -> None:
    with ThriftProxy(metastore.port) as proxy, load_catalog("proxy", uri=proxy.uri) as catalog:
        through = catalog.load_view(view.identifier)
        alter = "alter_table_with_environment_context"
        proxy.on(alter, Fault.DROP_ANSWER)
        through.set_properties({"made": "true"})
        assert view.refresh().properties["made"] == "true"
        before = files(view)
        proxy.on(alter, Fault.DROP_REQUEST)
        with pytest.raises(CommitStateUnknownError, match=f"commit to view {'.'.join(view.identifier)}"):
            through.set_properties({"lost": "true"})
        assert files(view) > before, "no file is deleted where the outcome is not known"
        assert "lost" not in view.refresh().properties
        through.set_properties({"next": "true"})
        assert view.refresh().properties["next"] == "true"


def test_a_catalog_of_folders_has_no_views(tmp_path: Path) -> None:
    catalog = load_catalog("folders", type="hadoop", warehouse=str(tmp_path))
    with pytest.raises(UnsupportedError, match="no views"):
        catalog.list_views("db")
