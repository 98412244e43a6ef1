"""Tables on a real HDFS that wants Kerberos and encrypts all: the ways in, tickets that end, and what is said if one
is missing."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from hms_iceberg import load_catalog
from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.catalog import Catalog
from hms_iceberg.errors import ConfigurationError, IcebergError, StorageDeniedError, StorageError
from hms_iceberg.hadoop_tokens import tokens_of_process
from hms_iceberg.table import Table
from tests.support.forwarded_port import ForwardedPort
from tests.support.hdfs_cluster.cluster import HdfsCluster
from tests.support.hive_server.releases import HIVE_4_0
from tests.support.hive_server.secured import SASL, secured_metastore
from tests.support.hive_server.server import HiveServer
from tests.support.kdc import REALM, Kdc
from tests.support.maven import UnavailableError
from tests.support.refusals import refused_in_one_line
from tests.support.store_tables import SCHEMA, ids, rows

USER = "analyst"
PRINCIPAL, KEYTAB, CACHE = "hdfs.kerberos-principal", "hdfs.kerberos-keytab", "hdfs.kerberos_ticket"
TOKENS = "HADOOP_TOKEN_FILE_LOCATION"
LIFETIME = 8  # seconds; a login takes less even if the machine stands still for five


@pytest.fixture(scope="module")
def keytab(realm: Kdc) -> Path:
    """The key of a user without special rights."""
    return realm.keytab(USER)


@pytest.fixture(scope="module")
def ended(realm: Kdc, keytab: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of tickets that are valid no more."""
    cache = tmp_path_factory.mktemp("ended") / "tickets"
    realm.ticket(USER, keytab, cache, "1s")
    time.sleep(2)
    return cache


@pytest.fixture(scope="module")
def token(secured: HdfsCluster, keytab: Path) -> Path:
    """A file with a token for the nameservice."""
    return secured.token(USER, keytab, secured.nameservice)


@dataclass(frozen=True)
class Process:
    """What this process knows of Kerberos: the realm, and nobody's ticket until one is taken.

    Args:
        realm: the server of tickets.
        keytab: of the user.
        cache: where the process looks for tickets.
        patch: takes variables back.
    """

    realm: Kdc
    keytab: Path
    cache: Path
    patch: pytest.MonkeyPatch

    def kinit(self, cache: Path | None = None) -> Path:
        """Has a file of tickets, which is the process's own if none is said, hold a valid one."""
        self.realm.ticket(USER, self.keytab, cache or self.cache)
        return cache or self.cache


