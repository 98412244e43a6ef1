"""Tables of a catalog that is folders, behind a policy."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from hms_iceberg.catalog import load_catalog
from hms_iceberg.rest import Limits, RestSettings
from hms_iceberg.rest.access import Caller, Right
from hms_iceberg.rest.security.logins import StaticTokens
from hms_iceberg.rest.security.policy import Policy, PolicyRule
from tests.support.rest_server import served

TOKEN = "a-token-of-a-writer"


def test_a_table_that_is_a_folder_is_changed_and_purged_under_a_policy(tmp_path: Path) -> None:
    rows = pa.table({"id": pa.array([1], pa.int64())})
    rule = Policy((PolicyRule(Right.MANAGE, ("writer",), namespaces=("db",)),))
    with load_catalog("folders", type="hadoop", warehouse=str(tmp_path)) as catalog:
        catalog.create_namespace("db")
        table = catalog.create_table("db.t", rows.schema)
        table.append(rows)
        with served(catalog, login=StaticTokens.of({TOKEN: Caller("writer")}), rule=rule) as server:
            where, header = "/v1/namespaces/db/tables/t", {"Authorization": f"Bearer {TOKEN}"}
            for number in range(2):
                update = {"action": "set-properties", "updates": {"a": str(number)}}
                assert server.ask("POST", where, {"updates": [update]}, header).status == 200
            assert catalog.load_table("db.t").properties["a"] == "1"
            assert server.ask("DELETE", f"{where}?purgeRequested=true", headers=header).status == 204
        assert not catalog.table_exists("db.t") and not list(tmp_path.rglob("*.parquet"))


def test_a_table_made_anew_in_its_folder_is_told_as_that(tmp_path: Path) -> None:
    where, schema = "/v1/namespaces/db/tables/t", pa.schema([("id", pa.int64())])
    with load_catalog("folders", type="hadoop", warehouse=str(tmp_path)) as catalog, served(catalog) as server:
        catalog.create_namespace("db")
        catalog.create_table("db.t", schema)
        first = server.ask("GET", where)
        assert server.ask("GET", where, headers={"If-None-Match": first.headers["ETag"]}).status == 304
        catalog.drop_table("db.t", purge_requested=True)
        table = catalog.create_table("db.t", schema)
        second = server.ask("GET", where, headers={"If-None-Match": first.headers["ETag"]})
        assert second.status == 200 and first.body["metadata-location"] == second.body["metadata-location"]
        assert second.body["metadata"]["table-uuid"] == str(table.metadata.table_uuid)
        update = {"action": "set-properties", "updates": {"a": "1"}}
        requirement = {"type": "assert-table-uuid", "uuid": first.body["metadata"]["table-uuid"]}
        assert server.ask("POST", where, {"requirements": [requirement], "updates": [update]}).status == 409
        assert server.ask("POST", where, {"updates": [update]}).status == 200
        assert catalog.load_table("db.t").metadata.table_uuid == table.metadata.table_uuid


def test_a_body_of_too_many_values_is_refused_before_they_are_made(tmp_path: Path) -> None:
    settings = RestSettings(limits=Limits(body_values=1000))
    with (
        load_catalog("folders", type="hadoop", warehouse=str(tmp_path)) as catalog,
        served(catalog, settings) as server,
    ):
        for body in (b"[" + b"[]," * 600 + b"1]", b"[" * 1001, b'{"namespace": ["db"], "x": [' + b"{}," * 500 + b"1]}"):
            reply = server.ask("POST", "/v1/namespaces", body)
            assert reply.status == 413 and "body_values" in reply.body["error"]["message"]
        assert server.ask("POST", "/v1/namespaces", {"namespace": ["db"]}).status == 200
