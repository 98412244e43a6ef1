"""Questions of a session with a transaction open, as the bridge's classes ask them, without a JVM."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pytest

from hms_iceberg.catalog import Catalog
from hms_iceberg.spark.bridge_service import BridgeService
from hms_iceberg.spark.questions import QUESTIONS
from tests.support.commit_operations import find_out_capability
from tests.support.killed_catalog import Killed, KilledAt

ALTER = "alter_table_with_environment_context"


class Session:
    """A session of Spark, as its questions tell."""

    def __init__(self, catalog: Catalog) -> None:
        self.service = BridgeService()
        self.number: int | None = None
        self.opened = self.ask("catalog", name="ice", properties=catalog.properties)["catalog"]
        self.catalog = self.service.tables.catalogs.numbered(self.opened)

    def ask(self, call: str, **more: Any) -> dict[str, Any]:
        question = {"call": call, **({} if self.number is None else {"transaction": self.number}), **more}
        answer = self.service.answer(json.dumps(question).encode())
        found: dict[str, Any] = json.loads(answer[4 : 4 + int.from_bytes(answer[:4], "little")])
        return found

    def call(self, procedure: str, **arguments: Any) -> dict[str, Any]:
        return self.ask(
            "call-procedure",
            procedure=procedure,
            catalog=self.opened,
            current_namespace=["default"],
            arguments=arguments,
        )

    def begin(self) -> None:
        self.number = self.call("begin_transaction")["transaction"]["open"]

    def set(self, name: str, value: str) -> dict[str, Any]:
        """ALTER TABLE … SET TBLPROPERTIES ('said' = …)."""
        return self.ask("alter-table", changes=[{"kind": "set", "key": "said", "value": value}], **self.target(name))

    def found(self, name: str) -> str:
        location: str = self.ask("find", **self.target(name))["metadata_location"]
        return location

    def target(self, name: str) -> dict[str, Any]:
        namespace, table = name.split(".")
        return {"name": name, "catalog": self.opened, "namespace": namespace, "table": table}


@pytest.fixture
def names(catalog: Catalog, namespace: str) -> list[str]:
    return made(catalog, namespace, "ab")


def made(catalog: Catalog, namespace: str, tables: str) -> list[str]:
    schema = pa.schema([("id", pa.int64())])
    names = [f"{namespace}.{each}" for each in tables]
    for name in names:
        catalog.create_table(name, schema).append(pa.table({"id": [1]}, schema))
    return names


def said(catalog: Catalog, names: list[str]) -> list[str | None]:
    return [catalog.load_table(name).properties.get("said") for name in names]


def test_a_change_of_any_other_kind_is_refused_in_a_transaction(catalog: Catalog, names: list[str]) -> None:
    session = Session(catalog)
    session.begin()
    refused = [name for name, kind in QUESTIONS.items() if kind.changes and not kind.joins]
    assert {"create-table", "stage-table", "drop-table", "create-view", "create-namespace"} < set(refused)
    for call in refused:
        error = session.ask(call, **session.target(names[0])).get("error")
        assert error is not None, call
        assert (error["type"], "in transaction" in error["message"]) == ("UnsupportedError", True), call
    joining = {name for name, kind in QUESTIONS.items() if kind.joins}
    assert joining == {"commit-write", "commit-rows", "delete-where", "run-statement", "alter-table", "call-procedure"}


def test_another_catalog_is_one_of_another_name_or_metastore(catalog: Catalog, names: list[str]) -> None:
    session = Session(catalog)
    session.begin()
    own = catalog.properties
    elsewhere = {"uri": "thrift://127.0.0.2:9083", "warehouse": f"{own.get('warehouse')}/other"}
    others = [("other", own), *(("ice", {**own, key: value}) for key, value in elsewhere.items())]
    for name, properties in others:
        other = session.ask("catalog", name=name, properties=properties)["catalog"]
        error = session.ask("alter-table", changes=[], **{**session.target(names[0]), "catalog": other})["error"]
        assert (error["type"], "in transaction" in error["message"]) == ("UnsupportedError", True), (name, properties)
    assert session.set(names[0], "1") == {}
    session.opened = session.ask("catalog", name="ice", properties={**own, "iceberg.hive.lock-timeout-ms": "90000"})[
        "catalog"
    ]
    assert session.set(names[1], "2") == {}
    session.call("commit_transaction")
    assert said(catalog, names) == ["1", "2"]


def test_a_statement_that_has_read_what_is_not_so_any_more_is_refused(catalog: Catalog, names: list[str]) -> None:
    session = Session(catalog)
    outside = session.found(names[0])
    session.begin()
    assert session.found(names[0]) == outside
    assert session.set(names[0], "1") == {}
    inside = session.found(names[0])
    assert inside.startswith(outside)
    for read in (outside, inside.replace("@1", "@7")):
        asked: dict[str, Any] = {"metadata_location": read, "engine": {}, "session": {}, "branch": None}
        error = session.ask("delete-where", **session.target(names[0]), **asked)["error"]
        assert names[0] in error["message"]
    decided: dict[str, Any] = {"sort_order_id": 0, "branch": None, "properties": {}, "at": 0.0}
    append = {"query_id": "", "engine": {}, "kind": "append", "options": {}, "session": {}, "files": []}
    added = {"kind": "add", "path": ["v"], "column": {"name": "v", "type": "string", "nullable": True}}
    written = {**session.target(names[0]), "metadata_location": outside, **append, "decided": decided}
    assert session.ask("commit-write", **written) == {}  # of another thread, which began before the change
    assert session.ask("alter-table", changes=[added], **session.target(names[0])) == {}
    assert session.ask("commit-write", **written)["error"]["type"] == "CommitConflictError"
    assert "uuid" in session.ask("load", name=names[0], metadata_location=inside)
    assert session.call("commit_transaction")["rows"]
    session.number = None
    assert "uuid" in session.ask("load", name=names[0], metadata_location=inside)  # a query reads it still
    session.begin()
    assert session.set(names[0], "2") == {}
    inside = session.found(names[0])
    assert session.call("rollback_transaction")["rows"] == [[names[0]]]
    assert session.ask("load", name=names[0], metadata_location=inside)["error"]["type"] == "InvalidInputError"


def test_a_statement_that_fails_adds_none_of_its_changes(catalog: Catalog, names: list[str]) -> None:
    session = Session(catalog)
    session.begin()
    before = session.found(names[0])
    added = {"kind": "add", "path": ["v"], "column": {"name": "v", "type": "string", "nullable": True}}
    missing = {"kind": "set", "key": "current-snapshot-id", "value": "123"}
    error = session.ask("alter-table", changes=[added, missing], **session.target(names[0]))["error"]
    assert "123" in error["message"]
    assert session.found(names[0]) == before
    assert session.set(names[0], "1") == {}
    assert [row[0] for row in session.call("commit_transaction")["rows"]] == [names[0]]
    assert catalog.load_table(names[0]).schema().column_names == ["id"]


def test_a_session_that_goes_takes_its_transaction_with_it(catalog: Catalog, names: list[str]) -> None:
    session = Session(catalog)
    session.begin()
    session.set(names[0], "1")
    assert session.ask("give-up-transaction", number=session.number) == {}
    assert session.set(names[0], "2")["error"]["type"] == "InvalidInputError"
    assert session.ask("give-up-transaction", number=session.number) == {}
    assert said(catalog, names) == [None, None]


def test_a_driver_that_is_killed_leaves_all_tables_changed_or_none(catalog: Catalog, namespace: str) -> None:
    calls = committed(catalog, made(catalog, namespace, "ab"))
    first, second = [number for number, call in enumerate(calls) if call == ALTER][:2]
    for tables, number, after in (("cd", first - 1, None), ("ef", first, None), ("gh", second, "new")):
        names = made(catalog, namespace, tables)
        assert committed(catalog, names, number) == calls[: number + 1]
        assert said(catalog, names) == [after, after]


def committed(catalog: Catalog, names: list[str], number: int | None = None) -> list[str]:
    """Commits a transaction on all tables, and is killed after a call of it; the calls that were made."""
    session = Session(catalog)
    find_out_capability(session.catalog)
    killed = KilledAt(session.catalog, number)
    session.begin()
    for name in names:
        assert session.set(name, "new") == {}
    with suppress(Killed):
        session.call("commit_transaction")
    return killed.calls
