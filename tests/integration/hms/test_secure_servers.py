"""Real metastores behind TLS and behind logins: Kerberos, a delegation token, name and password."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from hms_iceberg.catalog import load_catalog
from hms_iceberg.errors import MetastoreAuthenticationError, MetastoreUnavailableError
from hms_iceberg.hms.embedded import EmbeddedMetastore
from hms_iceberg.hms.embedded.jars import find_java
from tests.support.guides import lines_of
from tests.support.hive_server.releases import HIVE_3_1, HIVE_4_0, Release
from tests.support.hive_server.server import HiveServer
from tests.support.kdc import REALM, Kdc
from tests.support.ldap import Directory
from tests.support.maven import UnavailableError
from tests.support.tls_front import Certificates, TlsFront

pytestmark = pytest.mark.slow  # a server is started for each way

SCHEMA = pa.schema([pa.field("id", pa.int64())])
STORE_PASSWORD = "of-this-test"
NAME_AND_PASSWORD = {
    "hive.metastore.client.auth.mode": "PLAIN",
    "hive.metastore.client.plain.username": "etl",
    "hive.metastore.client.plain.password": "let me in",
}


def commit_and_read(uri: str, namespace: str, properties: dict[str, str]) -> None:
    with load_catalog("secure", type="hive", uri=uri, **properties) as catalog:
        catalog.create_namespace(namespace)
        table = catalog.create_table((namespace, "events"), SCHEMA)
        table.append(pa.table({"id": range(5)}, schema=SCHEMA))
        # More than fits into one packet, or one frame of SASL's.
        with table.transaction() as transaction:
            transaction.set_properties({f"key-{number}": "x" * 3000 for number in range(60)})
        assert catalog.load_table((namespace, "events")).scan().count() == 5
        assert len(catalog.metastore.load((namespace, "events")).properties["key-59"]) == 3000


def refusal(uri: str, properties: dict[str, str], error: type[Exception], match: str) -> None:
    quick = {"hive.metastore.client.connection.timeout": "2s", "hive.metastore.client.socket.timeout": "5s"}
    with (
        load_catalog("refused", type="hive", uri=uri, **{**quick, **properties}) as catalog,
        pytest.raises(error, match=match) as caught,
    ):
        catalog.list_namespaces()
    assert "let me in" not in str(caught.value)


def skip_without_jars(release: Release) -> None:
    try:
        release.jars()
    except UnavailableError as error:
        pytest.skip(str(error))  # the server's jars are in no cache and Maven cannot fetch them here


# ----------------------------------------------------------------------------------- TLS, name and password


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a key store for `localhost`, and its certificate as PEM."""
    folder = tmp_path_factory.mktemp("certificates")
    keytool = str(find_java().with_name("keytool"))
    store = ["-keystore", str(folder / "store.jks"), "-storepass", STORE_PASSWORD, "-alias", "server"]
    made = ["-genkeypair", "-keyalg", "RSA", "-dname", "CN=localhost", "-ext", "san=dns:localhost", "-storetype", "JKS"]
    subprocess.run([keytool, *made, *store, "-keypass", STORE_PASSWORD], check=True, capture_output=True, timeout=60)
    shown = subprocess.run([keytool, "-exportcert", "-rfc", *store], check=True, capture_output=True, timeout=60)
    (folder / "ca.pem").write_bytes(shown.stdout)
    return folder


def encryption(certificates: Path) -> dict[str, str]:
    """What a server is told of its certificate."""
    return {
        "metastore.use.SSL": "true",
        "metastore.keystore.path": str(certificates / "store.jks"),
        "metastore.keystore.password": STORE_PASSWORD,
        "metastore.keystore.type": "JKS",
        "metastore.execute.setugi": "false",
    }


@pytest.fixture(scope="module")
def encrypted(certificates: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HiveServer]:
    """Hive 4, which asks for name and password over TLS."""
    skip_without_jars(HIVE_4_0)
    pytest.importorskip("puresasl", reason="needs pip install 'hms_iceberg[kerberos]'")
    properties = {
        **encryption(certificates),
        "metastore.authentication": "CONFIG",
        "metastore.authentication.config.username": "etl",
        "metastore.authentication.config.password": "let me in",
    }
    with HiveServer(HIVE_4_0, tmp_path_factory.mktemp("encrypted"), properties) as server:
        yield server


