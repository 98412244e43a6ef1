"""What cannot be: it is told in the protocol's form, and nothing is changed, in the metastore or on the disk."""

from __future__ import annotations

import http.client
import json
import socket
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pytest

from hms_iceberg.catalog import Catalog, load_catalog
from hms_iceberg.rest import Limits, RestSettings
from hms_iceberg.rest.access import Caller
from hms_iceberg.rest.security.logins import StaticTokens
from hms_iceberg.view import ViewVersion
from tests.support.rest_server import RestServer, served

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64())})
SCHEMA = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "id", "required": False, "type": "long"}]}
VERSION = {
    "version-id": 1,
    "timestamp-ms": 1,
    "schema-id": 0,
    "summary": {},
    "default-namespace": ["refused"],
    "representations": [{"type": "sql", "sql": "select 1", "dialect": "spark"}],
}
N, T, V = "/v1/namespaces/refused", "/v1/namespaces/refused/tables/t", "/v1/namespaces/refused/views/v"
MANY = [f"n{number}" for number in range(1000)]


@pytest.fixture(scope="module")
def hive(metastore: Any) -> Iterator[Catalog]:
    with load_catalog("behind", uri=metastore.uri) as catalog:
        catalog.create_namespace("refused")
        catalog.create_table("refused.t", ROWS.schema).append(ROWS)
        catalog.create_view("refused.v", ROWS.schema, ViewVersion.of_sql({"spark": "select 1"}, ("refused",)))
        yield catalog


@pytest.fixture(scope="module")
def server(hive: Catalog) -> Iterator[RestServer]:
    with served(hive) as running:
        yield running


@pytest.fixture
def state(hive: Catalog) -> Callable[[], object]:
    """All that there is: namespaces, tables and views with their metadata files, and the files below the namespace."""
    folder = Path(urlsplit(hive.load_namespace_properties("refused")["location"]).path)

    def everything() -> object:
        return (
            {name: hive.load_namespace_properties(name) for (name,) in hive.list_namespaces()},
            {name: hive.load_table(name).metadata_location for name in hive.list_tables("refused")},
            {name: hive.load_view(name).metadata_location for name in hive.list_views("refused")},
            {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()},
        )

    return everything


def nested(body: dict[str, Any], depth: int) -> bytes:
    """A body in which the type `nested` is one of lists in lists."""
    head = '{"type":"list","element-id":7,"element-required":false,"element":'
    return json.dumps(body).replace('"nested"', head * depth + '"long"' + "}" * depth).encode()


def table(**more: Any) -> dict[str, Any]:
    """The body of a request for a new table."""
    return {"name": "x", "schema": SCHEMA, **more}


def field(**changed: Any) -> dict[str, Any]:
    """The body of a request for a new table whose one column is changed."""
    return table(schema={**SCHEMA, "fields": [{**SCHEMA["fields"][0], **changed}]})  # type: ignore[index,dict-item]


NO_BODIES = [b"no JSON", b"\xff\xfe", b"", b'"text"', b"[]", b"null", b"1", b'{"name":' + b"[" * 100_000, b'{"a": 1']
NAMES = ["a%1Fb", "a%2Fb", "a.b", "%2E%2E%2Fx", "a%00b", "a%0Ab", "%20refused", "refused%20",
         "%09refused", "%01refused",
         "@hive%23refused", "%1F".join(MANY)]  # fmt: skip
