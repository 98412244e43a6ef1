"""Hive Metastores of other releases than the embedded one keep the same promises: 3.1 without compare-and-swap, 4."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from hms_iceberg.catalog import load_catalog
from hms_iceberg.errors import NoSuchTableError, UnsupportedError
from hms_iceberg.hms.commit.capability import Capability, told
from hms_iceberg.hms.connection.thrift_types import ttypes
from hms_iceberg.hms.hive_metastore import HiveMetastore
from hms_iceberg.spec.data_types import (
    BinaryType,
    DecimalType,
    FixedType,
    ListType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampNanoType,
    TimestamptzType,
    TimeType,
    UnknownType,
    UUIDType,
    VariantType,
)
from hms_iceberg.spec.schema import Schema
from hms_iceberg.view import ViewVersion
from tests.support.hive_contract import HiveMetastoreContract
from tests.support.hive_server.releases import (
    HIVE_3_1,
    HIVE_4_0,
    HIVE_4_1,
    HIVE_4_2,
    Release,
)
from tests.support.hive_server.server import HiveServer
from tests.support.maven import UnavailableError

MODES = ["true", "auto"]  # with the lock, and without where the server can do without
SCHEMA = pa.schema([pa.field("id", pa.int64()), pa.field("who", pa.string())])

pytestmark = pytest.mark.slow  # each server is started once, which takes some seconds


RELEASES = (HIVE_3_1, HIVE_4_0, HIVE_4_1, HIVE_4_2)


@pytest.fixture(scope="module", params=RELEASES, ids=lambda release: f"hive-{release.version}")
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HiveServer]:
    release: Release = request.param
    try:
        release.java()
        release.jars()
    except UnavailableError as error:
        pytest.skip(str(error))  # no Java for it, or its jars are in no cache and Maven cannot fetch them here
    with HiveServer(release, tmp_path_factory.mktemp("hive")) as server:
        yield server


class TestServers(HiveMetastoreContract):
    @pytest.fixture(params=MODES, ids=["lock", "auto"])
    def store(self, request: pytest.FixtureRequest, server: HiveServer) -> Iterator[HiveMetastore]:
        store = HiveMetastore({"uri": server.uri, "iceberg.engine.hive.lock-enabled": request.param})
        yield store
        store.close()


def test_what_a_server_tells_of_itself_is_what_trying_finds(server: HiveServer) -> None:
    store = HiveMetastore({"uri": server.uri})
    compares = server.release is not HIVE_3_1
    assert told(store.client) is compares
    assert Capability(store.client)._probe() is compares
    assert store.client.list_tables("default") == [], "the scratch view is gone"
    store.close()
    if server.release is HIVE_3_1:
        refusing = HiveMetastore({"uri": server.uri, "iceberg.engine.hive.lock-enabled": "false"})
        with pytest.raises(UnsupportedError, match="HIVE-26882"), refusing.lease(("default", "any"), {}) as lease:
            lease.acquire()


def test_an_alter_changes_what_it_is_to_change_and_erases_nothing(server: HiveServer) -> None:
    with load_catalog("server", type="hive", uri=server.uri, warehouse=server.warehouse) as catalog:
        client = catalog.metastore.client  # type: ignore[attr-defined]
        catalog.create_namespace("altered", {"comment": "old", "a": "1"})
        database = client.get_database("altered")
        database.managedLocationUri = f"{server.warehouse}/managed"  # of Hive 4, and unknown to 3
        client.alter_database("altered", database)
        moved = {"comment": "new", "location": f"file:{server.folder}/moved.db", "b": "2"}
        catalog.update_namespace_properties("altered", removals={"a"}, updates=moved)
        properties = catalog.load_namespace_properties("altered")
        assert moved.items() <= properties.items() and "a" not in properties
        managed = client.get_database("altered").managedLocationUri
        assert managed == (None if server.release is HIVE_3_1 else f"{server.warehouse}/managed")

        table = catalog.create_table("altered.events", SCHEMA)
        row = client.get_table("altered", "events")
        row.owner, row.ownerType = "analysts", ttypes.PrincipalType.ROLE
        client.alter_table("altered", "events", row)
        table.append(pa.table({"id": [1], "who": ["a"]}, schema=SCHEMA))
        row = client.get_table("altered", "events")
        assert (row.catName, row.owner, row.ownerType) == ("hive", "analysts", ttypes.PrincipalType.ROLE)
        assert (row.parameters["numRows"], row.parameters["numFiles"]) == ("1", "1")
        assert "DO_NOT_UPDATE_STATS" not in row.parameters


@pytest.mark.parametrize("hive2", ["true", "false"])
def test_every_type_makes_a_row_that_the_server_takes(server: HiveServer, hive2: str) -> None:
    nested = StructType(NestedField(20, "at", TimestamptzType()), NestedField(21, "with space", StringType()))
    at = ListType(30, MapType(31, StringType(), 32, StructType(NestedField(33, "at", TimestamptzType()))))
    kinds = (DecimalType(38, 10), TimeType(), TimestamptzType(), TimestampNanoType(), UUIDType(), FixedType(7))
    kinds = (*kinds, BinaryType(), UnknownType(), VariantType(), nested, at)
    schema = Schema(*(NestedField(number, f"c{number}", kind, doc="d" * 400) for number, kind in enumerate(kinds, 1)))
    properties = {"warehouse": server.warehouse, "hive.hive2-compatible": hive2}
    with load_catalog("server", type="hive", uri=server.uri, **properties) as catalog:
        catalog.create_namespace_if_not_exists("types")
        table = catalog.create_table(f"types.t_{hive2}", schema, properties={"format-version": "3"})
        with table.update_schema() as update:
            update.move_first("c3").delete_column("c1")
        columns = catalog.metastore.client.get_table("types", f"t_{hive2}").sd.cols  # type: ignore[attr-defined]
        instant = "timestamp" if hive2 == "true" else "timestamp with local time zone"
        assert (columns[0].type, columns[-1].type) == (instant, f"array<map<string,struct<at:{instant}>>>")
        assert len(columns) == 10


def test_no_server_moves_or_deletes_the_files_of_a_table(server: HiveServer) -> None:
    with load_catalog("server", type="hive", uri=server.uri, warehouse=server.warehouse) as catalog:
        client = catalog.metastore.client  # type: ignore[attr-defined]
        catalog.create_namespace("kept")
        table = catalog.create_table("kept.events", SCHEMA, properties={"gc.enabled": "true"})
        table.append(pa.table({"id": [1], "who": ["a"]}, schema=SCHEMA))
        row = client.get_table("kept", "events")
        assert row.parameters["external.table.purge"] == "true"
        row.parameters["TRANSLATED_TO_EXTERNAL"] = "TRUE"  # as Hive 4 marks what it made external by itself
        client.alter_table("kept", "events", row)
        files = sorted(file.location for file in table.storage.list(table.location()))
        renamed = catalog.rename_table("kept.events", "kept.renamed")
        assert client.get_table("kept", "renamed").sd.location == renamed.location() == table.location()
        catalog.drop_table("kept.renamed")
        assert sorted(file.location for file in table.storage.list(table.location())) == files
        view = catalog.create_view("kept.seen", SCHEMA, ViewVersion.of_sql({"spark": "select 1, 'a'"}))
        view.replace(ViewVersion.of_sql({"spark": "select 2, 'b'"}))
        assert catalog.rename_view("kept.seen", "kept.watched").refresh().current_version().version_id == 2
        assert (catalog.list_views("kept"), catalog.list_tables("kept")) == ([("kept", "watched")], [])
        catalog.drop_view("kept.watched")
        catalog.drop_namespace("kept")


@pytest.mark.parametrize("lock", MODES)
def test_a_table_lives_its_life(server: HiveServer, lock: str) -> None:
    properties = {"warehouse": server.warehouse, "iceberg.engine.hive.lock-enabled": lock}
    namespace = f"life_{lock}"
    with load_catalog("server", type="hive", uri=server.uri, **properties) as catalog:
        catalog.create_namespace(namespace, {"comment": "short"})
        table = catalog.create_table((namespace, "events"), SCHEMA)
        table.append(pa.table({"id": [1, 2], "who": ["a", "b"]}, schema=SCHEMA))
        with table.update_schema() as update:
            update.move_first("who")
        with table.update_schema() as update:
            update.delete_column("who")
        assert catalog.metastore.client.get_table(namespace, "events").sd.cols[0].name == "id"  # type: ignore[attr-defined]
        catalog.create_namespace(f"{namespace}_2")
        moved = catalog.rename_table(table.identifier, (f"{namespace}_2", "moved"))
        moved.delete("id = 1")
        assert catalog.load_table(moved.identifier).scan().to_arrow()["id"].to_pylist() == [2]
        catalog.create_or_replace_table(moved.identifier, SCHEMA)
        assert catalog.load_table(moved.identifier).scan().count() == 0
        catalog.purge_table(moved.identifier)
        with pytest.raises(NoSuchTableError):
            catalog.load_table(moved.identifier)
        catalog.drop_namespace(f"{namespace}_2")
