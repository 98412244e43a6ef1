"""The server on the real metastore: the whole protocol, and what is no part of it."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

from hms_iceberg.catalog import Catalog, load_catalog
from hms_iceberg.rest import Limits, RestSettings
from hms_iceberg.rest.serving import latest_versions
from hms_iceberg.rest_client.channel import new_key
from hms_iceberg.spec.changes.differences import table_requirements, table_updates
from tests.support.rest_server import RestServer, served
from tests.support.thrift_proxy import ThriftProxy

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "city": ["Bonn", None, ""]})
SCHEMA = {
    "type": "struct",
    "schema-id": 0,
    "fields": [{"id": 1, "name": "id", "required": False, "type": "long"}],
}


@pytest.fixture(scope="module")
def hive(metastore: Any) -> Iterator[Catalog]:
    with load_catalog("behind", uri=metastore.uri) as catalog:
        catalog.create_namespace("door")
        yield catalog


@pytest.fixture(scope="module")
def server(hive: Catalog) -> Iterator[RestServer]:
    with served(hive) as running:
        yield running


@pytest.fixture(scope="module")
def client(server: RestServer) -> Iterator[Catalog]:
    with load_catalog("client", type="rest", uri=server.url) as catalog:
        yield catalog


@pytest.fixture
def name() -> str:
    return f"door.t_{uuid.uuid4().hex[:8]}"


def path(name: str) -> str:
    namespace, table = name.split(".")
    return f"/v1/namespaces/{namespace}/tables/{table}"


def test_the_configuration_tells_what_there_is(server: RestServer) -> None:
    told = server.ask("GET", "/v1/config").body
    assert told["defaults"] == told["overrides"] == {}
    assert "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}" in told["endpoints"]
    assert "POST /v1/{prefix}/views/rename" in told["endpoints"]
    assert server.ask("GET", "/v1/config", warehouse="behind").status == 200
    assert server.ask("GET", "/v1/config", warehouse="other").error == "NoSuchWarehouseException"


def test_a_table_through_the_door_is_the_one_behind_it(client: Catalog, hive: Catalog, name: str) -> None:
    table = client.create_table(name, ROWS.schema, properties={"a": "1"})
    table.append(ROWS)
    behind = hive.load_table(name)
    assert behind.scan().to_arrow().equals(ROWS)
    behind.append(ROWS)
    table.append(ROWS)  # made on the version before: the server replays, or the client does
    with table.transaction() as change:
        change.set_properties({"b": "2"})
        change.delete("id = 2")
    assert sorted(hive.load_table(name).scan().to_arrow()["id"].to_pylist()) == [1, 1, 1, 3, 3, 3]
    assert client.load_table(name).properties["b"] == "2"
    assert client.list_tables("door") == hive.list_tables("door")
    client.create_or_replace_table(name, ROWS.schema).append(ROWS)
    assert hive.load_table(name).scan().to_arrow().equals(ROWS)
    client.drop_table(name, purge_requested=True)
    assert not hive.table_exists(name)


def test_changes_that_require_nothing_of_each_other_are_all_made(server: RestServer, hive: Catalog, name: str) -> None:
    hive.create_table(name, ROWS.schema)
    uuid_now = str(hive.load_table(name).metadata.table_uuid)

    def set_property(number: int) -> None:
        body = {
            "requirements": [{"type": "assert-table-uuid", "uuid": uuid_now}],
            "updates": [{"action": "set-properties", "updates": {f"p{number}": "x"}}],
        }
        statuses.append(server.ask("POST", path(name), body).status)

    statuses: list[int] = []
    threads = [threading.Thread(target=set_property, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert statuses == [200] * 6
    assert {f"p{number}" for number in range(6)} <= hive.load_table(name).properties.keys()


def test_a_commit_whose_requirement_does_not_hold_changes_nothing(server: RestServer, hive: Catalog, name: str) -> None:
    table = hive.create_table(name, ROWS.schema)
    body = {
        "requirements": [{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 5}],
        "updates": [{"action": "set-properties", "updates": {"a": "b"}}],
    }
    lost = server.ask("POST", path(name), body)
    assert (lost.status, lost.error) == (409, "CommitFailedException")
    assert hive.load_table(name).metadata_location == table.metadata_location


def test_a_commit_right_after_another_asks_little_and_misses_nothing(
    hive: Catalog, name: str, metastore: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def committed(**properties: str) -> int:
        body = {"requirements": [], "updates": [{"action": "set-properties", "updates": properties}]}
        return server.ask("POST", path(name), body).status

    table = hive.create_table(name, ROWS.schema)
    with (
        ThriftProxy(metastore.port) as proxy,
        load_catalog("counted", uri=proxy.uri) as catalog,
        served(catalog) as server,
    ):
        assert committed(a="1") == 200
        catalog.metastore.client.pool.close()  # type: ignore[attr-defined]
        proxy.calls.clear()
        assert committed(a="2") == 200
        catalog.metastore.client.pool.close()  # type: ignore[attr-defined]
        assert proxy.calls == ["lock", "get_table_req", "alter_table_with_environment_context", "unlock"]
        with monkeypatch.context() as patch:
            patch.setattr(latest_versions, "_SHARED_SECONDS", 0.0)
            table.refresh().set_properties({"a": "3"})
            assert committed(a="2") == 200, "which is no change of what the server saw last"
            assert hive.load_table(name).properties["a"] == "2"
            table.refresh().set_properties({"b": "1"})
            assert committed(c="1") == 200
            assert {"b": "1", "c": "1"}.items() <= hive.load_table(name).properties.items()
            hive.drop_table(name)
            hive.create_table(name, ROWS.schema)
            assert committed(d="1") == 200, "the table of that name is another one"
            assert "c" not in hive.load_table(name).properties
            hive.drop_table(name)
            assert committed(e="1") == 404
        table = hive.create_table(name, ROWS.schema)
        assert committed(f="1") == 200
        catalog.metastore.client.pool.close()  # type: ignore[attr-defined]
        proxy.calls.clear()
        assert committed(f="2") == 200 and proxy.calls[0] == "get_table_req", "others change it as well"


def test_a_table_is_told_again_only_if_it_changed(server: RestServer, hive: Catalog, name: str) -> None:
    table = hive.create_table(name, ROWS.schema)
    table.append(ROWS)
    table.append(ROWS)
    everything = server.ask("GET", path(name))
    refs = server.ask("GET", path(name), snapshots="refs")
    assert [len(each.body["metadata"]["snapshots"]) for each in (everything, refs)] == [2, 1]
    assert everything.headers["ETag"] != refs.headers["ETag"]
    again = server.ask("GET", path(name), headers={"If-None-Match": everything.headers["ETag"]})
    assert (again.status, again.body) == (304, None)
    table.append(ROWS)
    assert server.ask("GET", path(name), headers={"If-None-Match": everything.headers["ETag"]}).status == 200
    assert server.ask("GET", path(name), snapshots="some").error == "BadRequestException"


def test_lists_come_in_pages(server: RestServer, client: Catalog, hive: Catalog) -> None:
    hive.create_namespace("pages")
    for number in range(5):
        hive.create_table(f"pages.t{number}", ROWS.schema)
    first = server.ask("GET", "/v1/namespaces/pages/tables", pageSize="2").body
    rest = server.ask("GET", "/v1/namespaces/pages/tables", pageSize="9", pageToken=first["next-page-token"]).body
    names = [each["name"] for page in (first, rest) for each in page["identifiers"]]
    assert names == [f"t{number}" for number in range(5)] and rest["next-page-token"] is None
    assert server.ask("GET", "/v1/namespaces/pages/tables", pageSize="0").error == "BadRequestException"
    assert server.ask("GET", "/v1/namespaces/pages/tables", pageToken="é").error == "BadRequestException"


def test_a_staged_table_is_there_once_it_is_committed(server: RestServer, client: Catalog, name: str) -> None:
    namespace, table = name.split(".")
    staged = server.ask(
        "POST", f"/v1/namespaces/{namespace}/tables", {"name": table, "schema": SCHEMA, "stage-create": True}
    )
    assert staged.status == 200 and "metadata-location" not in staged.body
    assert server.ask("HEAD", path(name)).status == 404
    with client.create_table_transaction(name, ROWS.schema) as change:
        change.append(ROWS)
    assert client.load_table(name).scan().to_arrow().equals(ROWS)


def test_a_table_is_unregistered_and_registered_again(server: RestServer, hive: Catalog, name: str) -> None:
    hive.create_table(name, ROWS.schema).append(ROWS)
    told = server.ask("POST", f"{path(name)}/unregister").body
    assert not hive.table_exists(name)
    namespace, table = name.split(".")
    body = {"name": table, "metadata-location": told["metadata-location"]}
    assert server.ask("POST", f"/v1/namespaces/{namespace}/register", body).body["metadata"] == told["metadata"]
    assert hive.load_table(name).scan().to_arrow().equals(ROWS)
    assert server.ask("POST", f"/v1/namespaces/{namespace}/register", body).error == "AlreadyExistsException"
    assert server.ask("POST", f"/v1/namespaces/{namespace}/register", {**body, "overwrite": True}).status == 200


def test_a_request_with_a_key_is_done_once(server: RestServer, hive: Catalog, name: str) -> None:
    namespace, table = name.split(".")
    key = {"Idempotency-Key": "0190a5d2-9d4b-7c3e-8f21-0123456789ab"}
    body = {"name": table, "schema": SCHEMA}
    first = server.ask("POST", f"/v1/namespaces/{namespace}/tables", body, key)
    again = server.ask("POST", f"/v1/namespaces/{namespace}/tables", body, key)
    assert first.status == again.status == 200 and first.body == again.body
    other = server.ask("POST", f"/v1/namespaces/{namespace}/tables", {**body, "name": "x"}, key)
    assert (other.status, other.error) == (422, "UnprocessableEntityException")
    assert not hive.table_exists(f"{namespace}.x")
    wrong = server.ask("POST", f"/v1/namespaces/{namespace}/tables", body, {"Idempotency-Key": str(uuid.uuid4())})
    assert wrong.error == "BadRequestException"


def test_a_commit_that_is_sent_again_to_another_server_is_answered_as_made(
    server: RestServer, hive: Catalog, name: str
) -> None:
    table = hive.create_table(name, ROWS.schema)
    change = table.transaction()
    change.append(ROWS)
    updates = table_updates(table.metadata, change.metadata)
    body = {"requirements": table_requirements(table.metadata, updates), "updates": updates}
    assert server.ask("POST", path(name), body).status == 200
    hive.load_table(name).append(ROWS)  # somebody else's, in between
    with served(hive) as other:
        again = other.ask("POST", path(name), body, {"Idempotency-Key": new_key()})
        assert again.status == 200 and len(again.body["metadata"]["snapshots"]) == 2
        updates[0]["snapshot"]["manifest-list"] += ".other"  # a client's next attempt, of the same id
        assert other.ask("POST", path(name), body).status == 409
        made = table_updates(None, hive.load_table(name).metadata)
        new = {"requirements": [{"type": "assert-create"}], "updates": made}
        assert other.ask("POST", path(name), new).status == 200
        made[0]["uuid"] = str(uuid.uuid4())
        assert other.ask("POST", path(name), new).status == 409
    assert len(hive.load_table(name).snapshots()) == 2


def test_limits_of_size_and_place(hive: Catalog, name: str, metastore: Any) -> None:
    settings = RestSettings(limits=Limits(body_bytes=1000), allowed_locations=(f"{metastore.warehouse}/door.db",))
    with served(hive, settings) as small:
        assert small.ask("POST", "/v1/namespaces", b" " * 1001).status == 413
        table = {"name": name.split(".")[1], "schema": SCHEMA}
        elsewhere = small.ask("POST", "/v1/namespaces/door/tables", {**table, "location": "/tmp/elsewhere"})
        assert (elsewhere.status, elsewhere.error) == (403, "ForbiddenException")
        assert small.ask("POST", "/v1/namespaces/door/tables", table).status == 200
        for update in (
            {"action": "set-location", "location": "/tmp/elsewhere"},
            {"action": "set-properties", "updates": {"write.data.path": "/tmp/elsewhere"}},
        ):
            assert small.ask("POST", path(name), {"updates": [update]}).status == 403
        body = {"name": "x", "metadata-location": "/tmp/x.metadata.json"}
        assert small.ask("POST", "/v1/namespaces/door/register", body).status == 403


def test_the_doctor_looks_at_a_rest_catalog(client: Catalog) -> None:
    from hms_iceberg.maintenance.doctor import examine_surroundings

    said = {each.subject: each for each in examine_surroundings(client)}
    assert str(said["metastore"].state) == "good" and "REST catalog" in said["metastore"].said


def test_commands_care_for_a_table_through_the_server(server: RestServer, hive: Catalog, name: str) -> None:
    from hms_iceberg.cli.main import cli

    table = hive.create_table(name, ROWS.schema, properties={"write.delete.mode": "merge-on-read"})
    for _ in range(3):
        table.append(ROWS)
    table.delete("id = 2")

    def said(*words: str) -> str:
        result = CliRunner().invoke(cli, ["--uri", server.url, *words])
        assert result.exit_code == 0, (words, result.output, result.exception)
        return result.output

    assert f"{name}: ok" in said("check", name)
    said("tag", "create", name, "before")
    assert "into 1" in said("rewrite-data-files", name)
    said("rewrite-manifests", name)
    said("compute-table-stats", name)
    assert "1 table looked at" in said("maintain", "--once", "--table", name)
    assert "before" in said("list-refs", name)
    said("expire-snapshots", name)
    said("rollback", name, "before")
    assert f"{name}: ok" in said("check", name)
    table.refresh()
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 1, 1, 3, 3, 3]
    assert len(list(table.scan().plan_files())) == 3
    said("drop", "table", name, "--purge")
    assert not hive.table_exists(name)


def test_a_server_that_is_gone_is_told(client: Catalog) -> None:
    from hms_iceberg.errors import MetastoreUnavailableError

    with pytest.raises(MetastoreUnavailableError, match="cannot be reached"):
        load_catalog("gone", uri="http://127.0.0.1:9", **{"rest.attempts": "1"})


def test_views_are_made_changed_and_dropped(server: RestServer, client: Catalog, hive: Catalog) -> None:
    from hms_iceberg.view import ViewVersion

    client.create_view("door.v", ROWS.schema, ViewVersion.of_sql({"spark": "select 1"}, ("door",)))
    view = client.create_or_replace_view("door.v", ROWS.schema, ViewVersion.of_sql({"spark": "select 2"}, ("door",)))
    assert hive.load_view("door.v").metadata == view.metadata
    assert server.ask("GET", "/v1/namespaces/door/views").body["identifiers"][0]["name"] == "v"
    assert server.ask("GET", "/v1/namespaces/door/tables/v").error == "NoSuchTableException"
    bad = {"requirements": [{"type": "assert-view-uuid", "uuid": "x"}], "updates": []}
    assert server.ask("POST", "/v1/namespaces/door/views/v", bad).status == 409
    client.rename_view("door.v", "door.w")
    location = client.load_view("door.w").metadata_location
    assert server.ask("GET", "/v1/namespaces/door/views/v").error == "NoSuchViewException"
    assert json.dumps(server.ask("GET", "/v1/namespaces/door/views/w").body["metadata-location"]) == json.dumps(
        location
    )
    client.drop_view("door.w")
    assert not hive.view_exists("door.w")