@pytest.fixture
def process(realm: Kdc, keytab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Process:
    monkeypatch.setenv("KRB5_CONFIG", str(realm.krb5_conf))
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{tmp_path / 'tickets'}")
    for name in ("KRB5_CLIENT_KTNAME", TOKENS):
        monkeypatch.delenv(name, raising=False)
    return Process(realm, keytab, tmp_path / "tickets", monkeypatch)


def use(storage: ArrowStorage, place: str) -> str:
    """Writes and reads a file; whose it is."""
    location = f"{place}/{uuid.uuid4()}"
    storage.create(location, b"whole")
    assert storage.read(location) == b"whole"
    filesystem, path = storage.filesystem(location)
    return str(filesystem.handler._client().get_file_info(path).owner)


# ------------------------------------------------------------------------------------------- the ways in


def by_cache(process: Process, token: Path) -> dict[str, str]:
    process.kinit()
    return {}


def by_keytab(process: Process, token: Path) -> dict[str, str]:
    return {PRINCIPAL: USER, KEYTAB: str(process.keytab)}


def by_ticket(process: Process, token: Path) -> dict[str, str]:
    return {PRINCIPAL: f"{USER}@{REALM}", CACHE: str(process.kinit(process.cache.with_name("others")))}


def by_token(process: Process, token: Path) -> dict[str, str]:
    process.patch.setenv(TOKENS, str(token))
    return {}


Way = Callable[[Process, Path], dict[str, str]]


@pytest.mark.parametrize("way", [by_cache, by_keytab, by_ticket, by_token])
def test_files_are_written_and_read_as_the_user_that_is_let_in(
    way: Way, secured: HdfsCluster, process: Process, token: Path
) -> None:
    assert use(ArrowStorage({**secured.settings, **way(process, token)}), f"{secured.nameservice}/own") == USER


def first_path(catalog: Catalog, namespace: str, location: str) -> None:
    table = catalog.create_table(f"{namespace}.visits", SCHEMA, location=location)
    table.append(rows(1, 2, 3))
    table.delete("id = 2")
    storage = ArrowStorage(catalog.properties)
    before = {info.location for info in storage.list(table.location())}
    table.maintenance.expire_snapshots().older_than(2**62).retain_last(1).commit()
    assert {info.location for info in storage.list(table.location())} & before < before
    again = catalog.load_table(f"{namespace}.visits")
    assert again.scan().to_arrow().sort_by("id").to_pydict() == rows(1, 3).to_pydict()
    filesystem, path = storage.filesystem(table.location())
    assert filesystem.handler._client().get_file_info(path).owner == USER


@pytest.mark.parametrize("way", [by_keytab, pytest.param(by_ticket, marks=pytest.mark.whole)])
def test_a_table_that_is_a_folder_is_made_changed_and_expired(
    way: Way, secured: HdfsCluster, process: Process, token: Path
) -> None:
    warehouse = f"{secured.nameservice}/{uuid.uuid4()}"
    settings = {**secured.settings, **way(process, token)}
    with load_catalog("folders", type="hadoop", warehouse=warehouse, **settings) as catalog:
        catalog.create_namespace("web")
        first_path(catalog, "web", f"{warehouse}/web/visits")


@pytest.fixture(scope="module")
def metastore(secured: HdfsCluster, realm: Kdc, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HiveServer]:
    """A metastore that wants Kerberos as well, and makes folders on the cluster as whom it serves."""
    for package in ("puresasl", "kerberos"):
        pytest.importorskip(package, reason="needs pip install 'hms_iceberg[kerberos]'")
    try:
        with secured_metastore(HIVE_4_0, tmp_path_factory.mktemp("metastore"), secured, realm) as server:
            yield server
    except UnavailableError as error:
        pytest.skip(str(error))


@pytest.mark.slow
@pytest.mark.parametrize("way", [pytest.param(by_cache, marks=pytest.mark.whole), by_token])
def test_a_table_of_a_metastore_with_kerberos_is_made_changed_and_expired(
    way: Way,
    metastore: HiveServer,
    secured: HdfsCluster,
    process: Process,
    token: Path,
) -> None:
    process.kinit()
    if way is by_token:  # and a token for the metastore
        with load_catalog("tokens", uri=metastore.uri, **SASL) as catalog:
            client = catalog.metastore.client  # type: ignore[attr-defined]
            mine = client.pool.call("get_delegation_token", USER, USER, repeatable=True)
        token = secured.token(USER, process.keytab, secured.nameservice, 86_400, 604_800, mine)
        process.cache.unlink()
    settings = {**secured.settings, **SASL, **way(process, token)}
    namespace = f"n{uuid.uuid4().hex}"
    place = f"{secured.nameservice}/{namespace}"
    with load_catalog("secured", uri=metastore.uri, **settings) as catalog:
        catalog.create_namespace(namespace, {"location": place})
        first_path(catalog, namespace, f"{place}/visits")


@pytest.mark.parametrize("named", ["nameservice", "address"])
@pytest.mark.parametrize("place", ["hdfs://ns1", "hdfs://127.0.0.1:{}", "hdfs://localhost:{}", "viewfs://all"])
def test_a_token_counts_by_whichever_name_the_location_has(
    secured: HdfsCluster, process: Process, token: Path, named: str, place: str
) -> None:
    file = token if named == "nameservice" else secured.token(USER, process.keytab, secured.address)
    process.patch.setenv(TOKENS, str(file))
    mounts = {"fs.viewfs.mounttable.all.link./own": f"{secured.nameservice}/"}
    storage = ArrowStorage({**secured.settings, **mounts})
    assert use(storage, f"{place.format(secured.ports[0])}/own") == USER


def test_a_token_comes_before_the_ticket_of_the_cache_and_a_principal_before_both(
    secured: HdfsCluster, process: Process, token: Path
) -> None:
    keytab = process.realm.keytab("loader")
    process.realm.ticket("loader", keytab, process.cache)
    assert use(ArrowStorage(secured.settings), "hdfs://ns1/loader") == "loader"
    process.patch.setenv(TOKENS, str(token))
    assert use(ArrowStorage(secured.settings), "hdfs://ns1/own") == USER
    assert use(ArrowStorage({**secured.settings, PRINCIPAL: "loader"}), "hdfs://ns1/loader") == "loader"
    process.cache.unlink()
    own = {**secured.settings, PRINCIPAL: "loader", KEYTAB: str(keytab)}
    assert use(ArrowStorage(own), "hdfs://ns1/loader") == "loader"


# ---------------------------------------------------------------------------------------- what is missing


def refused(settings: dict[str, str], kind: type[IcebergError], *words: str) -> None:
    for call in (ArrowStorage(settings).read, lambda place: ArrowStorage(settings).create(place, b"x")):
        with refused_in_one_line(kind, *words):
            call("hdfs://ns1/a")


def test_without_a_valid_ticket_the_error_says_which_kinit(secured: HdfsCluster, process: Process, ended: Path) -> None:
    refused(secured.settings, StorageDeniedError, "hdfs://ns1/a", "no valid Kerberos ticket", "run kinit", KEYTAB)
    process.patch.setenv("KRB5CCNAME", f"FILE:{ended}")
    refused(secured.settings, StorageDeniedError, "Ticket expired", "run kinit")
    own = {**secured.settings, PRINCIPAL: USER, CACHE: str(ended)}
    refused(own, StorageDeniedError, "Ticket expired", f"run kinit -c {ended} {USER}")


def test_a_principal_that_has_no_ticket_is_named(secured: HdfsCluster, process: Process) -> None:
    other = {**secured.settings, PRINCIPAL: "other"}
    process.kinit()
    refused(other, StorageDeniedError, f"other@{REALM}", "run kinit other")
    refused({**other, CACHE: str(process.cache)}, StorageDeniedError, f"run kinit -c {process.cache} other")
    refused({**other, KEYTAB: str(process.keytab)}, StorageDeniedError, f"klist -kt {process.keytab}", "to other")


def test_a_keytab_that_is_not_there_is_named(secured: HdfsCluster, process: Process) -> None:
    refused({**secured.settings, PRINCIPAL: USER, KEYTAB: "/absent"}, ConfigurationError, "/absent", KEYTAB)
    refused({**secured.settings, KEYTAB: str(process.keytab)}, ConfigurationError, PRINCIPAL)


def test_settings_without_kerberos_are_told_from_a_cluster_that_is_not_there(
    secured: HdfsCluster, process: Process
) -> None:
    process.kinit()
    name = "hadoop.security.authentication"
    plain = {key: value for key, value in secured.settings.items() if key != name}
    refused(plain, ConfigurationError, "hdfs://ns1", f"{name}=kerberos", "HADOOP_CONF_DIR")


def test_a_token_that_is_for_others_or_spoilt_is_said_in_a_line(
    secured: HdfsCluster, process: Process, token: Path, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(token.read_bytes().replace(b"ha-hdfs:ns1", b"ha-hdfs:ns9"))
    process.patch.setenv(TOKENS, str(elsewhere))
    refused(secured.settings, StorageDeniedError, "run kinit", TOKENS, "ha-hdfs:ns9")
    process.patch.setenv(TOKENS, "/absent")
    refused(secured.settings, StorageDeniedError, "run kinit", TOKENS)
    spoilt = tmp_path / "spoilt"
    data = token.read_bytes()
    at = data.index(b"\x15HDFS_DELEGATION_TOKEN") - 1  # the end of its password
    spoilt.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
    process.patch.setenv(TOKENS, str(spoilt))
    refused(secured.settings, StorageDeniedError, "does not accept", "new token", TOKENS)


def test_tokens_are_read_in_both_forms_of_hadoop(process: Process, token: Path) -> None:
    found = []
    for file in (token, token.with_name(f"{token.name}.protobuf")):
        process.patch.setenv(TOKENS, str(file))
        found.append(tokens_of_process("HDFS_DELEGATION_TOKEN"))
    assert found[0] == found[1] and [each.service for each in found[0]] == ["ha-hdfs:ns1"]


def test_a_token_that_has_ended_is_told_from_one_that_nobody_renewed(secured: HdfsCluster, process: Process) -> None:
    cases = {(86_400, 30): "ended at 20", (1, 604_800): "get a new token"}
    files = {case: secured.token(USER, process.keytab, secured.nameservice, *case) for case in cases}
    time.sleep(2)
    for case, words in cases.items():
        process.patch.setenv(TOKENS, str(files[case]))
        refused(secured.settings, StorageDeniedError, words, "run kinit", TOKENS)


def test_a_token_for_one_namenode_does_not_fail_over_and_says_so(secured: HdfsCluster, process: Process) -> None:
    process.patch.setenv(TOKENS, str(secured.token(USER, process.keytab, secured.address)))
    secured.activate(1)
    try:
        with refused_in_one_line(StorageError, "use the nameservice, in locations and for tokens"):
            ArrowStorage(secured.settings).read("hdfs://ns1/a")
    finally:
        secured.activate(0)


def test_settings_that_do_not_say_how_data_is_protected_are_told(secured: HdfsCluster, process: Process) -> None:
    process.kinit()
    ArrowStorage(secured.settings).create("hdfs://ns1/own/protected", b"x")
    name = "dfs.data.transfer.protection"
    storage = ArrowStorage({key: value for key, value in secured.settings.items() if key != name})
    for call in (lambda: storage.read("hdfs://ns1/own/protected"), lambda: storage.create("hdfs://ns1/own/new", b"x")):
        with refused_in_one_line(StorageError, "hdfs://ns1/own/", name, "HADOOP_CONF_DIR"):
            call()
    assert not ArrowStorage(secured.settings).exists("hdfs://ns1/own/new")


def test_a_user_of_the_property_is_one_of_the_tickets_or_is_asked_for(secured: HdfsCluster, process: Process) -> None:
    process.kinit()
    assert use(ArrowStorage({**secured.settings, "hdfs.user": USER}), "hdfs://ns1/own") == USER
    refused({**secured.settings, "hdfs.user": "bob"}, StorageDeniedError, f"bob@{REALM}", "run kinit bob")


def test_a_missing_library_of_kerberos_is_named(secured: HdfsCluster, process: Process, tmp_path: Path) -> None:
    (tmp_path / "libgssapi_krb5.so.2").write_bytes(b"")
    code = (
        "from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage\n"
        f"ArrowStorage({secured.settings!r}).read('hdfs://ns1/a')"
    )
    own = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path)}
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=own, check=False)
    assert ran.stderr.splitlines()[-1].endswith("apt install libgssapi-krb5-2, or yum install krb5-libs.")


