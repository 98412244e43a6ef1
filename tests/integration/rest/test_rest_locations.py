"""Whoever names a place, by whatever route and spelling, names none of somebody else's: no file of his is read, written
or deleted, and no key for it is given."""

from __future__ import annotations

import hashlib
import json
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hms_iceberg.catalog import Catalog, load_catalog
from hms_iceberg.rest import RestSettings
from hms_iceberg.rest.access import Caller, Right
from hms_iceberg.rest.routes import ROUTES
from hms_iceberg.rest.security.logins import StaticTokens
from hms_iceberg.rest.security.policy import Policy, PolicyRule
from hms_iceberg.spec.metadata.metadata_json import metadata_to_dict
from hms_iceberg.view import ViewVersion
from tests.support.hdfs_path import local_path
from tests.support.hive_warehouse import HiveWarehouse, write_files
from tests.support.rest_server import Reply, RestServer, served

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64())})
SCHEMA = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "id", "required": False, "type": "long"}]}
VERSION = {
    "version-id": 1,
    "timestamp-ms": 1,
    "schema-id": 0,
    "summary": {},
    "default-namespace": ["places_mine"],
    "representations": [{"type": "sql", "sql": "select 1", "dialect": "spark"}],
}
FOLDERS = ("write.data.path", "write.metadata.path", "write.object-storage.path", "write.folder-storage.path")
MINE, OTHER = "/v1/namespaces/places_mine", "/v1/namespaces/places_secret"
# One manages a namespace and reads a table of another, one writes a table, one reads, and one may nothing.
RULES = (
    PolicyRule(Right.MANAGE, ("owner",), namespaces=("places_mine", "places_new*")),
    PolicyRule(Right.READ, ("owner", "reader"), namespaces=("places_secret",), tables=("pub*",)),
    PolicyRule(Right.WRITE, ("writer",), namespaces=("places_mine",), tables=("t", "t2", "v")),
    PolicyRule(Right.MANAGE, ("boss",)),
)
CALLERS = ("owner", "writer", "reader", "nobody", "boss")


@dataclass(frozen=True)
class Attack:
    """A request that names a place."""

    method: str
    path: str
    body: Any


@dataclass(frozen=True)
class Lake:
    """A metastore, a server before it, and the files of one whose tables are attacked."""

    hive: Catalog
    server: RestServer
    warehouse: Path

    @property
    def victim(self) -> str:
        """Folder of a table that others may read only."""
        return f"file:{self.warehouse}/places_secret.db/pub1"

    def ask(self, who: str, method: str, path: str, body: Any = None) -> Reply:
        return self.server.ask(method, path, body, {"Authorization": f"Bearer the-token-of-{who}"})

    def inventory(self) -> dict[str, str]:
        """All files outside of the attackers' own namespaces, with their digests."""
        found = (each for each in self.warehouse.rglob("*") if each.is_file() and "places_mine.db" not in each.parts)
        files = {str(each): hashlib.sha256(each.read_bytes()).hexdigest() for each in found}
        return {path: digest for path, digest in files.items() if "places_" in path or "elsewhere" in path}


@pytest.fixture(scope="module")
def lake(metastore: Any) -> Iterator[Lake]:
    with load_catalog("behind", uri=metastore.uri) as hive:
        for namespace in ("places_secret", "places_mine"):
            hive.create_namespace(namespace)
        pub = hive.create_table("places_secret.pub1", ROWS.schema)
        pub.append(ROWS)
        hive.create_view("places_secret.pubv", ROWS.schema, ViewVersion.of_sql({"spark": "select 1"}, ("a",)))
        old = HiveWarehouse(hive, "places_secret")
        write_files(str(old.create("plain", "id bigint").location), ROWS)
        parts = local_path(hive.load_namespace_properties("places_mine")["location"]).parent / "places_parts"
        old.create("parted", "id bigint", "day int")
        old.add_partition("parted", ["1"], ROWS, location=f"file:{parts}/first")
        for mine in ("t", "t2"):
            hive.create_table(f"places_mine.{mine}", ROWS.schema).append(ROWS)
        hive.create_view("places_mine.v", ROWS.schema, ViewVersion.of_sql({"spark": "select 1"}, ("a",)))
        warehouse = local_path(hive.load_namespace_properties("places_mine")["location"]).parent
        (warehouse / "places_link").symlink_to(warehouse / "places_secret.db")
        (warehouse.parent / "elsewhere").mkdir(exist_ok=True)
        login = StaticTokens.of({f"the-token-of-{each}": Caller(each) for each in CALLERS})
        with served(hive, login=login, rule=Policy(RULES)) as server:
            yield Lake(hive, server, warehouse)


