"""A catalog of folders keeps what every metastore promises, and refuses by name what folders cannot do."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.catalog import Catalog, load_catalog
from hms_iceberg.errors import (
    ConfigurationError,
    InvalidInputError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
    UnsupportedError,
)
from hms_iceberg.metastore import CatalogMetastore, Identifier, MetadataVersion
from hms_iceberg.spec.metadata.metadata_json import metadata_to_json
from hms_iceberg.table.file_system import FileSystemTables
from hms_iceberg.table.file_system_catalog import FileSystemCatalog
from tests.support.metastore_contract import MetastoreContract, swap
from tests.support.tables import QUICK

ARROW = pa.schema([("id", pa.int64())])


class WritingCatalog(FileSystemCatalog):
    """Writes the metadata file of a swap first, as a transaction does, for a table where its folder is."""

    def swap(self, identifier: Identifier, base: MetadataVersion | None, new: MetadataVersion) -> MetadataVersion:
        metadata = replace(new.metadata, location=self.location_of(identifier))
        name = f"{self._warehouse}/.written/{uuid.uuid4()}.metadata.json"
        self._folders.create(name, metadata_to_json(metadata))
        return super().swap(identifier, base, MetadataVersion(name, metadata))


class TestFileSystemCatalog(MetastoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> FileSystemCatalog:
        return WritingCatalog(str(tmp_path), ArrowStorage({}))

    @pytest.fixture
    def location(self, tmp_path: Path) -> str:
        return str(tmp_path / "elsewhere")

    @pytest.fixture
    def foreign_table(self, tmp_path: Path) -> Callable[[Identifier], None]:
        return lambda identifier: tmp_path.joinpath(*identifier, "metadata").mkdir(parents=True)

    def test_a_table_of_another_kind_is_not_loaded_listed_or_dropped(
        self, store: CatalogMetastore, namespace: str, foreign_table: object
    ) -> None:
        identifier = (namespace, "plain")
        foreign_table(identifier)  # type: ignore[operator]
        with pytest.raises(NoSuchTableError):
            store.load(identifier)
        with pytest.raises(NoSuchTableError):
            store.drop_table(identifier)
        assert store.list_iceberg_tables(namespace) == []
        assert not store.table_exists(identifier)
        with pytest.raises(NamespaceNotEmptyError, match="plain"):
            store.drop_namespace(namespace)

    def test_a_dropped_table_is_gone_and_its_name_free(
        self, store: CatalogMetastore, table: Identifier, base: MetadataVersion
    ) -> None:
        assert isinstance(store, FileSystemCatalog)
        with pytest.raises(UnsupportedError, match="purge_requested=True"):
            store.drop_table(table)
        store.purge_table(table)
        assert not store.table_exists(table)
        swap(store, table, None, base)
        assert store.table_exists(table)

    def test_a_renamed_table_keeps_its_version(
        self, store: CatalogMetastore, table: Identifier, base: MetadataVersion
    ) -> None:
        with pytest.raises(UnsupportedError, match="Cannot rename"):
            store.rename_table(table, (table[0], "renamed"))
        assert store.load(table).metadata_location == base.location

    def test_namespaces_are_created_listed_changed_and_dropped(self, store: CatalogMetastore) -> None:
        with pytest.raises(UnsupportedError, match="owner-team"):
            store.create_namespace("sales", {"owner-team": "billing"})
        store.create_namespace("sales", {})
        assert store.list_namespaces() == ["sales"]
        assert store.namespace_properties("sales")["location"].endswith("/sales")
        store.update_namespace("sales", {})
        with pytest.raises(UnsupportedError, match="stage"):
            store.update_namespace("sales", {"stage": "prod"})
        store.drop_namespace("sales")
        assert store.list_namespaces() == []

    def test_it_has_every_call_of_the_port(self, store: CatalogMetastore) -> None:
        assert isinstance(store, CatalogMetastore)


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    catalog = load_catalog("files", type="hadoop", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    return catalog


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": list(ids)}, schema=ARROW)


@pytest.mark.parametrize("name", ["\u00fc" * 128, "a\ud800"])
def test_a_name_that_no_folder_can_have_is_refused_by_name(catalog: Catalog, name: str) -> None:
    for call in (
        lambda: catalog.create_namespace(name),
        lambda: catalog.namespace_exists(name),
        lambda: catalog.list_tables(name),
        lambda: catalog.create_table(("db", name), ARROW),
        lambda: catalog.load_table(("db", name)),
        lambda: catalog.table_exists(("db", name)),
    ):
        with pytest.raises(InvalidInputError, match=r"256 bytes|half of a surrogate pair"):
            call()
    longest = catalog.create_table(("db", "\u00fc" * 127), ARROW)
    longest.append(rows(1))
    assert catalog.load_table(longest.identifier).scan().count() == 1


def test_a_catalog_of_folders_has_tables_that_are_written_and_read(catalog: Catalog, tmp_path: Path) -> None:
    table = catalog.create_table("db.events", ARROW, properties=QUICK)
    table.append(rows(1, 2))
    table.delete("id = 1")
    assert catalog.list_tables("db") == [("db", "events")]
    assert catalog.load_table("db.events").scan().to_arrow()["id"].to_pylist() == [2]
    assert (tmp_path / "db" / "events" / "metadata" / "v3.metadata.json").is_file()
    with pytest.raises(TableAlreadyExistsError):
        catalog.create_table("db.events", ARROW)
    replaced = catalog.create_or_replace_table("db.events", pa.schema([("name", pa.string())]))
    assert replaced.scan().count() == 0
    assert [field.name for field in catalog.load_table("db.events").schema().fields] == ["name"]


def test_a_purged_table_leaves_nothing(catalog: Catalog, tmp_path: Path) -> None:
    other = tmp_path.parent / f"{tmp_path.name}-data"
    table = catalog.create_table("db.events", ARROW, properties={**QUICK, "write.data.path": str(other)})
    table.append(rows(1))
    assert any(path.is_file() for path in other.rglob("*"))
    with pytest.raises(UnsupportedError, match="keep its files"):
        catalog.drop_table("db.events")
    catalog.purge_table("db.events")
    assert not any(path.is_file() for path in other.rglob("*"))
    assert not catalog.table_exists("db.events")
    catalog.drop_namespace("db")
    assert catalog.list_namespaces() == []


def test_a_table_cannot_be_elsewhere(catalog: Catalog, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="cannot be elsewhere"):
        catalog.create_table("db.events", ARROW, location=str(tmp_path / "other"))
    with pytest.raises(UnsupportedError, match=r"write\.metadata\.path"):
        catalog.create_table("db.events", ARROW, properties={"write.metadata.path": str(tmp_path / "other")})
    assert not catalog.table_exists("db.events")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_table_is_registered_where_its_folder_is(catalog: Catalog, tmp_path: Path) -> None:
    table = catalog.create_table("db.events", ARROW, properties=QUICK)
    table.append(rows(1))
    kept = tmp_path / "00001-kept.metadata.json"
    kept.write_bytes(Path(table.metadata_location).read_bytes())
    for version in (tmp_path / "db" / "events" / "metadata").glob("v*"):
        version.unlink()
    with pytest.raises(UnsupportedError, match="cannot be elsewhere"):
        catalog.register_table("db.other", str(kept))
    registered = catalog.register_table("db.events", str(kept))
    assert registered.metadata_location.endswith("/v1.metadata.json")
    registered.append(rows(2))
    assert catalog.load_table("db.events").scan().count() == 2


def test_a_base_whose_later_versions_were_deleted_is_a_conflict(catalog: Catalog) -> None:
    properties = {
        **QUICK,
        "write.metadata.delete-after-commit.enabled": "true",
        "write.metadata.previous-versions-max": "1",
    }
    table = catalog.create_table("db.events", ARROW, properties=properties)
    stale = catalog.load_table("db.events")
    for number in range(4):
        table.append(rows(number))
    stale.append(rows(9))
    assert sorted(catalog.load_table("db.events").scan().to_arrow()["id"].to_pylist()) == [0, 1, 2, 3, 9]
    assert stale.metadata_location.endswith("/v6.metadata.json")


@pytest.mark.parametrize("name", ["..", ".hidden", "_x", "a/b", "a:b"])
def test_names_that_are_no_folder_names_are_refused(catalog: Catalog, name: str) -> None:
    with pytest.raises(InvalidInputError, match=r"Not (a|the) name"):
        catalog.create_table(("db", name), ARROW)


def test_a_warehouse_and_a_namespace_are_needed(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="warehouse"):
        load_catalog("files", type="hadoop")
    catalog = load_catalog("files", type="hadoop", warehouse=str(tmp_path / "absent"))
    assert catalog.list_namespaces() == []
    with pytest.raises(NoSuchNamespaceError):
        catalog.create_table("db.events", ARROW)


def test_a_table_whose_folder_holds_files_of_another_is_not_purged(tmp_path: Path) -> None:
    catalog = load_catalog("files", type="hadoop", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    table = catalog.create_table("db.one", ARROW)
    inside = {"write.data.path": f"{table.location()}/others"}
    other = catalog.create_table("db.two", ARROW, properties=inside)
    other.append(pa.table({"id": [1, 2]}, schema=ARROW))
    with pytest.raises(UnsupportedError, match=r"purge table db\.one.*one/others"):
        catalog.purge_table("db.one")
    assert other.scan().count() == 2 and catalog.table_exists("db.one")
    catalog.purge_table("db.two")
    catalog.purge_table("db.one")
    assert not Path(table.location()).exists()


def test_a_folder_of_a_table_with_another_table_in_it_is_not_dropped(tmp_path: Path) -> None:
    tables = FileSystemTables()
    outer = tables.create(ARROW, str(tmp_path / "outer"))
    inner = tables.create(ARROW, str(tmp_path / "outer" / "deep" / "inner"))
    inner.append(pa.table({"id": [1]}, schema=ARROW))
    with pytest.raises(UnsupportedError, match=r"drop the table at .*deep/inner"):
        tables.drop(outer.location())
    assert inner.scan().count() == 1
    tables.drop(inner.location())
    tables.drop(outer.location())
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