# ------------------------------------------------------------------------------------------ tickets that end


@pytest.fixture
def way(secured: HdfsCluster) -> Iterator[ForwardedPort]:
    """A way to the cluster whose connections can be cut: a new one wants a ticket, an old one does not."""
    with ForwardedPort(secured.ports[0]) as forwarded:
        yield forwarded


def by(way: ForwardedPort, secured: HdfsCluster, **own: str) -> ArrowStorage:
    long = {"dfs.ha.namenodes.long": "a", "dfs.namenode.rpc-address.long.a": f"127.0.0.1:{way.port}"}
    return ArrowStorage({**secured.settings, **long, **own})


@pytest.mark.parametrize("own", [False, True], ids=["of-process", "of-property"])
def test_a_job_goes_on_when_its_user_has_renewed_the_ticket_that_ended(
    secured: HdfsCluster, process: Process, way: ForwardedPort, ended: Path, own: bool
) -> None:
    process.kinit()
    storage = by(way, secured, **({PRINCIPAL: USER, CACHE: str(process.cache)} if own else {}))
    assert use(storage, "hdfs://long/own") == USER
    process.cache.write_bytes(ended.read_bytes())
    assert use(storage, "hdfs://long/own") == USER
    way.cut()
    with refused_in_one_line(StorageDeniedError, "hdfs://long/own", "Ticket expired", "run kinit"):
        use(storage, "hdfs://long/own")
    process.kinit()
    assert use(storage, "hdfs://long/own") == USER


