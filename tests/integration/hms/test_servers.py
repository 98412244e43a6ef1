"""Hive Metastores of other releases than the embedded one keep the same promises: 3.1 without compare-and-swap, 4."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace

import pyarrow as pa
import pytest

from hms_iceberg.catalog import load_catalog
from hms_iceberg.errors import ConfigurationError, MetastoreError, NoSuchTableError, UnsupportedError
from hms_iceberg.hms.commit.capability import Capability, compares_by_release
from hms_iceberg.hms.commit.several_tables import unfinished_transactions
from hms_iceberg.hms.connection.thrift_types import ttypes
from hms_iceberg.hms.embedded import EmbeddedMetastore
from hms_iceberg.hms.hive_metastore import HiveMetastore
from hms_iceberg.hms.rows import unchanged_rows
from hms_iceberg.hms.rows.unchanged_rows import TRUST_NOTIFICATIONS
from hms_iceberg.metastore import MetadataVersion
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
from tests.integration.hms.test_several_tables import check_every_kill
from tests.support import several_tables
from tests.support.commit_operations import QUICK
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
from tests.support.metastore_contract import swap
from tests.support.tables import metadata

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
        locks = {"iceberg.engine.hive.lock-enabled": request.param}
        if request.param == "true" and server.release is HIVE_3_1:  # the one whose changes are numbered
            locks[TRUST_NOTIFICATIONS] = "true"
        store = HiveMetastore({"uri": server.uri, **locks})
        yield store
        store.close()


def test_what_a_server_tells_of_itself_is_what_trying_finds(server: HiveServer) -> None:
    store = HiveMetastore({"uri": server.uri})
    compares = server.release is not HIVE_3_1
    assert compares_by_release(store.client) is compares
    assert Capability(store.client)._probe() is compares
    assert store.client.list_tables("default") == [], "the scratch view is gone"
    store.close()
    if server.release is HIVE_3_1:
        refusing = HiveMetastore({"uri": server.uri, "iceberg.engine.hive.lock-enabled": "false"})
        with pytest.raises(UnsupportedError, match="HIVE-26882"), refusing.lease(("default", "any"), {}) as lease:
            lease.acquire()


@pytest.mark.parametrize("locks", MODES)
def test_a_transaction_on_several_tables_is_seen_whole_whenever_its_owner_is_killed(
    server: HiveServer, locks: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unfinished_transactions, "_OWNER_TIMEOUT_SECONDS", 0.1)
    properties = {"uri": server.uri, "warehouse": server.warehouse, "iceberg.engine.hive.lock-enabled": locks}
    with load_catalog("bank", type="hive", **properties) as bank:
        bank.create_namespace(f"bank_{locks}")
        names = [f"bank_{locks}.{each}" for each in ("a", "b")]
        for name in names:
            bank.create_table(name, several_tables.SCHEMA, properties=QUICK).append(several_tables.rows((1, 100)))
        check_every_kill(bank, names)


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


# ------------------------------------------------------------------------------------------- numbers of changes

TABLE = ("numbered", "t")
numbers_changes = pytest.mark.parametrize("server", [HIVE_3_1], ids=["hive-3.1.3"], indirect=True)


class CountingStore(HiveMetastore):
    """Trusts notifications, and counts the rows that it reads."""

    def __init__(self, uri: str) -> None:
        super().__init__({"uri": uri, TRUST_NOTIFICATIONS: "true"})
        self.reads = 0
        get_table = self.client.get_table

        def counting(database: str, name: str) -> ttypes.Table:
            self.reads += 1
            return get_table(database, name)

        self.client.get_table = counting  # type: ignore[method-assign]

    def seen(self, identifier: tuple[str, str] = TABLE) -> tuple[int, int]:
        """The number of the version that it loads, and how many rows it read for that."""
        before = self.reads
        location = self.load(identifier).metadata_location
        return int(location.rpartition("/")[2].split(".")[0]), self.reads - before


@pytest.fixture
def other(server: HiveServer) -> Iterator[HiveMetastore]:
    """Somebody else, with a table at its first version."""
    with closing(HiveMetastore({"uri": server.uri})) as other:
        other.create_namespace(TABLE[0], {})
        commit(other, 0)
        yield other
        for name in other.list_rows(TABLE[0]):
            other.drop_table((TABLE[0], name))
        other.drop_namespace(TABLE[0])


@pytest.fixture
def store(server: HiveServer, other: HiveMetastore) -> Iterator[CountingStore]:
    with closing(CountingStore(server.uri)) as store:
        yield store


def commit(metastore: HiveMetastore, number: int, identifier: tuple[str, str] = TABLE, base: int | None = None) -> None:
    location = metastore.namespace_properties(identifier[0])["location"]
    content = replace(metadata(), location=f"{location}/t")
    before = None if base is None else MetadataVersion(f"{location}/{base}.json", content)
    swap(metastore, identifier, before, MetadataVersion(f"{location}/{number}.json", content))


@numbers_changes
def test_a_row_is_read_again_after_every_change_and_only_then(store: CountingStore, other: HiveMetastore) -> None:
    assert [store.seen(), store.seen()] == [(0, 1), (0, 0)]
    commit(other, 1, base=0)
    assert [store.seen(), store.seen()] == [(1, 1), (1, 0)]

    row = other.client.get_table(*TABLE)
    row.parameters["comment"] = "by hand"
    other.client.alter_table(*TABLE, row)
    assert store.load(TABLE).properties["comment"] == "by hand"

    commit(other, 7, (TABLE[0], "u"))
    other.drop_table(TABLE)
    with pytest.raises(NoSuchTableError):
        store.load(TABLE)
    other.rename_table((TABLE[0], "u"), TABLE)
    assert store.seen() == (7, 1)
    with pytest.raises(NoSuchTableError):
        store.load((TABLE[0], "u"))

    other.drop_table(TABLE)
    commit(other, 3)
    assert [store.seen(), store.seen()] == [(3, 1), (3, 0)]
    commit(store, 4, base=3)
    assert store.seen()[0] == 4


@numbers_changes
def test_a_change_while_a_row_is_read_is_seen_by_the_next_load(store: CountingStore, other: HiveMetastore) -> None:
    get_table = store.client.get_table

    def then_changed(database: str, name: str) -> ttypes.Table:
        row = get_table(database, name)
        store.client.get_table = get_table  # type: ignore[method-assign]
        commit(other, 1, base=0)
        return row

    store.client.get_table = then_changed  # type: ignore[method-assign]
    assert [store.seen()[0], store.seen()[0]] == [0, 1]


@numbers_changes
def test_no_load_is_older_than_what_was_committed_before_it_began(store: CountingStore, other: HiveMetastore) -> None:
    committed, ends = 0, threading.Event()
    loads: list[tuple[int, int]] = []

    def load() -> None:
        while not ends.is_set():
            at_least = committed
            loads.append((at_least, store.seen()[0]))

    with ThreadPoolExecutor(3) as pool:
        readers = [pool.submit(load) for _ in range(3)]
        for number in range(1, 31):
            commit(other, number, base=number - 1)
            committed = number
        ends.set()
        for reader in readers:
            reader.result()
    assert [load for load in loads if load[1] < load[0]] == []
    assert len({seen for _, seen in loads}) > 5, "loads and commits were under way at once"


@numbers_changes
def test_a_metastore_that_does_not_number_its_changes_is_refused(
    metastore: EmbeddedMetastore, store: CountingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(CountingStore(metastore.uri)) as hive_2, pytest.raises(ConfigurationError, match=r"Hive 2 .* Hive 3"):
        hive_2.load(TABLE)
    for setting, value, said in (
        ("hive.metastore.transactional.event.listeners", "", "is ''. Set .*DbNotificationListener on every server"),
        ("hive.metastore.rawstore.impl", "org.apache.hadoop.hive.metastore.cache.CachedStore", "Hive's ObjectStore"),
    ):
        with monkeypatch.context() as patch:
            tell(patch, store, setting, value)
            with pytest.raises(ConfigurationError, match=f"{TRUST_NOTIFICATIONS}.*{said}"):
                store.load(TABLE)

    def denied() -> int:
        raise MetastoreError("Internal error")

    monkeypatch.setattr(store.client, "last_change", denied)
    with pytest.raises(ConfigurationError, match="proxy user"):
        store.load(TABLE)


@numbers_changes
def test_a_server_that_numbers_its_changes_no_more_is_asked_for_every_row(
    store: CountingStore, other: HiveMetastore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(unchanged_rows, "_CHECKED_SECONDS", -1.0)
    assert [store.seen(), store.seen()] == [(0, 1), (0, 0)]
    with monkeypatch.context() as patch, caplog.at_level(logging.WARNING):
        tell(patch, store, "hive.metastore.transactional.event.listeners", "")
        assert [store.seen(), store.seen()] == [(0, 1)] * 2
    assert len(caplog.records) == 1 and "Every row is read" in caplog.text
    commit(other, 1, base=0)
    assert [store.seen(), store.seen()] == [(1, 1), (1, 0)]


def tell(patch: pytest.MonkeyPatch, store: HiveMetastore, setting: str, value: str) -> None:
    """Has the server tell of one setting as if it were another."""
    told = store.client.config_value
    patch.setattr(store.client, "config_value", lambda name, default: value if name == setting else told(name, default))