def test_tls_and_a_password_let_a_client_in(encrypted: HiveServer, certificates: Path) -> None:
    tls = {"hive.metastore.use.SSL": "true", "ssl.cabundle": str(certificates / "ca.pem")}
    commit_and_read(encrypted.uri, "encrypted", {**tls, **NAME_AND_PASSWORD})

    wrong = {**NAME_AND_PASSWORD, "hive.metastore.client.plain.password": "guessed"}
    refusal(encrypted.uri, {**tls, **wrong}, MetastoreAuthenticationError, "Check name and password")
    unknown = {"hive.metastore.use.SSL": "true", **NAME_AND_PASSWORD}
    refusal(encrypted.uri, unknown, MetastoreAuthenticationError, "ssl.cabundle")
    elsewhere = encrypted.uri.replace("localhost", "127.0.0.1")
    refusal(elsewhere, {**tls, **NAME_AND_PASSWORD}, MetastoreAuthenticationError, "ssl.check-hostname")
    refusal(encrypted.uri, {}, MetastoreUnavailableError, "perhaps it wants TLS")
    with load_catalog(
        "by_address", uri=elsewhere, **{**tls, **NAME_AND_PASSWORD, "ssl.check-hostname": "false"}
    ) as any_host:
        assert ("encrypted",) in any_host.list_namespaces()


def test_a_server_that_wants_a_certificate_of_the_client_gets_it(
    metastore: EmbeddedMetastore, namespace: str, tmp_path: Path
) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl, which makes the certificates")
    certificates = Certificates(tmp_path)
    certificate, key = certificates.of("analyst")
    tls = {"hive.metastore.use.SSL": "true", "ssl.cabundle": str(certificates.ca), "warehouse": metastore.warehouse}
    mine = {"ssl.client.cert": str(certificate), "ssl.client.key": str(key)}
    with TlsFront(metastore.port, certificates.of("localhost"), certificates.ca) as front:
        commit_and_read(front.uri, f"{namespace}_tls", {**tls, **mine})
        refusal(front.uri, tls, MetastoreUnavailableError, r"ssl\.client\.cert")
        (tmp_path / "others").mkdir()
        certificate, key = Certificates(tmp_path / "others").of("analyst")
        others = {"ssl.client.cert": str(certificate), "ssl.client.key": str(key)}
        refusal(front.uri, {**tls, **others}, MetastoreUnavailableError, r"ssl\.client\.cert")


def test_a_password_of_a_directory_lets_a_client_in(certificates: Path, tmp_path: Path) -> None:
    skip_without_jars(HIVE_4_0)
    pytest.importorskip("puresasl", reason="needs pip install 'hms_iceberg[kerberos]'")
    if Directory.program() is None:  # a real directory, or nothing is shown
        pytest.skip("needs a directory server (apt install slapd)")
    for folder in ("directory", "server"):
        (tmp_path / folder).mkdir()
    with Directory(tmp_path / "directory", {"etl": "let me in", "eve": "other"}) as directory:
        properties = {
            **encryption(certificates),
            "metastore.authentication": "LDAP",
            "metastore.authentication.ldap.url": directory.url,
            "metastore.authentication.ldap.userDNPattern": directory.pattern,
            "metastore.authentication.ldap.userFilter": "etl",
        }
        tls = {"hive.metastore.use.SSL": "true", "ssl.cabundle": str(certificates / "ca.pem")}
        with HiveServer(HIVE_4_0, tmp_path / "server", properties) as server:
            commit_and_read(server.uri, "directory", {**tls, **NAME_AND_PASSWORD})
            name, password = "hive.metastore.client.plain.username", "hive.metastore.client.plain.password"
            for wrong in ({password: "guessed"}, {name: "nobody"}, {name: "eve", password: "other"}):
                others = {**tls, **NAME_AND_PASSWORD, **wrong}
                refusal(server.uri, others, MetastoreAuthenticationError, "Check name and password")


# ------------------------------------------------------------------------------ Kerberos, delegation tokens