def test_a_job_with_a_keytab_takes_a_new_ticket_when_one_has_ended(
    secured: HdfsCluster, process: Process, way: ForwardedPort
) -> None:
    keytab = process.realm.keytab("brief", f"{LIFETIME}seconds")
    storage = by(way, secured, **{PRINCIPAL: "brief", KEYTAB: str(keytab)})
    assert use(storage, "hdfs://long/brief") == "brief"
    time.sleep(LIFETIME)
    assert use(storage, "hdfs://long/brief") == "brief"
    way.cut()
    assert use(storage, "hdfs://long/brief") == "brief"


@dataclass(frozen=True)
class Service:
    """`hms-iceberg maintain --every 1s`, whose ways to metastore and HDFS can be cut, for a table of two small files.

    Args:
        running: the process.
        ways: what it connects by.
        table: as another process of the same user sees it.
        said: what the service said.
    """

    running: subprocess.Popen[bytes]
    ways: tuple[ForwardedPort, ...]
    table: Table
    said: Path

    def compacts(self) -> None:
        """Waits until the service has made one file of several, and is at its end with that, so that it has no lock."""
        told = "looked at"
        self.waits_for(lambda: told in self.said.read_text().rpartition("rewrite_data_files")[2])
        self.waits_for(lambda: len(list(self.table.refresh().scan().plan_files())) == 1)

    def is_busy(self) -> None:
        """Gives it work, over new connections."""
        for way in self.ways:
            way.cut()
        for number in (3, 4):
            self.table.refresh().append(rows(number))

    def waits_for(self, condition: Callable[[], bool]) -> None:
        end = time.monotonic() + 120
        while not condition():
            assert time.monotonic() < end and self.running.poll() is None, self.said.read_text()
            time.sleep(0.2)


