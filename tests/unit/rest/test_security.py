"""Who is let in, what they may do, and where files may be."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from hms_iceberg.errors import ConfigurationError
from hms_iceberg.rest.access import Caller, Right
from hms_iceberg.rest.errors import RefusedError
from hms_iceberg.rest.security.jwt_login import JwtLogin, JwtSettings
from hms_iceberg.rest.security.locations import AllowedLocations
from hms_iceberg.rest.security.logins import StaticTokens, read_tokens
from hms_iceberg.rest.security.policy import read_policy
from hms_iceberg.rest.server import ServerSettings
from hms_iceberg.rest.settings import RestSettings, StorageSettings

ALICE = Caller("alice", frozenset({"analysts"}))
TOKEN = "a-token-that-is-long-enough"


def test_a_static_token_tells_who_asks(tmp_path: Path) -> None:
    file = tmp_path / "tokens.yaml"
    file.write_text(f"tokens:\n  - name: alice\n    token: {TOKEN}\n    groups: [analysts]\n")
    login = read_tokens(file)
    assert login.caller(f"Bearer {TOKEN}") == ALICE
    assert TOKEN not in repr(login)
    for header in ("", "Bearer", "Basic x", f"Bearer {TOKEN}x", "Bearer \udcff"):
        with pytest.raises(RefusedError) as refused:
            login.caller(header)
        assert refused.value.kind.code == 401


@pytest.mark.parametrize(
    "text", ["tokens: []", "a: b", "tokens:\n  - name: x\n    token: short", "tokens: [{name: x}]", "- x"]
)
def test_a_file_of_tokens_that_is_not_complete_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "tokens.yaml"
    file.write_text(text)
    with pytest.raises(ConfigurationError):
        read_tokens(file)


POLICY = """
rules:
  - groups: [analysts]
    namespaces: ["sales*"]
    right: read
  - principals: [alice]
    namespaces: [sales_eu]
    tables: ["events_*"]
    right: write
  - principals: [root]
    right: manage
