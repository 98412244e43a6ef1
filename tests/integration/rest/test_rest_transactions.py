"""Commits to several tables through the server, by our client and by hand."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from hms_iceberg.catalog import Catalog, load_catalog
from hms_iceberg.spec.changes.differences import table_requirements, table_updates
from tests.support.rest_server import RestServer, served

SCHEMA = pa.schema([pa.field("id", pa.int64()), pa.field("amount", pa.int64())])
PATH = "/v1/transactions/commit"


def rows(*pairs: tuple[int, int]) -> pa.Table:
    return pa.table({"id": [each[0] for each in pairs], "amount": [each[1] for each in pairs]}, SCHEMA)


@pytest.fixture(scope="module")
def hive(metastore: Any) -> Iterator[Catalog]:
    with load_catalog("behind", uri=metastore.uri) as catalog:
        catalog.create_namespace("bank")
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
def names(hive: Catalog) -> list[str]:
    found = [f"bank.{each}_{uuid.uuid4().hex[:8]}" for each in "ab"]
    for name in found:
        hive.create_table(name, SCHEMA).append(rows((1, 100)))
    return found


def amounts(catalog: Catalog, names: list[str]) -> list[int]:
    return [sum(each.scan().to_arrow()["amount"].to_pylist()) for each in catalog.load_tables(names)]


def changes(hive: Catalog, name: str, key: str = "changed") -> dict[str, Any]:
    """The part of a request that sets a property."""
    table = hive.load_table(name)
    transaction = table.transaction()
    transaction.set_properties({key: "yes"})
    updates = table_updates(table.metadata, transaction.metadata)
    namespace, short = name.split(".")
    return {
        "identifier": {"namespace": [namespace], "name": short},
        "requirements": table_requirements(table.metadata, updates),
        "updates": updates,
    }


def test_the_server_tells_that_it_commits_to_several_tables(server: RestServer) -> None:
    assert f"POST {PATH.replace('/v1/', '/v1/{prefix}/')}" in server.ask("GET", "/v1/config").body["endpoints"]


def test_our_client_commits_to_several_tables_through_the_server(
    client: Catalog, hive: Catalog, names: list[str]
) -> None:
    with client.transaction() as transaction:
        transaction.table(names[0]).append(rows((2, -30)))
        transaction.table(names[1]).update({"amount": 130}, "id = 1")
    assert amounts(hive, names) == amounts(client, names) == [70, 130]
    transaction = client.transaction()
    first, second = (transaction.table(name) for name in names)
    first.append(rows((3, -10)))
    second.append(rows((3, 10)))
    hive.load_table(names[1]).append(rows((4, 5)))
    made = transaction.commit_transaction()
    assert amounts(hive, names) == [60, 145]
    assert [each.metadata_location for each in made.values()] == [
        hive.load_table(each).metadata_location for each in names
    ]


def test_one_failed_requirement_stops_all(server: RestServer, hive: Catalog, names: list[str]) -> None:
    asked = [changes(hive, name) for name in names]
    asked[1]["requirements"].append({"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 1})
    assert server.ask("POST", PATH, {"table-changes": asked}).status == 409
    assert not any("changed" in hive.load_table(name).properties for name in names)
    asked[1]["requirements"].pop()
    answer = server.ask("POST", PATH, {"table-changes": asked})
    assert (answer.status, answer.body) == (204, None)
    assert all(hive.load_table(name).properties["changed"] == "yes" for name in names)


def test_bad_transactions_are_refused(server: RestServer, hive: Catalog, names: list[str]) -> None:
    one, other = (changes(hive, name) for name in names)
    assert server.ask("POST", PATH, {"table-changes": []}).status == 400
    assert server.ask("POST", PATH, {"table-changes": [one, one]}).status == 400
    assert server.ask("POST", PATH, {"table-changes": [one, {**other, "identifier": None}]}).status == 400
    gone = {**other, "identifier": {"namespace": ["bank"], "name": "not_there"}}
    assert server.ask("POST", PATH, {"table-changes": [one, gone]}).status == 404
    created = {**other, "requirements": [{"type": "assert-create"}]}
    assert server.ask("POST", PATH, {"table-changes": [one, created]}).status in (400, 406, 501)
    assert "changed" not in hive.load_table(names[0]).properties
    assert server.ask("POST", PATH, {"table-changes": [one]}).status == 204
    assert hive.load_table(names[0]).properties["changed"] == "yes"