TABLES = ["..%2F..%2Fx", "a%2Fb", "a%5Cb", "a%00b", "a%0Ab", "a%1Fb", "%20t", "t%20", "a.b", "x" * 3000]
BODIES: list[tuple[str, str, Any]] = [
    *(("POST", where, body) for where in ("/v1/namespaces", f"{N}/tables", f"{N}/register", T) for body in NO_BODIES),
    *(("POST", "/v1/namespaces", {"namespace": each}) for each in (
        "refused", [], [""], [" "], ["a", "b"], MANY, ["a.b"], ["../x"], ["a/b"], ["a\x1fb"], ["a-b"], ["a\x00b"],
        [" refused"], ["refused "], ["@hive#other"], [1], None, {"a": "b"})),
    ("POST", "/v1/namespaces", {"namespace": ["n"], "properties": {"a": 1}}),
    ("POST", "/v1/namespaces", {"namespace": ["n"], "properties": ["a"]}),
    ("POST", "/v1/namespaces", {"namespace": ["n"], "properties": {"location": "/tmp/../etc"}}),
    ("GET", "/v1/namespaces?parent=refused%1Fx", None),
    ("POST", f"{N}/properties", {"removals": ["a"], "updates": {"a": "b"}}),
    ("POST", f"{N}/properties", {"updates": {"location": "file:/tmp/%2e%2e/etc"}}),
    ("POST", f"{N}/properties", {"updates": [1]}),
    *(("GET", f"/v1/namespaces/{each}", None) for each in NAMES),
    *(("DELETE", f"/v1/namespaces/{each}", None) for each in NAMES),
    *(("DELETE", f"/v1/namespaces/{each}/tables/t?purgeRequested=true", None) for each in NAMES),
    *((method, f"{N}/tables/{each}", None) for method in ("GET", "DELETE") for each in TABLES),
    *((method, f"{N}/views/{each}", None) for method in ("GET", "DELETE") for each in TABLES),
    ("DELETE", f"{T}?purgeRequested=maybe", None),
    ("GET", "/v1/nothing", None), ("PUT", "/v1/namespaces", None), ("PATCH", T, None), ("GET", f"{T}/x/y", None),
    ("POST", f"{N}/tables", {"name": "x"}),
    *(("POST", f"{N}/tables", table(name=each)) for each in (
        "a/b", "..", " t", "t ", "", 1, None, "a\x1fb", "a.b", "@x")),
    *(("POST", f"{N}/tables", table(schema=each)) for each in (
        {"type": "struct"}, {"type": "list"}, {"type": "struct", "fields": 1}, {"type": "struct", "fields": [1]},
        "long", [])),
    *(("POST", f"{N}/tables", field(**each)) for each in (
        {"type": "number"}, {"type": 1}, {"type": None}, {"id": "1"}, {"id": None}, {"name": 1}, {"required": "yes"},
        {"type": "decimal(99, 3)"}, {"type": "fixed[-1]"}, {"type": {"type": "list"}})),
    *(("POST", f"{N}/tables", nested(field(type="nested"), each)) for each in (200, 400, 900, 5000)),
    *(("POST", f"{N}/tables", table(location=each)) for each in (
        "/tmp/../etc", "file:///tmp/%2e%2e/etc", "file:/tmp/a/../../etc", "/tmp/\x00", 1)),
    *(("POST", f"{N}/tables", table(properties=each)) for each in (
        {"a": 1}, [], {"format-version": "9"}, {"write.data.path": "/tmp/../etc"})),
    *(("POST", f"{N}/tables", {**table(), key: each}) for key, each in (
        ("partition-spec", {"fields": [{"source-id": 9, "field-id": 1000, "name": "p", "transform": "identity"}]}),
        ("partition-spec", {"fields": [{"source-id": 1, "field-id": 1000, "name": "p", "transform": "shake"}]}),
        ("partition-spec", [1]), ("write-order", {"order-id": 1, "fields": [{"source-id": 9}]}),
        ("stage-create", "yes"))),
    ("POST", "/v1/namespaces/none/tables", table()),
    *(("POST", f"{N}/register", {"name": "x", "metadata-location": each}) for each in (
        "/no/such.metadata.json", "", "/etc/passwd", "/etc/../etc/passwd", "file:/tmp/%2e%2e/x", 1, None, "http://x/y")),
    *(("POST", f"{N}/register-view", {"name": "x", "metadata-location": each}) for each in (
        "/etc/passwd", "/a/../b", 1)),
    *(("POST", f"/v1/{kind}/rename", body) for kind in ("tables", "views") for body in (
        {"source": {"namespace": ["refused"], "name": "t"}},
        {"source": {"namespace": [], "name": "t"}, "destination": {"namespace": ["refused"], "name": "x"}},
        {"source": {"namespace": ["refused"], "name": "t"}, "destination": {"namespace": MANY, "name": "x"}},
        {"source": {"namespace": ["refused"], "name": "t"}, "destination": {"namespace": ["refused"], "name": "../x"}},
        {"source": {"namespace": ["refused"], "name": "t"}, "destination": {"namespace": ["none"], "name": "x"}},
        {"source": {"namespace": ["refused"], "name": "t"}, "destination": {"namespace": ["refused"], "name": " t"}})),
    ("POST", f"{N}/tables/none", {"updates": []}),
    *(("POST", T, {"updates": each}) for each in (
        "none", [1], [None], [{}], [{"action": 1}], [{"action": "explode"}],
        [{"action": "set-properties", "updates": {"a": "b"}}, {"action": "explode"}],
        [{"action": "set-properties", "updates": {"a": 1}}], [{"action": "set-properties"}],
        [{"action": "add-snapshot", "snapshot": {}}], [{"action": "add-schema", "schema": {"type": "struct"}}],
        [{"action": "set-current-schema", "schema-id": 99}], [{"action": "set-default-spec", "spec-id": 99}],
        [{"action": "set-location", "location": "/tmp/../etc"}], [{"action": "set-location", "location": 1}],
        [{"action": "set-properties", "updates": {"write.metadata.path": "/tmp/../etc"}}],
        [{"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 99}],
        [{"action": "upgrade-format-version", "format-version": 99}])),
    *(("POST", T, nested({"updates": [{"action": "add-schema", "schema": field(type="nested")["schema"]}]}, each))
      for each in (200, 400, 900, 5000)),
    *(("POST", T, {"requirements": each, "updates": []}) for each in (
        [{"type": "x"}], [1], "none", [{}], [{"type": "assert-table-uuid"}], [{"type": "assert-ref-snapshot-id"}])),
    ("POST", T, {"identifier": {"namespace": ["refused"], "name": "other"}, "updates": []}),
    *(("POST", f"{N}/views", {"name": "x", "schema": SCHEMA, "view-version": each}) for each in (
        {}, 1, {**VERSION, "representations": [1]}, {**VERSION, "representations": []}, {**VERSION, "version-id": "a"},
        {**VERSION, "representations": VERSION["representations"] * 2})),  # type: ignore[operator]
    ("POST", f"{N}/views", {"name": "x", "schema": SCHEMA, "view-version": VERSION, "location": "/tmp/../etc"}),
    *(("POST", V, {"updates": each}) for each in (
        [{"action": "explode"}], [{"action": "set-location", "location": "/a/../b"}], 1)),
    *(("POST", f"{T}/plan", each) for each in (
        {"snapshot-id": 1}, {"select": ["none"]}, {"filter": {"type": "x"}}, [])),
    *(("POST", f"{T}/tasks", {"plan-task": each}) for each in ("x", "", "../../x", f"{uuid.uuid4()}.0.0", 1)),
    *((method, f"{T}/plan/{each}", None) for method in ("GET",) for each in ("x", "..%2F..%2Fetc", str(uuid.uuid4()))),
    ("POST", f"{T}/sign", {"method": "GET"}), ("POST", f"{T}/metrics", b"no JSON"),
    *(("GET", f"{N}/tables?{each}", None) for each in (
        "pageSize=0", "pageSize=-1", "pageSize=x", "pageSize=99999999999", "pageToken=%C3%A9",
        "pageToken=%FF", "pageToken=a")),
]  # fmt: skip


def test_what_cannot_be_is_told_in_the_protocols_form_and_changes_nothing(
    server: RestServer, state: Callable[[], object]
) -> None:
    before, wrong = state(), []
    for method, where, body in BODIES:
        try:
            answer = server.ask(method, where, body)
            if not (400 <= answer.status < 500 and answer.error):
                wrong.append((method, where[:100], str(body)[:200], answer.status, str(answer.body)[:200]))
        except AssertionError as error:
            wrong.append((method, where[:100], str(body)[:200], 0, str(error)[:200]))
    assert not wrong, "\n".join(map(str, wrong))
    assert state() == before


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_that_is_too_large_is_refused_however_it_comes(
    hive: Catalog, state: Callable[[], object], chunked: bool
) -> None:
    before, body = state(), json.dumps(table(name="y" * 2000)).encode()
    with served(hive, RestSettings(limits=Limits(body_bytes=1000))) as small:
        connection = http.client.HTTPConnection(urlsplit(small.url).netloc, timeout=20)
        parts = iter([body[:900], body[900:]]) if chunked else body
        connection.request("POST", f"{N}/tables", body=parts, encode_chunked=chunked)
        answer = connection.getresponse()
        assert answer.status == 413 and json.load(answer)["error"]["code"] == 413
        connection.close()
    assert state() == before


def test_a_client_that_takes_its_time_is_given_up(hive: Catalog, state: Callable[[], object]) -> None:
    before = state()
    with served(hive, RestSettings(limits=Limits(body_seconds=0.3, head_seconds=1))) as hasty:
        address = urlsplit(hasty.url)
        for sent, told in (
            (b"POST /v1/namespaces HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n\r\n{", b" 408 "),
            (b"GET /v1/config HTTP/1.1\r\nHost: x\r\nX-Slow: ", b""),
            (b"", b""),
        ):
            with socket.create_connection((address.hostname or "", address.port or 0), timeout=20) as slow:
                slow.sendall(sent)
                assert told in slow.recv(1000)
        assert hasty.ask("GET", "/v1/config").status == 200
    assert state() == before


def test_nobody_without_a_good_token_changes_anything(hive: Catalog, state: Callable[[], object]) -> None:
    before = state()
    with served(hive, login=StaticTokens.of({"a-token-that-is-known": Caller("alice")})) as guarded:
        for header in (
            {},
            {"Authorization": "Bearer another"},
            {"Authorization": "Basic YTpi"},
            {"Authorization": "Bearer "},
        ):
            for method, where, body in (
                ("DELETE", T, None), ("POST", T, {"updates": []}), ("POST", f"{N}/tables", table()), ("DELETE", V, None)
            ):  # fmt: skip
                refused = guarded.ask(method, where, body, header)
                assert (refused.status, refused.error) == (401, "NotAuthorizedException")
        assert guarded.ask("HEAD", T, headers={"Authorization": "Bearer a-token-that-is-known"}).status == 204
    assert state() == before