"""


@pytest.mark.parametrize(
    ("caller", "right", "namespace", "name", "allowed"),
    [
        (ALICE, Right.READ, "sales", "orders", True),
        (ALICE, Right.READ, "sales", None, True),
        (ALICE, Right.WRITE, "sales", "orders", False),
        (ALICE, Right.WRITE, "sales_eu", "events_1", True),
        (ALICE, Right.WRITE, "sales_eu", "orders", False),
        (ALICE, Right.MANAGE, "sales_eu", "events_1", False),
        (ALICE, Right.WRITE, "sales_eu", None, False),
        (ALICE, Right.READ, "finance", None, False),
        (Caller("root"), Right.MANAGE, "finance", None, True),
        (Caller("bob"), Right.READ, "sales", "orders", False),
    ],
)
def test_a_policy_says_who_may_do_what(
    tmp_path: Path, caller: Caller, right: Right, namespace: str, name: str | None, allowed: bool
) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(POLICY)
    assert read_policy(file)(caller, right, namespace, name) is allowed


@pytest.mark.parametrize(
    "rule",
    [
        "{right: read}",
        "{principals: [a], right: all}",
        "{principals: a, right: read}",
        "{principals: [a], rigth: read}",
    ],
)
def test_a_policy_with_a_rule_that_cannot_be_read_is_refused_as_a_whole(tmp_path: Path, rule: str) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(f"rules:\n  - {{principals: [root], right: manage}}\n  - {rule}\n")
    with pytest.raises(ConfigurationError, match="Rule 2"):
        read_policy(file)


@pytest.fixture(scope="module")
def keys() -> tuple[Any, Any]:
    from cryptography.hazmat.primitives.asymmetric import rsa

    return rsa.generate_private_key(65537, 2048), rsa.generate_private_key(65537, 2048)


@pytest.mark.parametrize(
    ("claims", "status"),
    [
        ({}, 200),
        ({"exp": -10}, 200),  # clocks differ
        ({"exp": -100}, 419),
        ({"iss": "https://other"}, 401),
        ({"aud": "other"}, 401),
        ({"exp": None}, 401),
        ({"sub": None}, 401),
        ({"nbf": 1000}, 401),
    ],
)
def test_a_jwt_counts_if_its_issuer_audience_and_time_are_right(
    tmp_path: Path, keys: tuple[Any, Any], claims: dict[str, Any], status: int
) -> None:
    import jwt

    now = int(time.time())
    own: dict[str, Any] = {
        "sub": "alice",
        "iss": "https://issuer",
        "aud": "catalog",
        "exp": now + 60,
        "groups": ["analysts"],
    }
    for key, value in claims.items():
        own[key] = now + value if key in ("exp", "nbf") and value is not None else value
    own = {key: value for key, value in own.items() if value is not None}
    login = JwtLogin(JwtSettings(_jwks(tmp_path, keys[0]), "https://issuer", "catalog"))
    token = jwt.encode(own, keys[0], algorithm="RS256", headers={"kid": "one"})
    if status == 200:
        assert login.caller(f"Bearer {token}") == ALICE
        return
    with pytest.raises(RefusedError) as refused:
        login.caller(f"Bearer {token}")
    assert refused.value.kind.code == status


def test_a_jwt_of_another_key_or_of_no_key_is_refused(tmp_path: Path, keys: tuple[Any, Any]) -> None:
    import jwt

    claims = {"sub": "alice", "iss": "https://issuer", "aud": "catalog", "exp": int(time.time()) + 60}
    login = JwtLogin(JwtSettings(_jwks(tmp_path, keys[0]), "https://issuer", "catalog"))
    for token in (
        jwt.encode(claims, keys[1], algorithm="RS256", headers={"kid": "one"}),
        jwt.encode(claims, keys[0], algorithm="RS256", headers={"kid": "two"}),
        jwt.encode(claims, None, algorithm="none", headers={"kid": "one"}),
        jwt.encode(claims, "a shared secret of more than thirty-two bytes", algorithm="HS256", headers={"kid": "one"}),
        "a.b.c",
    ):
        with pytest.raises(RefusedError) as refused:
            login.caller(f"Bearer {token}")
        assert refused.value.kind.code == 401


def test_keys_are_asked_for_anew_if_there_is_another_one_but_not_for_every_token(
    tmp_path: Path, keys: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    import jwt

    claims = {"sub": "alice", "iss": "https://issuer", "aud": "catalog", "exp": int(time.time()) + 60}
    asked: list[str] = []

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            asked.append(self.path)

    def token(key: Any, kid: str) -> str:
        return "Bearer " + jwt.encode(claims, key, algorithm="RS256", headers={"kid": kid})

    _jwks(tmp_path, keys[0])
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(tmp_path))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/jwks.json"
        login = JwtLogin(JwtSettings(address, "https://issuer", "catalog"))
        assert login.caller(token(keys[0], "one")).name == "alice"
        for _ in range(5):
            with pytest.raises(RefusedError):
                login.caller(token(keys[1], "two"))
        assert len(asked) <= 2
        (tmp_path / "jwks.json").write_text(Path(_jwks(tmp_path, keys[1])).read_text().replace('"one"', '"two"'))
        monkeypatch.setattr("hms_iceberg.rest.security.jwt_login._ASK_SECONDS", 0.0)
        assert login.caller(token(keys[1], "two")).name == "alice"
        server.shutdown()


def _jwks(folder: Path, key: Any) -> str:
    from jwt.algorithms import RSAAlgorithm

    shown = RSAAlgorithm.to_jwk(key.public_key(), as_dict=True)
    file = folder / "jwks.json"
    file.write_text(json.dumps({"keys": [{**shown, "kid": "one", "alg": "RS256", "use": "sig"}]}))
    return str(file)


@pytest.mark.parametrize(
    ("location", "allowed"),
    [
        ("s3://bucket/warehouse/db/t", True),
        ("s3a://bucket/warehouse/db/t", True),
        ("s3://bucket/warehouse", True),
        ("s3://bucket/warehouse2/t", False),
        ("s3://bucket/warehouse/../secret", False),
        ("s3://bucket/warehouse/%2e%2e/secret", False),
        ("s3://other/warehouse/t", False),
        ("/data/t", True),
        ("file:///data/t", True),
        ("file:/data/./t", False),
        ("/data/../etc", False),
        ("/etc", False),
    ],
)
def test_locations_outside_the_allowed_folders_are_refused(location: str, allowed: bool) -> None:
    locations = AllowedLocations(("s3://bucket/warehouse/", "file:/data"))
    if allowed:
        locations.check(location, "location")
        return
    with pytest.raises(RefusedError) as refused:
        locations.check(location, "location")
    assert refused.value.kind.code == 403


def test_a_server_that_others_can_reach_wants_a_login() -> None:
    ServerSettings(None, {}, host="127.0.0.1").check()
    ServerSettings(None, {}, host="0.0.0.0", allow_anybody=True).check()
    with pytest.raises(ConfigurationError, match="login"):
        ServerSettings(None, {}, host="0.0.0.0").check()
    with pytest.raises(ConfigurationError, match="key"):
        ServerSettings(None, {}, tls_certificate="x.pem").check()
    for ports in ({"port": 65_536}, {"port": -1}, {"metrics_port": 70_000}):
        with pytest.raises(ConfigurationError, match="is no port"):
            ServerSettings(None, {}, **ports).check()


def test_keys_for_folders_that_clients_choose_need_limits(tmp_path: Path) -> None:
    policy, tokens = tmp_path / "policy.yaml", tmp_path / "tokens.yaml"
    policy.write_text(POLICY)
    tokens.write_text(f"tokens:\n  - name: alice\n    token: {TOKEN}\n")
    for storage in (StorageSettings(role_arn="arn:x"), StorageSettings(signs=True)):
        rest = RestSettings(storage=storage)
        settings = ServerSettings(None, {}, rest, tokens=str(tokens), policy=str(policy))
        with pytest.raises(ConfigurationError, match="allowed-location"):
            settings.check()
        replace(settings, rest=replace(rest, allowed_locations=("s3://bucket/lake",))).check()


def test_tokens_are_compared_as_hashes() -> None:
    login = StaticTokens.of({TOKEN: ALICE})
    assert all(len(key) == 32 for key in login.hashes)
