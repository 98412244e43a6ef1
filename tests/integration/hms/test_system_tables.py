"""System tables of a real metastore: everything that is in it, in a few calls."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

from hms_iceberg.catalog import Catalog
from hms_iceberg.hms.connection.thrift_types import ttypes
from hms_iceberg.maintenance import system_table
from hms_iceberg.view import ViewVersion
from tests.support.operations import SCHEMA, rows

Call = Any


def hive_row(namespace: str, name: str, kind: str, **parameters: str) -> ttypes.Table:
    storage = ttypes.StorageDescriptor(
        cols=[ttypes.FieldSchema("id", "bigint")],
        location=None if kind == "VIRTUAL_VIEW" else f"file:/tmp/{namespace}/{name}",
        inputFormat="org.apache.hadoop.mapred.TextInputFormat",
        outputFormat="org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
        serdeInfo=ttypes.SerDeInfo(serializationLib="org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"),
    )
    is_view = kind == "VIRTUAL_VIEW"
    return ttypes.Table(
        tableName=name,
        dbName=namespace,
        owner="ann",
        sd=storage,
        partitionKeys=[],
        parameters={"EXTERNAL": "TRUE", **parameters} if not is_view else {},
        tableType=kind,
        viewOriginalText="select 1 id" if is_view else None,
        viewExpandedText="select 1 id" if is_view else None,
    )


@pytest.fixture
def everything(catalog: Catalog, namespace: str) -> dict[str, Any]:
    """Iceberg tables, one that is damaged, an Iceberg view, a Hive view and a Hive table."""
    tables = {name: catalog.create_table(f"{namespace}.{name}", SCHEMA) for name in ("one", "two", "damaged")}
    for number in range(3):
        tables["one"].append(rows(number))
    tables["one"].delete("id = 1")
    client = catalog.metastore.client  # type: ignore[attr-defined]
    damaged = client.get_table(namespace, "damaged")
    del damaged.parameters["metadata_location"]
    client.alter_table(namespace, "damaged", damaged)
    client.create_table(hive_row(namespace, "plain", "EXTERNAL_TABLE", numRows="5", totalSize="90", numFiles="3"))
    client.create_table(hive_row(namespace, "seen", "VIRTUAL_VIEW"))
    schema = pa.schema([("n", pa.int64())])
    catalog.create_view((namespace, "view"), schema, ViewVersion.of_sql({"spark": "select 1 n"}, (namespace,)))
    return tables


@pytest.fixture
def calls(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts the metastore's calls; of a table whose name begins with `secret` it refuses to tell."""
    pool, found = catalog.metastore.client.pool, Counter[str]()  # type: ignore[attr-defined]
    real = pool.call

    def call(method: str, *arguments: Any, **more: Any) -> Any:
        found[method] += 1
        if "secret" in str(arguments) and method.startswith("get_table_"):
            raise ttypes.MetaException("User ann has no right to read it")
        return real(method, *arguments, **more)

    monkeypatch.setattr(pool, "call", call)
    return found


@pytest.fixture
def secret(catalog: Catalog, namespace: str) -> None:
    for name in ("open", "secret"):
        catalog.create_table(f"{namespace}.{name}", SCHEMA)


def by_table(told: pa.Table) -> dict[str, dict[str, Any]]:
    return {each["table"]: each for each in told.to_pylist()}


def test_everything_is_told_of_in_a_few_calls(
    catalog: Catalog, namespace: str, everything: dict[str, Any], calls: Counter[str]
) -> None:
    told = by_table(system_table(catalog, "tables", (f"{namespace}.*",)))
    kinds = {name: each["kind"] for name, each in told.items()}
    expected = dict.fromkeys(everything, "iceberg")
    assert kinds == {**expected, "plain": "hive", "seen": "hive view", "view": "iceberg view"}
    one = everything["one"].refresh()
    totals = one.current_snapshot().summary
    assert str(told["one"]["rows"]) == totals["total-records"] and told["one"]["snapshots"] == 4
    assert str(told["one"]["bytes"]) == totals["total-files-size"] and told["one"]["location"] == one.location()
    assert (told["two"]["snapshots"], told["two"]["snapshot_id"], told["two"]["error"]) == (0, None, None)
    assert (told["plain"]["rows"], told["plain"]["bytes"], told["plain"]["data_files"]) == (5, 90, 3)
    assert told["damaged"]["error"].startswith("NotAnIcebergTableError: ") and told["damaged"]["rows"] is None
    calls.pop("get_table_req")  # of the damaged one
    assert calls == {"get_all_databases": 1, "get_all_tables": 1, "get_table_objects_by_name_req": 1}

    snapshots = system_table(catalog, "snapshots", (f"{namespace}.*",))
    assert Counter(each["table"] for each in snapshots.to_pylist()) == {"one": 4, "damaged": 1}
    health = by_table(system_table(catalog, "files_health", (f"{namespace}.*",)))
    assert set(health) == set(everything) and health["damaged"]["error"] == told["damaged"]["error"]
    assert health["one"]["data_files"] == one.inspect.data_files().num_rows


def test_what_the_metastore_refuses_to_tell_is_a_row(
    catalog: Catalog, namespace: str, secret: None, calls: Counter[str]
) -> None:
    told = by_table(system_table(catalog, "tables", (f"{namespace}.*",)))
    assert (told["open"]["kind"], told["open"]["snapshots"], told["open"]["error"]) == ("iceberg", 0, None)
    assert told["secret"]["kind"] is None and "User ann has no right to read it" in told["secret"]["error"]
    deep = by_table(system_table(catalog, "maintenance", (f"{namespace}.*",)))
    assert deep["secret"]["error"] == told["secret"]["error"] and deep["secret"]["action"] is None


def test_a_namespace_whose_tables_cannot_be_listed_is_a_row(
    catalog: Catalog, namespace: str, secret: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = catalog.metastore.client.pool  # type: ignore[attr-defined]
    real = pool.call

    def call(method: str, *arguments: Any, **more: Any) -> Any:
        if method == "get_all_tables":
            raise ttypes.MetaException("User ann has no right to list it")
        return real(method, *arguments, **more)

    monkeypatch.setattr(pool, "call", call)
    for name in ("tables", "snapshots", "maintenance"):
        (told,) = system_table(catalog, name, (f"{namespace}.*",)).to_pylist()
        assert (told["namespace"], told["table"]) == (namespace, None)
        assert told["error"].startswith("MetastoreError: ") and "no right to list it" in told["error"]


def test_locks_are_rows(catalog: Catalog, namespace: str) -> None:
    catalog.create_table(f"{namespace}.held", SCHEMA)
    client = catalog.metastore.client  # type: ignore[attr-defined]
    request = ttypes.LockRequest(
        component=[ttypes.LockComponent(ttypes.LockType.EXCLUSIVE, ttypes.LockLevel.TABLE, namespace, "held")],
        user="ann",
        hostname="there",
        agentInfo="by hand",
    )
    lock_id = client.lock(request, "held").lockid
    try:
        (told,) = system_table(catalog, "locks", (f"{namespace}.*",)).to_pylist()
        assert (told["table"], told["lock_id"], told["state"], told["type"]) == (
            "held",
            lock_id,
            "acquired",
            "exclusive",
        )
        assert (told["user"], told["host"], told["agent"]) == ("ann", "there", "by hand")
        assert told["age_seconds"] >= 0 and told["is_abandoned"] is False and told["transaction_id"] is None
        assert system_table(catalog, "locks", ("nosuch.*",)).num_rows == 0
    finally:
        client.unlock(lock_id, "held")