def spellings(lake: Lake, folder: str = "places_secret.db/pub1") -> list[str]:
    """The folder of somebody else in many spellings, folders around and in it, and places that are nobody's."""
    root = str(lake.warehouse)
    parent, _, name = folder.rpartition("/")
    dotted = [
        f"./{folder}",
        f"{parent}/./{name}",
        f"{folder}/.",
        f"places_mine.db/../{folder}",
        f"places_mine.db/t/../../{folder}",
        f"{parent}//{name}",
        f"%2e/{folder}",
        f"places_mine.db/%2e%2e/{folder}",
        f"places_mine.db/%252e%252e/{folder}",
        f"places_mine.db/..%2f{folder}",
        f"places_mine.db\\..\\{folder}",
        f"{folder}\n",
        f"{folder}\x00",
        f"{folder}\u202e",
        f"places_link/{name}",
    ]
    plain = [folder, f"{folder}/", f"{folder}/data", f"{folder}/metadata", parent, "places_secret.db/new", ""]
    schemes = [f"{scheme}{root}/{folder}" for scheme in ("", "file://", "FILE:", "file://host")]
    elsewhere = [
        f"{lake.warehouse.parent}/elsewhere/x",
        "/etc",
        "../../../outside",
        "hdfs://10.255.255.1:9/x",
        f"hdfs://10.255.255.1:9{root}/{folder}",
        f"hdfs://10.255.255.1:9{root}/places_mine.db/t/metadata",
        "s3://bucket/x",
        "http://127.0.0.1:1/x",
    ]
    return [*(f"file:{root}/{each}" for each in (*plain, *dotted)), *schemes, *elsewhere]


def together(namespace: str, name: str, update: dict[str, Any]) -> Iterator[Attack]:
    """A change of a table in a transaction alone, and beside one of a table that the caller may change."""
    of_own = {"action": "set-properties", "updates": {"a": "b"}}
    own, other = (
        {"identifier": {"namespace": [each[0]], "name": each[1]}, "updates": [each[2]]}
        for each in (("places_mine", "t2", of_own), (namespace, name, update))
    )
    for changes in ([other], [own, other], [other, own]):
        yield Attack("POST", "/v1/transactions/commit", {"table-changes": changes})


def attacks(lake: Lake, place: str) -> Iterator[Attack]:
    """Every route that writes or names a location, with a place of somebody else's in each member that may hold one."""
    for staged in (False, True):
        table = {"name": "evil", "schema": SCHEMA, "stage-create": staged}
        yield Attack("POST", f"{MINE}/tables", {**table, "location": place})
        for key in FOLDERS:
            yield Attack("POST", f"{MINE}/tables", {**table, "properties": {key: place}})
    for way in ("register", "register-view"):
        yield Attack("POST", f"{MINE}/{way}", {"name": "evil", "metadata-location": place})
        yield Attack("POST", f"{MINE}/{way}", {"name": "evil", "metadata-location": f"{place}/x.metadata.json"})
    creates = [
        {"action": "assign-uuid", "uuid": "5f3a7f8e-0000-4000-8000-000000000001"},
        {"action": "upgrade-format-version", "format-version": 2},
        {"action": "add-schema", "schema": SCHEMA},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        {"action": "set-location", "location": place},
    ]
    yield Attack("POST", f"{MINE}/tables/evil", {"requirements": [{"type": "assert-create"}], "updates": creates})
    current = lake.hive.load_table("places_mine.t").metadata.current_snapshot_id
    snapshot = {
        "snapshot-id": 77,
        "sequence-number": 2,
        "timestamp-ms": int(time.time() * 1000),
        "manifest-list": place,
        "summary": {"operation": "append"},
        "schema-id": 0,
    }
    statistics = {
        "snapshot-id": current,
        "statistics-path": place,
        "file-size-in-bytes": 1,
        "file-footer-size-in-bytes": 1,
        "blob-metadata": [],
    }
    updates: list[dict[str, Any]] = [
        {"action": "set-location", "location": place},
        *({"action": "set-properties", "updates": {key: place}} for key in FOLDERS),
        {"action": "add-snapshot", "snapshot": snapshot},
        {"action": "set-statistics", "statistics": statistics, "snapshot-id": current},
    ]
    for update in updates:
        yield Attack("POST", f"{MINE}/tables/t", {"updates": [update]})
        yield from together("places_mine", "t", update)
    for update in updates[: 1 + len(FOLDERS)]:
        yield Attack("POST", f"{MINE}/views/v", {"updates": [update]})
    view = {"name": "evil", "schema": SCHEMA, "view-version": VERSION}
    yield Attack("POST", f"{MINE}/views", {**view, "location": place})
    for key in FOLDERS:
        yield Attack("POST", f"{MINE}/views", {**view, "properties": {key: place}})
    yield Attack("POST", "/v1/namespaces", {"namespace": ["places_new"], "properties": {"location": place}})
    yield Attack("POST", f"{MINE}/properties", {"updates": {"location": place}})


