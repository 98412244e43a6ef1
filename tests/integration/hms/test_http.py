"""Thrift over HTTP, and tokens that say who the client is, on a real Hive 4."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from hms_iceberg.catalog import load_catalog
from hms_iceberg.errors import ConfigurationError, MetastoreAuthenticationError, MetastoreUnavailableError
from tests.support.hive_server.releases import HIVE_4_0
from tests.support.hive_server.server import HiveServer
from tests.support.maven import UnavailableError

pytestmark = pytest.mark.slow  # a server is started

SCHEMA = pa.schema([pa.field("id", pa.int64())])
HTTP = {"hive.metastore.client.thrift.transport.mode": "http"}
JWT = {**HTTP, "hive.metastore.client.auth.mode": "JWT"}
TOKEN = "hive.metastore.client.auth.jwt"


def text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def number(value: int) -> str:
    return text(value.to_bytes((value.bit_length() + 7) // 8, "big"))


class Issuer:
    """Signs tokens, and tells a server how to check them."""

    def __init__(self) -> None:
        self._key = rsa.generate_private_key(65537, 2048)

    def keys(self) -> str:
        """What the server is told: a set of public keys."""
        public = self._key.public_key().public_numbers()
        key = {"kty": "RSA", "kid": "one", "use": "sig", "alg": "RS256", "n": number(public.n), "e": number(public.e)}
        return json.dumps({"keys": [key]})

    def token(self, user: str, seconds: float = 600) -> str:
        """A token of a user, good for so long."""
        claims: dict[str, Any] = {"sub": user, "iat": int(time.time()) - 60, "exp": int(time.time() + seconds)}
        parts = ({"alg": "RS256", "kid": "one", "typ": "JWT"}, claims)
        signed = ".".join(text(json.dumps(part).encode()) for part in parts)
        return f"{signed}.{text(self._key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256()))}"


@pytest.fixture(scope="module")
def issuer() -> Issuer:
    return Issuer()


@pytest.fixture(scope="module")
def server(issuer: Issuer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HiveServer]:
    """Hive 4 that answers HTTP only, and knows whom the issuer vouches for."""
    try:
        HIVE_4_0.jars()
    except UnavailableError as error:
        pytest.skip(str(error))  # the server's jars are in no cache and Maven cannot fetch them here
    keys = tmp_path_factory.mktemp("keys") / "jwks.json"
    keys.write_text(issuer.keys())
    properties = {
        "metastore.server.thrift.transport.mode": "http",
        "metastore.authentication": "JWT",
        "metastore.authentication.jwt.jwks.url": keys.as_uri(),
    }
    with HiveServer(HIVE_4_0, tmp_path_factory.mktemp("http"), properties) as server:
        yield server


def test_commits_go_over_http_with_a_token_of_property_file_or_environment(
    server: HiveServer, issuer: Issuer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "token"
    file.write_text(issuer.token("etl") + "\n")
    monkeypatch.setenv("HMS_JWT", issuer.token("etl"))
    ways: list[dict[str, str]] = [{TOKEN: issuer.token("etl")}, {f"{TOKEN}.file": str(file)}, {}]
    for place, way in enumerate(ways):
        with load_catalog("http", uri=server.uri, **JWT, **way) as catalog:
            catalog.create_namespace(f"n{place}")
            table = catalog.create_table(f"n{place}.events", SCHEMA)
            table.append(pa.table({"id": range(5)}, SCHEMA))
            with table.transaction() as transaction:  # more than fits into one packet
                transaction.set_properties({f"key-{each}": "x" * 3000 for each in range(60)})
            catalog.rename_table(f"n{place}.events", f"n{place}.renamed")  # two requests before the first answer
            assert catalog.load_table(f"n{place}.renamed").scan().count() == 5
            assert catalog.load_table(f"n{place}.renamed").properties["key-59"] == "x" * 3000


def test_a_token_that_is_renewed_in_its_file_is_used_at_once(
    server: HiveServer, issuer: Issuer, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    file.write_text(issuer.token("etl", seconds=-300))
    with load_catalog("http", uri=server.uri, **JWT, **{f"{TOKEN}.file": str(file)}) as catalog:
        with pytest.raises(MetastoreAuthenticationError, match=r"401.*has not expired"):
            catalog.list_namespaces()
        file.write_text(issuer.token("etl"))
        assert ("default",) in catalog.list_namespaces()


def test_a_token_of_a_stranger_or_none_is_refused_by_name(server: HiveServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HMS_JWT", raising=False)
    stranger = Issuer().token("etl")
    with (
        load_catalog("http", uri=server.uri, **JWT, **{TOKEN: stranger}) as catalog,
        pytest.raises(MetastoreAuthenticationError, match=TOKEN) as caught,
    ):
        catalog.list_namespaces()
    assert stranger not in str(caught.value)
    assert stranger not in repr(catalog)
    with load_catalog("http", uri=server.uri, **HTTP) as catalog, pytest.raises(MetastoreAuthenticationError):
        catalog.list_namespaces()
    with pytest.raises(ConfigurationError, match="HMS_JWT"):
        load_catalog("http", uri=server.uri, **JWT)
    with pytest.raises(ConfigurationError, match=r"transport\.mode=http"):
        load_catalog("http", uri=server.uri, **{"hive.metastore.client.auth.mode": "JWT", TOKEN: stranger})


def test_what_is_no_end_point_of_a_metastore_says_so(server: HiveServer, issuer: Issuer) -> None:
    elsewhere = {"hive.metastore.client.thrift.http.path": "nowhere", "hive.metastore.connect.retries": "1"}
    with (
        load_catalog("http", uri=server.uri, **JWT, **elsewhere, **{TOKEN: issuer.token("etl")}) as catalog,
        pytest.raises(MetastoreUnavailableError, match=r"405.*/nowhere"),
    ):
        catalog.list_namespaces()
