"""What a policy forbids is not done in a roundabout way either."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hms_iceberg.catalog import Catalog, load_catalog
from hms_iceberg.rest.access import Caller, Right
from hms_iceberg.rest.security.logins import StaticTokens
from hms_iceberg.rest.security.policy import Policy, PolicyRule
from hms_iceberg.spec.metadata.metadata_json import metadata_to_dict
from hms_iceberg.view import ViewVersion
from tests.support.rest_server import Reply, RestServer, served

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "city": ["Bonn", None, ""]})
SCHEMA = {
    "type": "struct",
    "schema-id": 0,
    "fields": [{"id": 1, "name": "id", "required": False, "type": "long"}],
}
MALLORY, BOSS = "a-token-of-mallory", "a-token-of-the-boss"


@pytest.fixture(scope="module")
def hive(metastore: Any) -> Iterator[Catalog]:
    with load_catalog("behind", uri=metastore.uri) as catalog:
        catalog.create_namespace("guarded")
        catalog.create_namespace("guarded_mine")
        yield catalog


@pytest.fixture
def name() -> str:
    return f"guarded.t_{uuid.uuid4().hex[:8]}"


def path(name: str) -> str:
    namespace, table = name.split(".")
    return f"/v1/namespaces/{namespace}/tables/{table}"


def test_a_policy_is_kept_at_every_endpoint(hive: Catalog, name: str) -> None:
    from hms_iceberg.rest.routes import ROUTES

    hive.create_table(name, ROWS.schema)
    namespace, table = name.split(".")
    tokens = {"reads-other-things-only": Caller("reader"), "may-read-this-table-only": Caller("one")}
    rules = (
        PolicyRule(Right.MANAGE, ("reader",), namespaces=("other",)),
        PolicyRule(Right.READ, ("one",), namespaces=(namespace,), tables=(table,)),
    )
    with served(hive, login=StaticTokens.of(tokens), rule=Policy(rules)) as guarded:
        bodies = {
            "tables": {"name": table, "schema": SCHEMA},
            "views": {"name": table, "schema": SCHEMA, "view-version": {}},
            "namespaces": {"namespace": [namespace]},
            "register": {"name": "x", "metadata-location": "/x"},
            "register-view": {"name": "x", "metadata-location": "/x"},
            "commit": {"table-changes": [{"identifier": {"namespace": [namespace], "name": table}, "updates": []}]},
            "rename": {key: {"namespace": [namespace], "name": table} for key in ("source", "destination")},
        }
        for route in ROUTES:
            where = route.path.format(namespace=namespace, table=table, view=table, **{"plan-id": "x"})
            body = bodies.get(where.rsplit("/", 1)[-1], {}) if route.method == "POST" else None
            assert route.is_open or guarded.ask(route.method, where, body).status == 401
            header = {"Authorization": "Bearer reads-other-things-only"}
            answer = guarded.ask(route.method, where, body, header)
            if route.path in ("/v1/config", "/health"):
                assert answer.status == 200
            elif (route.method, route.path) == ("GET", "/v1/namespaces"):
                assert answer.body["namespaces"] == []
            else:
                assert answer.status == 403, (route, answer)
        mine = {"Authorization": "Bearer may-read-this-table-only"}
        assert guarded.ask("GET", path(name), headers=mine).status == 200
        assert guarded.ask("POST", path(name), {"updates": []}, mine).status == 403
        listed = guarded.ask("GET", f"/v1/namespaces/{namespace}/tables", headers=mine).body["identifiers"]
        assert [each["name"] for each in listed] == [table]
    assert hive.table_exists(name)


def guarding(catalog: Catalog) -> Any:
    """A new server on which Mallory may do everything in one namespace, and read all others."""
    rules = (
        PolicyRule(Right.MANAGE, ("mallory",), namespaces=("guarded_mine",)),
        PolicyRule(Right.READ, ("mallory",), namespaces=("guarded",)),
        PolicyRule(Right.MANAGE, ("boss",)),
    )
    return served(
        catalog, login=StaticTokens.of({MALLORY: Caller("mallory"), BOSS: Caller("boss")}), rule=Policy(rules)
    )


def asked(server: RestServer, method: str, where: str, body: Any = None, who: str = MALLORY, **query: str) -> Reply:
    return server.ask(method, where, body, {"Authorization": f"Bearer {who}"}, **query)


def local(location: str) -> Path:
    return Path(urlsplit(location).path)


def files_of(catalog: Catalog, name: str) -> set[Path]:
    return {each for each in local(catalog.load_table(name).location()).rglob("*") if each.is_file()}


def test_nobody_gets_at_the_files_of_a_table_by_another_one_at_the_same_place(hive: Catalog, name: str) -> None:
    secret = hive.create_table(name, ROWS.schema)
    secret.append(ROWS)
    location, mine, mallory = secret.location(), "guarded_mine", MALLORY
    with guarding(hive) as guarded:

        def ask(who: str, way: str, body: dict[str, Any]) -> Any:
            return asked(guarded, "POST", f"/v1/namespaces/{mine}/{way}", body, who)

        table = {"name": "t", "schema": SCHEMA}
        for place in (location, f"{location}/", f"{location}/data", location.rpartition("/")[0]):
            for body in ({"location": place}, {"properties": {"write.data.path": place}}):
                refused = ask(mallory, "tables", {**table, **body})
                assert (refused.status, refused.error) == (403, "ForbiddenException"), (place, refused)
        refused = ask(mallory, "register", {"name": "t", "metadata-location": secret.metadata_location})
        assert refused.status == 403 and not hive.table_exists(f"{mine}.t")
        assert ask(mallory, "tables", table).status == 200
        snapshot = metadata_to_dict(secret.metadata)["snapshots"][0]
        for update in (
            {"action": "set-location", "location": location},
            {"action": "set-properties", "updates": {"write.metadata.path": f"{location}/metadata"}},
            {"action": "add-snapshot", "snapshot": snapshot},
        ):
            assert ask(mallory, "tables/t", {"updates": [update]}).status == 403, update
        assert (
            ask(mallory, "tables/t", {"updates": [{"action": "set-properties", "updates": {"a": "b"}}]}).status == 200
        )
        assert ask(BOSS, "tables", {**table, "name": "u", "location": f"{location}/u"}).status == 200
    assert hive.load_table(name).metadata == secret.metadata


@pytest.mark.parametrize("way", ["location", "write.data.path", "write.metadata.path", "metadata-log", "manifest-list"])
def test_a_metadata_file_that_its_writer_changed_opens_nothing_and_deletes_nothing(
    hive: Catalog, name: str, way: str
) -> None:
    secret = hive.create_table(name, ROWS.schema)
    secret.append(ROWS)
    mine = name.replace("guarded.", "guarded_mine.")
    with guarding(hive) as guarded:
        body = {"name": mine.split(".")[1], "schema": SCHEMA}
        assert asked(guarded, "POST", "/v1/namespaces/guarded_mine/tables", body).status == 200
        limits = {"write.metadata.delete-after-commit.enabled": "true", "write.metadata.previous-versions-max": "1"}
        limit = {"updates": [{"action": "set-properties", "updates": limits}]}
        assert asked(guarded, "POST", path(mine), limit).status == 200
    before, files = secret.metadata_location, files_of(hive, name)
    own = local(hive.load_table(mine).metadata_location)
    changed = json.loads(own.read_text())
    if way == "location":
        changed["location"] = secret.location()
    elif way == "metadata-log":
        changed["metadata-log"] = [{"metadata-file": before, "timestamp-ms": 1}] * 2
    elif way == "manifest-list":
        changed["snapshots"] = metadata_to_dict(secret.metadata)["snapshots"]
        changed["last-sequence-number"] = 1
        changed["last-updated-ms"] = secret.metadata.last_updated_ms
    else:
        changed["properties"][way] = secret.location()
    own.write_text(json.dumps(changed))
    with guarding(hive) as guarded:  # which has read nothing of it yet
        for number in range(3):
            update = {"action": "set-properties", "updates": {"a": str(number)}}
            refused = asked(guarded, "POST", path(mine), {"updates": [update]})
            assert (refused.status, refused.error) == (403, "ForbiddenException"), refused
        refused = asked(guarded, "DELETE", path(mine), purgeRequested="true")
        assert (refused.status, refused.error) == (403, "ForbiddenException"), refused
        body = {"name": "registered", "metadata-location": str(own)}
        assert asked(guarded, "POST", "/v1/namespaces/guarded_mine/register", body).status == 403
        assert files_of(hive, name) == files and hive.load_table(name).metadata_location == before
        assert hive.load_table(name).scan().to_arrow().equals(ROWS)
        assert asked(guarded, "DELETE", path(mine)).status == 204


def test_a_purge_leaves_what_is_in_none_of_the_tables_folders(hive: Catalog, name: str, tmp_path: Path) -> None:
    mine, elsewhere = name.replace("guarded.", "guarded_mine."), tmp_path / "rows.parquet"
    pq.write_table(ROWS, elsewhere)
    table = hive.create_table(mine, ROWS.schema)
    table.append(ROWS)
    table.add_files([str(elsewhere)])
    own = files_of(hive, mine)
    with guarding(hive) as guarded:
        assert asked(guarded, "DELETE", path(mine), purgeRequested="true").status == 204
    assert elsewhere.exists() and not [each for each in own if each.exists()]


def test_a_view_is_not_read_by_another_one_of_its_file_nor_put_into_folders_of_others(hive: Catalog, name: str) -> None:
    secret = hive.create_table(name, ROWS.schema)
    view = hive.create_view(f"{name}_v", ROWS.schema, ViewVersion.of_sql({"spark": "select 1"}, ("guarded",)))
    version = {
        "version-id": 1,
        "timestamp-ms": 1,
        "schema-id": 0,
        "summary": {},
        "default-namespace": ["guarded_mine"],
        "representations": [{"type": "sql", "sql": "select 1", "dialect": "spark"}],
    }
    new = {"name": "v", "schema": SCHEMA, "view-version": version}
    with guarding(hive) as guarded:
        views = "/v1/namespaces/guarded_mine"
        assert asked(guarded, "POST", f"{views}/views", {**new, "location": secret.location()}).status == 403
        body = {"name": "v", "metadata-location": view.metadata_location}
        assert asked(guarded, "POST", f"{views}/register-view", body).status == 403
        assert asked(guarded, "POST", f"{views}/views", new).status == 200
        move = {"updates": [{"action": "set-location", "location": f"{secret.location()}/metadata"}]}
        assert asked(guarded, "POST", f"{views}/views/v", move).status == 403
        assert asked(guarded, "DELETE", f"{views}/views/v").status == 204


def test_a_name_that_the_metastore_would_take_for_another_is_refused(hive: Catalog, name: str) -> None:
    hive.create_table(name, ROWS.schema)
    namespace, table = name.split(".")
    rules = (PolicyRule(Right.MANAGE, ("mallory",), namespaces=("[!g]*",)),)  # all but this one
    with served(hive, login=StaticTokens.of({MALLORY: Caller("mallory")}), rule=Policy(rules)) as guarded:
        for other in (f"%20{namespace}", f"%01{namespace}", f"%09{namespace}", f"@hive%23{namespace}"):
            for method in ("GET", "DELETE"):
                assert asked(guarded, method, f"/v1/namespaces/{other}/tables/{table}").status == 400
            assert asked(guarded, "GET", f"/v1/namespaces/{other}/tables").status == 400
    assert hive.table_exists(name)