def without_location(lake: Lake) -> Iterator[Attack]:
    """Routes that name no location, and would reach what is somebody else's."""
    for kind, own, foreign in (("tables", "t", "pub1"), ("views", "v", "pubv")):
        for source, target in (
            (("places_mine", own), ("places_secret", "evil")),
            (("places_secret", foreign), ("places_mine", "evil")),
            (("places_mine", own), ("places_secret", foreign)),
        ):
            names = {
                key: {"namespace": [each[0]], "name": each[1]}
                for key, each in (("source", source), ("destination", target))
            }
            yield Attack("POST", f"/v1/{kind}/rename", names)
        yield Attack(
            "POST", f"{OTHER}/{kind}/{foreign}", {"updates": [{"action": "set-properties", "updates": {"a": "b"}}]}
        )
        yield Attack("DELETE", f"{OTHER}/{kind}/{foreign}?purgeRequested=true", None)
    yield from together("places_secret", "pub1", {"action": "set-properties", "updates": {"a": "b"}})
    yield Attack("POST", f"{OTHER}/tables/pub1/unregister", {})
    yield Attack("DELETE", OTHER, None)
    yield Attack("POST", f"{OTHER}/properties", {"updates": {"a": "b"}})
    yield Attack("POST", f"{OTHER}/tables", {"name": "evil", "schema": SCHEMA})
    yield Attack("POST", f"{OTHER}/views", {"name": "evil", "schema": SCHEMA, "view-version": VERSION})
    for way in ("register", "register-view"):
        yield Attack("POST", f"{OTHER}/{way}", {"name": "evil", "metadata-location": f"{lake.victim}/x"})


# Routes that change nothing, and name no place.
_HARMLESS = ("/metrics", "/plan", "/tasks", "/sign", "/credentials", "/plan/{plan-id}", "/health", "/config")


def test_every_route_that_changes_something_is_attacked(lake: Lake) -> None:
    changing = {
        (each.method, each.path)
        for each in ROUTES
        if each.method in ("POST", "DELETE") and not each.path.endswith(("/metrics", "/plan", "/sign", "{plan-id}"))
        if not each.path.endswith("{table}/tasks")
    }
    met = set()
    for attack in (*attacks(lake, lake.victim), *without_location(lake)):
        path = attack.path.partition("?")[0]
        for namespace in ("places_mine", "places_secret"):
            path = path.replace(f"/namespaces/{namespace}", "/namespaces/{namespace}")
        if path.count("/") > 4 or path.rsplit("/", 2)[1] in ("tables", "views"):
            head, kind, rest = path.partition("/tables/" if "/tables/" in path else "/views/")
            if head.endswith("{namespace}"):
                _, slash, tail = rest.partition("/")
                path = f"{head}{kind}{{{kind.strip('/')[:-1]}}}{slash}{tail}"
        met.add((attack.method, path))
    assert changing <= met, changing - met


