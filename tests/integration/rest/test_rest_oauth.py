"""OAuth2 from end to end: another server gives tokens, ours checks them by its keys, and clients renew them."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

import jwt
import pyarrow as pa
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from hms_iceberg.catalog import Catalog, load_catalog
from hms_iceberg.errors import MetastoreAuthenticationError, StorageDeniedError
from hms_iceberg.rest.access import Right
from hms_iceberg.rest.security.jwt_login import JwtLogin, JwtSettings
from hms_iceberg.rest.security.policy import Policy, PolicyRule
from tests.support.rest_server import RestServer, served

ROWS = pa.table({"id": pa.array([1, 2], pa.int64())})
SECRETS = {"etl": "a-secret", "analyst": "b-secret"}


class TokenServer:
    """Gives tokens for client credentials (RFC 6749, 4.4), and publishes its key."""

    def __init__(self) -> None:
        self.key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.lives: list[int] = []  # of the next tokens, in seconds; those after them live for an hour
        self.tells: float | None = 3600  # for how long a token lives, by what it tells
        self.given: Counter[str] = Counter()
        given = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(given.key.public_key()))
                self._answer(200, {"keys": [{**public, "kid": "k", "use": "sig", "alg": "RS256"}]})

            def do_POST(self) -> None:
                form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
                name, secret = form.get("client_id", [""])[0], form.get("client_secret", [""])[0]
                scheme, _, basic = self.headers.get("Authorization", "").partition(" ")
                if scheme == "Basic":
                    name, _, secret = base64.b64decode(basic).decode().partition(":")
                if form.get("grant_type") != ["client_credentials"] or SECRETS.get(name) != secret:
                    self._answer(401, {"error": "invalid_client"})
                    return
                given.given[name] += 1
                answer = {"access_token": given.token(name), "token_type": "bearer"}
                self._answer(200, {**answer, "expires_in": given.tells} if given.tells else answer)

            def _answer(self, status: int, body: Any) -> None:
                data = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def token(self, name: str) -> str:
        seconds = self.lives.pop(0) if self.lives else 3600
        claims = {"iss": "https://issuer", "aud": "lake", "sub": name, "exp": time.time() + seconds}
        return jwt.encode(claims, self.key, algorithm="RS256", headers={"kid": "k"})

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture(scope="module")
def issuer() -> Iterator[TokenServer]:
    running = TokenServer()
    yield running
    running.close()


@pytest.fixture(scope="module")
def server(metastore: Any, issuer: TokenServer) -> Iterator[RestServer]:
    rules = (
        PolicyRule(Right.MANAGE, ("etl",)),
        PolicyRule(Right.READ, ("analyst",)),
    )
    login = JwtLogin(JwtSettings(f"{issuer.url}/keys", "https://issuer", "lake", leeway_seconds=0))
    with load_catalog("behind", uri=metastore.uri) as hive, served(hive, login=login, rule=Policy(rules)) as running:
        yield running


def client(server: RestServer, issuer: TokenServer, name: str) -> Catalog:
    properties = {"credential": f"{name}:{SECRETS[name]}", "oauth2-server-uri": f"{issuer.url}/token"}
    return load_catalog("client", uri=server.url, **properties)


def test_clients_log_in_with_credentials_and_get_what_the_policy_allows(
    server: RestServer, issuer: TokenServer
) -> None:
    from pyiceberg.catalog import load_catalog as load_peer
    from pyiceberg.exceptions import ForbiddenError

    with client(server, issuer, "etl") as etl, client(server, issuer, "analyst") as analyst:
        etl.create_namespace("oauth")
        etl.create_table("oauth.t", ROWS.schema).append(ROWS)
        assert analyst.load_table("oauth.t").scan().to_arrow().equals(ROWS)
        with pytest.raises(StorageDeniedError, match="analyst may not manage"):
            analyst.drop_table("oauth.t")
        with pytest.raises(StorageDeniedError, match="analyst may not write"):
            analyst.load_table("oauth.t").append(ROWS)
        peers = {
            name: load_peer(
                name,
                type="rest",
                uri=server.url,
                credential=f"{name}:{SECRETS[name]}",
                **{"oauth2-server-uri": f"{issuer.url}/token"},
            )
            for name in SECRETS
        }
        peers["etl"].load_table("oauth.t").append(ROWS)
        assert peers["analyst"].load_table("oauth.t").scan().to_arrow().num_rows == 4
        with pytest.raises(ForbiddenError):
            peers["analyst"].drop_table("oauth.t")
        assert etl.load_table("oauth.t").scan().to_arrow().num_rows == 4


def test_a_token_that_ends_is_got_anew(
    server: RestServer, issuer: TokenServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for tells, lives in ((1e-6, []), (None, [-5])):  # the other way, only the server's refusal says that it has ended
        monkeypatch.setattr(issuer, "tells", tells)
        monkeypatch.setattr(issuer, "lives", lives)
        before = issuer.given["etl"]
        with client(server, issuer, "etl") as etl:
            etl.list_namespaces()
            etl.create_namespace(f"renewed_{tells}".replace("1e-06", "early"))
        assert issuer.given["etl"] >= before + 2


def test_a_wrong_credential_and_an_expired_token_are_told(server: RestServer, issuer: TokenServer) -> None:
    with pytest.raises(MetastoreAuthenticationError, match="gave no token"):
        load_catalog("x", uri=server.url, credential="etl:no", **{"oauth2-server-uri": f"{issuer.url}/token"})
    claims = {"iss": "https://issuer", "aud": "lake", "sub": "etl", "exp": time.time() - 5}
    expired = jwt.encode(claims, issuer.key, algorithm="RS256", headers={"kid": "k"})
    with pytest.raises(MetastoreAuthenticationError, match="expired"):
        load_catalog("x", uri=server.url, token=expired).list_namespaces()
    other = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    forged = jwt.encode({**claims, "exp": time.time() + 50}, other, algorithm="RS256", headers={"kid": "k"})
    answer = server.ask("GET", "/v1/namespaces", headers={"Authorization": f"Bearer {forged}"})
    assert answer.status == 401 and forged not in str(answer.body)