@pytest.fixture
def service(
    metastore: HiveServer, secured: HdfsCluster, process: Process, tmp_path: Path, own_tickets: dict[str, str]
) -> Iterator[Service]:
    properties = {**secured.settings, **SASL, "maintenance.remove-orphans": "false"}
    process.kinit()
    namespace = f"n{uuid.uuid4().hex}"
    place = f"{secured.nameservice}/{namespace}"
    port = int(metastore.uri.rpartition(":")[2])
    with (
        load_catalog("secured", uri=metastore.uri, **properties) as catalog,
        ForwardedPort(port) as to_metastore,
        ForwardedPort(secured.ports[0]) as to_namenode,
        open(tmp_path / "said", "wb") as said,
    ):
        catalog.create_namespace(namespace, {"location": place})
        table = catalog.create_table(f"{namespace}.visits", SCHEMA, properties={"maintenance.compact-min-files": "2"})
        for number in (1, 2):
            table.append(rows(number))
        for folder in ("", "/data", "/metadata"):
            secured.command("setpermission", f"/{namespace}/visits{folder}", "777")
        own = {**properties, "dfs.namenode.rpc-address.ns1.nn0": f"127.0.0.1:{to_namenode.port}"}
        command = [
            *(sys.executable, "-m", "hms_iceberg", "maintain", "--every", "1s", "--table", f"{namespace}.*"),
            *("--uri", f"thrift://localhost:{to_metastore.port}"),
            *(word for item in own.items() for word in ("-p", "=".join(item))),
        ]
        with subprocess.Popen(command, env=os.environ | own_tickets, stdout=said, stderr=said) as running:
            yield Service(running, (to_metastore, to_namenode), table, tmp_path / "said")
            running.terminate()
            assert running.wait(60) == 0


@pytest.fixture
def own_tickets(process: Process, tmp_path: Path, request: pytest.FixtureRequest) -> dict[str, str]:
    """The service's own variables: a cache, filled once, or a keytab."""
    cache = tmp_path / "of-service"
    if request.param == "cache":
        process.kinit(cache)
        return {"KRB5CCNAME": f"FILE:{cache}"}
    keytab = process.realm.keytab(f"service{uuid.uuid4().hex}", f"{LIFETIME}seconds")
    return {"KRB5CCNAME": f"FILE:{cache}", "KRB5_CLIENT_KTNAME": str(keytab)}


@pytest.mark.whole
@pytest.mark.parametrize("own_tickets", ["keytab"], indirect=True)
def test_a_service_with_a_keytab_takes_tickets_anew_for_metastore_and_hdfs(service: Service) -> None:
    service.compacts()
    time.sleep(LIFETIME)
    service.is_busy()
    service.compacts()
    assert ids(service.table) == [1, 2, 3, 4]
    assert "kinit" not in service.said.read_text()


@pytest.mark.whole
@pytest.mark.parametrize("own_tickets", ["cache"], indirect=True)
def test_a_service_whose_ticket_ended_says_which_kinit_is_missing_and_goes_on_after_it(
    service: Service, process: Process, ended: Path, tmp_path: Path
) -> None:
    service.compacts()
    (tmp_path / "of-service").write_bytes(ended.read_bytes())
    service.is_busy()
    service.waits_for(lambda: "kinit" in service.said.read_text())
    assert "Traceback" not in service.said.read_text()
    process.kinit(tmp_path / "of-service")
    service.compacts()
    assert ids(service.table) == [1, 2, 3, 4]
