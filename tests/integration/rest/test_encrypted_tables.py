"""Encrypted tables over the REST protocol: the client has the keys, the server need not."""

from __future__ import annotations

import base64
import json
import pickle
from pathlib import Path

import pyarrow as pa
import pytest

from hms_iceberg import load_catalog
from hms_iceberg.errors import KeyUnavailableError
from hms_iceberg.rest import RestSettings
from tests.support.rest_server import served

SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.string())])


def row(key: int) -> pa.Table:
    return pa.table({"id": [key], "text": ["x"]}, schema=SCHEMA)


@pytest.mark.parametrize("server_has_keys", [True, False])
def test_a_client_with_keys_reads_and_changes_an_encrypted_table(tmp_path: Path, server_has_keys: bool) -> None:
    path = tmp_path / "keys.json"
    path.write_text(json.dumps({"one": base64.b64encode(bytes(16)).decode()}))
    path.chmod(0o600)
    keys = {"encryption.kms-type": "keystore", "kms.keystore.path": str(path)}
    behind = load_catalog("b", type="hadoop", warehouse=str(tmp_path / "w"), **(keys if server_has_keys else {}))
    behind.create_namespace("db")
    with served(behind) as server:
        catalog = load_catalog("r", type="rest", uri=server.url, **keys)
        properties = {"format-version": "3", "encryption.key-id": "one", "write.delete.mode": "merge-on-read"}
        table = catalog.create_table("db.t", SCHEMA, properties=properties)
        for key in range(3):
            table.append(row(key))
        catalog.load_table("db.t").delete("id = 1")
        table.append(row(3))
        assert sorted(catalog.load_table("db.t").scan().to_arrow()["id"].to_pylist()) == [0, 2, 3]
        assert len(table.metadata.encryption_keys) == 6
        with pytest.raises(KeyUnavailableError):
            load_catalog("o", type="rest", uri=server.url).load_table("db.t").scan().to_arrow()
    folder = Path(table.location().removeprefix("file:"))
    files = [each for each in folder.rglob("*") if each.suffix in (".parquet", ".avro", ".puffin")]
    assert {each.read_bytes()[:4] for each in files} == {b"PARE", b"AGS1"}


def test_a_server_does_not_choose_the_key_service_of_its_clients(tmp_path: Path) -> None:
    behind = load_catalog("b", type="hadoop", warehouse=str(tmp_path / "w"))
    behind.create_namespace("db")
    told = {"encryption.kms-type": "vault", "kms.vault.address": "http://127.0.0.1:1", "kms.vault.token": "t"}
    settings = RestSettings(table_config=told, client_overrides=told)
    with served(behind, settings) as server:
        catalog = load_catalog("r", type="rest", uri=server.url)
        properties = {"format-version": "3", "encryption.key-id": "one"}
        table = catalog.create_table("db.t", SCHEMA, properties=properties)
        assert told.items() <= catalog._storage_for(("db", "t"))._properties.items()  # type: ignore[attr-defined]
        for each in (table, pickle.loads(pickle.dumps(table))):
            with pytest.raises(KeyUnavailableError, match="has no key service"):
                each.append(row(1))