@pytest.mark.parametrize("who", ["owner", "writer", "reader", "nobody"])
def test_no_route_takes_a_place_of_somebody_else(lake: Lake, who: str) -> None:
    before = lake.inventory()
    assert any("pub1" in path for path in before) and any("plain" in path for path in before)
    namespaces = {each: lake.hive.load_namespace_properties(each) for each in ("places_mine", "places_secret")}
    tables = ("places_secret.pub1", "places_mine.t", "places_mine.t2")
    metadata = {each: lake.hive.load_table(each).metadata for each in tables}
    for place in (lake.victim, f"file:{lake.warehouse}/./places_secret.db/plain"):
        for attack in attacks(lake, place):
            reply = lake.ask(who, attack.method, attack.path, attack.body)
            assert (reply.status, reply.error) == (403, "ForbiddenException"), (attack, reply)
    for attack in without_location(lake):
        assert lake.ask(who, attack.method, attack.path, attack.body).status == 403, attack
    assert lake.inventory() == before
    assert not (lake.warehouse.parent / "elsewhere" / "x").exists()
    assert {each: lake.hive.load_table(each).metadata for each in tables} == metadata
    assert {each: lake.hive.load_namespace_properties(each) for each in namespaces} == namespaces
    assert not lake.hive.namespace_exists("places_new") and not lake.hive.table_exists("places_mine.evil")
    assert not lake.hive.view_exists("places_mine.evil")


def test_no_spelling_of_a_place_of_somebody_else_is_taken(lake: Lake) -> None:
    before = lake.inventory()
    view = {"name": "evil", "schema": SCHEMA, "view-version": VERSION}
    for place in spellings(lake):
        for path, body in (
            (f"{MINE}/tables", {"name": "evil", "schema": SCHEMA, "location": place}),
            (f"{MINE}/views", {**view, "properties": {"write.metadata.path": place}}),
            (f"{MINE}/register", {"name": "evil", "metadata-location": place}),
            (f"{MINE}/properties", {"updates": {"location": place}}),
        ):
            reply = lake.ask("owner", "POST", path, body)
            assert (reply.status, reply.error) == (403, "ForbiddenException"), (place, path, reply)
    assert lake.inventory() == before


def test_a_partition_that_is_elsewhere_is_its_tables_too(lake: Lake) -> None:
    before = lake.inventory()
    assert any("places_parts" in path for path in before)
    for folder in ("places_parts", "places_parts/first", "places_parts/first/x", "places_parts/./first"):
        for body in (
            {"location": f"file:{lake.warehouse}/{folder}"},
            {"properties": {FOLDERS[0]: f"{lake.warehouse}/{folder}"}},
        ):
            table = {"name": "evil", "schema": SCHEMA, **body}
            assert lake.ask("owner", "POST", f"{MINE}/tables", table).error == "ForbiddenException"
    table = {"name": "beside", "schema": SCHEMA, "location": f"file:{lake.warehouse}/places_parts2/t"}
    assert lake.ask("owner", "POST", f"{MINE}/tables", table).status == 200
    assert lake.ask("owner", "DELETE", f"{MINE}/tables/beside?purgeRequested=true").status == 204
    assert lake.inventory() == before


def test_places_of_ones_own_are_taken_in_any_plain_spelling(lake: Lake) -> None:
    root = lake.warehouse / "places_mine.db"
    for number, place in enumerate((f"{root}/a", f"file:{root}/b", f"file://{root}/c/", f"FILE:{root}/d", None)):
        table = {"name": f"own{number}", "schema": SCHEMA, **({} if place is None else {"location": place})}
        assert lake.ask("owner", "POST", f"{MINE}/tables", table).status == 200, place
        view = {"name": f"ownv{number}", "schema": SCHEMA, "view-version": VERSION, "location": f"{root}/v{number}"}
        assert lake.ask("owner", "POST", f"{MINE}/views", view).status == 200
        move = {"updates": [{"action": "set-properties", "updates": {"write.metadata.path": f"{root}/m{number}"}}]}
        assert lake.ask("owner", "POST", f"{MINE}/views/ownv{number}", move).status == 200
        assert lake.ask("owner", "POST", f"{MINE}/tables/own{number}", move).status == 200
        assert lake.ask("owner", "DELETE", f"{MINE}/tables/own{number}?purgeRequested=true").status == 204
        assert lake.ask("owner", "DELETE", f"{MINE}/views/ownv{number}").status == 204
    for properties in ({}, {"location": f"{lake.warehouse}/places_new_b.db"}):
        named = {"namespace": [f"places_new_{len(properties)}"], "properties": properties}
        assert lake.ask("owner", "POST", "/v1/namespaces", named).status == 200
        assert lake.ask("owner", "DELETE", f"/v1/namespaces/places_new_{len(properties)}").status == 204


