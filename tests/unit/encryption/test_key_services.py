"""Services of keys: a file, AWS and Vault (on stand-ins, Vault itself too if it is there), how catalogs name them."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from hms_iceberg.catalog import load_catalog
from hms_iceberg.encryption.key_services import KeptKeys, KeyService, key_service
from hms_iceberg.errors import ConfigurationError, KeyUnavailableError, TamperedFileError
from tests.support.vault_server import BINARY, vault_server

KEY = bytes(range(32))


class Counting:
    """A service of somebody else's, which counts how often it is asked."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        self.asked = 0
        self.fails = properties.get("fails") == "true"

    def wrap_key(self, key: bytes, table_key_id: str) -> bytes:
        self.asked += 1
        if self.fails:
            raise OSError("no route")
        return key[::-1]

    def unwrap_key(self, wrapped: bytes, table_key_id: str) -> bytes:
        self.asked += 1
        if self.fails:
            raise OSError("no route")
        return wrapped[::-1]


def kept(properties: Mapping[str, str]) -> KeyService:
    found = key_service(properties)
    assert found is not None
    return found


def test_catalogs_name_services_by_type_or_class(keystore: str) -> None:
    assert key_service({}) is None
    by_type = kept({"encryption.kms-type": "Keystore", "kms.keystore.path": keystore})
    name = "hms_iceberg.encryption.services.keystore"
    for spelled in (f"{name}:KeystoreFile", f"{name}.KeystoreFile"):
        by_class = kept({"encryption.kms-impl": spelled, "kms.keystore.path": keystore})
        assert by_class.unwrap_key(by_type.wrap_key(KEY, "one"), "one") == KEY