@pytest.fixture(scope="module")
def kdc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kdc]:
    """A realm with the client `analyst`, whose key this process takes its tickets with."""
    pytest.importorskip("puresasl", reason="needs pip install 'hms_iceberg[kerberos]'")
    pytest.importorskip("kerberos", reason="needs pip install 'hms_iceberg[kerberos]'")
    if Kdc.missing_program() is not None:  # a real server of tickets, or nothing is shown
        pytest.skip(f"needs a Kerberos server: {Kdc.missing_program()} is not installed (apt install krb5-kdc)")
    folder = tmp_path_factory.mktemp("kdc")
    with Kdc(folder) as kdc, pytest.MonkeyPatch.context() as patch:
        kdc.password("alice", "of-alice")
        patch.setenv("KRB5_CONFIG", str(kdc.krb5_conf))
        patch.setenv("KRB5CCNAME", f"FILE:{folder / 'tickets'}")
        patch.setenv("KRB5_CLIENT_KTNAME", str(kdc.keytab("analyst")))
        yield kdc


@pytest.fixture(
    scope="module",
    params=[(HIVE_3_1, "authentication"), (HIVE_3_1, "privacy"), (HIVE_4_0, "authentication")],
    ids=["3.1", "3.1-encrypted", "4.0"],
)
def kerberized(
    request: pytest.FixtureRequest, kdc: Kdc, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[HiveServer]:
    """A server that only knows who its realm knows; with `privacy`, every frame is encrypted."""
    release, protection = request.param
    skip_without_jars(release)
    principal = "metastore/localhost" if protection == "authentication" else "private/localhost"
    properties = {
        "metastore.sasl.enabled": "true",
        "metastore.kerberos.keytab.file": str(kdc.keytab(principal)),
        "metastore.kerberos.principal": f"{principal}@{REALM}",
        "hadoop.security.authentication": "kerberos",
        "hadoop.rpc.protection": protection,
    }
    opened = "--add-exports=java.security.jgss/sun.security.krb5=ALL-UNNAMED"
    options = (f"-Djava.security.krb5.conf={kdc.krb5_conf}", opened)
    with HiveServer(release, tmp_path_factory.mktemp("kerberized"), properties, options) as server:
        yield server


def test_kerberos_and_a_token_let_a_client_in(
    kerberized: HiveServer, kdc: Kdc, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = "metastore" if "authentication" in kerberized.settings["hadoop.rpc.protection"] else "private"
    kerberos = {"hive.kerberos-authentication": "true", "hive.kerberos-service-name": service}
    commit_and_read(kerberized.uri, "kerberized", kerberos)
    hive_names = {
        "hive.metastore.sasl.enabled": "true",
        "hive.metastore.kerberos.principal": f"{service}/_HOST@{REALM}",
    }
    with load_catalog("kerberized", uri=kerberized.uri, **hive_names) as catalog:
        assert catalog.load_table("kerberized.events").scan().count() == 5
        client = catalog.metastore.client  # type: ignore[attr-defined]
        token = client.pool.call("get_delegation_token", "analyst", "analyst", repeatable=True)

    absent = {**kerberos, "hive.kerberos-service-name": "absent"}
    refusal(kerberized.uri, absent, MetastoreAuthenticationError, "taken for absent@localhost")
    monkeypatch.setenv("KRB5CCNAME", "FILE:/absent")
    monkeypatch.setenv("KRB5_CLIENT_KTNAME", "FILE:/absent")
    refusal(kerberized.uri, kerberos, MetastoreAuthenticationError, "kinit")
    if service == "metastore":
        commit_and_read(kerberized.uri, "by_token", {"hive.metastore.delegation-token": token})


def test_the_cookbook_s_lines_log_in_and_list(kerberized: HiveServer, kdc: Kdc, tmp_path: Path) -> None:
    service = "metastore" if "authentication" in kerberized.settings["hadoop.rpc.protection"] else "private"
    login, listing = lines_of("docs/COOKBOOK.md", "Connect with Kerberos")
    here = {"EXAMPLE.COM": REALM, "hive/_HOST": f"{service}/_HOST", "thrift://metastore:9083": kerberized.uri}
    environment = {**os.environ, **kdc.environment, "KRB5CCNAME": f"FILE:{tmp_path / 'tickets'}"}
    environment.pop("KRB5_CLIENT_KTNAME")

    assert (login[0], listing[0]) == ("kinit", "hms-iceberg")
    for command, text in ((["kinit"], "of-alice\n"), ([sys.executable, "-m", "hms_iceberg"], "")):
        words = (login if text else listing)[1:]
        for word, mine in here.items():
            words = [each.replace(word, mine) for each in words]
        ran = subprocess.run([*command, *words], env=environment, input=text, capture_output=True, text=True)
        assert ran.returncode == 0, ran.stderr

    assert "default" in ran.stdout