def test_a_manifest_list_that_names_manifests_of_others_is_not_planned(lake: Lake) -> None:
    pub, mine = lake.hive.load_table("places_secret.pub1"), lake.hive.create_table("places_mine.lists", ROWS.schema)
    (snapshot,) = metadata_to_dict(pub.metadata)["snapshots"]
    copied = local_path(f"{mine.location()}/metadata/snap-copied.avro")
    copied.write_bytes(local_path(snapshot["manifest-list"]).read_bytes())
    added = {
        **snapshot,
        "manifest-list": f"{mine.location()}/metadata/snap-copied.avro",
        "timestamp-ms": int(time.time() * 1000),
    }
    ref = {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": snapshot["snapshot-id"]}
    updates = {"updates": [{"action": "add-snapshot", "snapshot": added}, ref]}
    before = lake.inventory()
    assert lake.ask("owner", "POST", f"{MINE}/tables/lists", updates).status == 200
    for body in ({}, {"start-snapshot-id": snapshot["snapshot-id"], "end-snapshot-id": snapshot["snapshot-id"]}):
        told = lake.ask("owner", "POST", f"{MINE}/tables/lists/plan", body)
        assert told.status == 403 or not told.body["file-scan-tasks"], told
    assert lake.ask("boss", "POST", f"{MINE}/tables/lists/plan", {}).status == 200
    assert lake.ask("owner", "DELETE", f"{MINE}/tables/lists?purgeRequested=true").status in (204, 403)
    assert lake.inventory() == before
    assert lake.hive.load_table("places_secret.pub1").scan().to_arrow().equals(ROWS)


def test_the_row_that_a_metastore_makes_at_another_place_is_taken_back(lake: Lake) -> None:
    before = lake.inventory()
    plain = lake.hive.metastore
    moved = lake.warehouse / "places_secret.db" / "moved"

    class Moving:
        """A metastore that has a rule of its own for where tables are, as Hive 4 with a translator has."""

        def __getattr__(self, name: str) -> Any:
            return getattr(plain, name)

        def load(self, identifier: Any) -> Any:
            import dataclasses

            return dataclasses.replace(plain.load(identifier), location=str(moved))

    catalog = Catalog("moving", Moving(), lake.hive.storage, dict(lake.hive.properties))
    login = StaticTokens.of({"the-token-of-owner": Caller("owner")})
    with served(catalog, login=login, rule=Policy(RULES)) as server:
        header = {"Authorization": "Bearer the-token-of-owner"}
        reply = server.ask("POST", f"{MINE}/tables", {"name": "moving", "schema": SCHEMA}, header)
        assert reply.error == "ForbiddenException"
    assert not lake.hive.table_exists("places_mine.moving") and lake.inventory() == before


def test_nobody_learns_by_registering_which_files_a_server_has(lake: Lake, tmp_path: Path) -> None:
    (tmp_path / "present").write_text("no metadata")
    (tmp_path / "present.json").write_text(json.dumps({"format-version": 2}))
    (tmp_path / "present.new").write_text(json.dumps({"format-version": 99}))
    with served(lake.hive) as open_server, served(lake.hive, RestSettings(allowed_locations=("/none",))) as narrow:
        for way in ("register", "register-view"):
            told = {
                (server.url, reply.status, reply.body["error"]["message"].replace(name, "x"))
                for server in (open_server, narrow)
                for name in ("present", "missing", "present.json", "present.new", "sub/missing")
                for reply in [
                    server.ask("POST", f"{MINE}/{way}", {"name": "x", "metadata-location": f"{tmp_path}/{name}"})
                ]
            }
            assert len(told) == 2 and {status for _, status, _ in told} == {403, 404}, told
            with socket.create_server(("127.0.0.1", 0)) as nobody:
                for kind in ("hdfs", "viewfs"):
                    place = f"{kind}://127.0.0.1:{nobody.getsockname()[1]}/x"
                    reply = open_server.ask("POST", f"{MINE}/{way}", {"name": "x", "metadata-location": place})
                    assert reply.error == "ForbiddenException"
                nobody.setblocking(False)
                with pytest.raises(BlockingIOError):  # nobody was connected to
                    nobody.accept()