@pytest.mark.parametrize(
    ("properties", "told"),
    [
        ({"encryption.kms-type": "aws", "encryption.kms-impl": "x:Y"}, "cannot both be set"),
        ({"encryption.kms-type": "azure"}, "expected one of aws, keystore, vault"),
        ({"encryption.kms-impl": "nowhere:Nothing"}, "cannot import"),
        ({"encryption.kms-impl": "org.example.JavaClient"}, "cannot import"),
        ({"encryption.kms-type": "keystore"}, "kms.keystore.path is not set"),
        ({"encryption.kms-type": "keystore", "kms.keystore.path": "/nowhere"}, "No such file"),
        ({"encryption.kms-type": "vault"}, "kms.vault.address"),
    ],
)
def test_services_that_cannot_be_had_are_told(
    properties: dict[str, str], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VAULT_ADDR", raising=False)
    with pytest.raises(ConfigurationError, match=told):
        key_service(properties)


def test_a_catalog_with_a_service_that_nobody_has_does_not_open() -> None:
    named = {"type": "hive", "uri": "thrift://127.0.0.1:1", "encryption.kms-type": "gcp"}
    with pytest.raises(ConfigurationError, match="expected one of aws, keystore, vault, got 'gcp'"):
        load_catalog("keyed", **named)


def test_a_service_is_asked_once_for_the_same_key() -> None:
    service = Counting({})
    keys = KeptKeys(service)
    wrapped = keys.wrap_key(KEY, "one")
    assert [keys.unwrap_key(wrapped, "one") for _ in range(3)] == [KEY] * 3
    assert service.asked == 1
    keys.unwrap_key(wrapped, "two")
    assert service.asked == 2


def test_an_error_of_a_service_names_it_and_the_key() -> None:
    keys = KeptKeys(Counting({"fails": "true"}))
    for ask in (keys.wrap_key, keys.unwrap_key):
        with pytest.raises(KeyUnavailableError, match="Counting cannot be asked for the table key 'one': no route"):
            ask(KEY, "one")


def check(service: KeyService, one: str, two: str, other: type[Exception] = TamperedFileError) -> None:
    """What every service does; `other` is what it says of a key that another one encrypted."""
    wrapped = service.wrap_key(KEY, one)
    assert KEY not in wrapped
    assert service.unwrap_key(wrapped, one) == KEY
    changed = wrapped[:-3] + bytes([wrapped[-3] ^ 1]) + wrapped[-2:]
    with pytest.raises(TamperedFileError):
        service.unwrap_key(changed, one)
    with pytest.raises(other):
        service.unwrap_key(wrapped, two)
    for ask in (service.wrap_key, service.unwrap_key):
        with pytest.raises(KeyUnavailableError, match="absent"):
            ask(wrapped, "absent")


def test_a_file_of_keys(keystore: str) -> None:
    check(kept({"encryption.kms-type": "keystore", "kms.keystore.path": keystore}), "one", "two")


@pytest.mark.parametrize("content", ["", "[]", '{"a": 1}', '{"a": "%%"}', '{"a": "AAAA"}'])
def test_a_file_that_holds_no_keys_is_told_without_its_content(tmp_path: Path, content: str) -> None:
    path = tmp_path / "keys"
    path.write_text(content)
    path.chmod(0o600)
    with pytest.raises(ConfigurationError) as told:
        key_service({"encryption.kms-type": "keystore", "kms.keystore.path": str(path)})
    assert "%%" not in str(told.value) and "AAAA" not in str(told.value)


def test_a_file_of_keys_that_others_may_read_is_refused(keystore: str) -> None:
    Path(keystore).chmod(0o640)
    with pytest.raises(ConfigurationError, match="chmod 600"):
        key_service({"encryption.kms-type": "keystore", "kms.keystore.path": keystore})


def test_keys_in_aws() -> None:
    moto = pytest.importorskip("moto")
    boto3 = pytest.importorskip("boto3")
    settings = {
        "client.region": "eu-central-1",
        "client.access-key-id": "a",
        "client.secret-access-key": "b",
    }
    with moto.mock_aws():
        client = boto3.client("kms", region_name="eu-central-1", aws_access_key_id="a", aws_secret_access_key="b")
        one, two = (client.create_key()["KeyMetadata"]["KeyId"] for _ in range(2))
        check(kept({"encryption.kms-type": "aws", **settings}), one, two, KeyUnavailableError)  # moto's, not AWS'
        java = kept({"encryption.kms-impl": "org.apache.iceberg.aws.AwsKeyManagementClient", **settings})
        assert java.unwrap_key(java.wrap_key(KEY, one), one) == KEY


class Vault(BaseHTTPRequestHandler):
    """As much of Vault's transit engine as encrypt and decrypt need; its answers are those that OpenBao gave."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        _, _, mount, what, name = self.path.split("/")
        if self.headers["X-Vault-Token"] != "token" or mount != "keys":
            self._answer(403, {"errors": ["permission denied"]})
        elif name not in ("one", "two"):
            denied = "1 error occurred:\n\t* permission denied\n\n"  # to make the key
            wrong = (403, denied) if what == "encrypt" else (400, "encryption key not found")
            self._answer(wrong[0], {"errors": [wrong[1]]})
        elif what == "encrypt":
            sealed = base64.b64encode(f"{name}|{body['plaintext']}".encode()).decode()
            self._answer(200, {"data": {"ciphertext": f"vault:v1:{sealed}"}})
        elif body["ciphertext"].startswith("vault:v0:"):
            self._answer(400, {"errors": ["ciphertext or signature version is disallowed by policy (too old)"]})
        else:
            owner, _, plain = base64.b64decode(body["ciphertext"][9:]).decode("latin-1").partition("|")
            good = owner == name and len(base64.b64decode(plain)) == 32 and base64.b64decode(plain) == KEY
            message = {"errors": ["cipher: message authentication failed"]}
            self._answer(200 if good else 400, {"data": {"plaintext": plain}} if good else message)

    def _answer(self, status: int, content: Any) -> None:
        data = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is logged."""


@pytest.fixture
def vault() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Vault)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.skipif(BINARY is None, reason="neither bao nor vault is installed")
def test_keys_in_vault_itself() -> None:
    with vault_server() as server:
        settings = {"encryption.kms-type": "vault", "kms.vault.address": server.address, "kms.vault.mount": "keys"}
        service = kept({**settings, "kms.vault.token": server.token})
        check(service, "one", "two")
        wrapped = service.wrap_key(KEY, "one")
        server.ask("keys/keys/one/rotate", {})
        assert service.unwrap_key(wrapped, "one") == KEY
        server.ask("keys/keys/one/config", {"min_decryption_version": 2})
        with pytest.raises(KeyUnavailableError, match="too old"):
            kept({**settings, "kms.vault.token": server.token}).unwrap_key(wrapped, "one")
        server.ask("sys/seal", {}, "PUT")
        with pytest.raises(KeyUnavailableError, match="sealed"):
            service.wrap_key(KEY, "two")


def test_keys_in_vault(vault: str) -> None:
    settings = {"encryption.kms-type": "vault", "kms.vault.address": vault, "kms.vault.mount": "keys"}
    service = kept({**settings, "kms.vault.token": "token"})
    check(service, "one", "two")
    with pytest.raises(KeyUnavailableError, match="too old"):
        service.unwrap_key(b"vault:v0:" + service.wrap_key(KEY, "one")[9:], "one")
    with pytest.raises(KeyUnavailableError, match="permission denied"):
        kept({**settings, "kms.vault.token": "other"}).wrap_key(KEY, "one")
    settings["kms.vault.address"] = "http://127.0.0.1:1"
    with pytest.raises(KeyUnavailableError, match="Check its address"):
        kept({**settings, "kms.vault.token": "token"}).wrap_key(KEY, "one")
