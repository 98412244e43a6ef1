"""Renames, drops and commits that meet others while their answers are lost or late; how many calls a commit takes.

The matrix of all faults is in `test_fault_matrix.py`.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest

from hms_iceberg.catalog import Catalog, load_catalog
from hms_iceberg.errors import CommitStateUnknownError, MetastoreAnswerLostError, MetastoreError, NoSuchTableError
from hms_iceberg.hms.commit import lease
from hms_iceberg.hms.connection import answers
from hms_iceberg.hms.embedded import EmbeddedMetastore
from hms_iceberg.hms.locking.lock_admin import list_locks
from hms_iceberg.spec.data_types import StringType
from hms_iceberg.table import Table
from hms_iceberg.view import ViewVersion
from tests.integration.hms.test_fault_matrix import read_by_pyiceberg
from tests.support.commit_operations import QUICK, find_out_capability, outcome
from tests.support.thrift_proxy import Fault, ThriftProxy

ALTER = "alter_table_with_environment_context"
DROP = "drop_table_with_environment_context"
SCHEMA = pa.schema([pa.field("id", pa.int64())])


@pytest.fixture(autouse=True)
def short_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "_LOOKS", (0.0, 0.02, 0.05))
    monkeypatch.setattr(answers, "_LATE_SECONDS", 1.0)


@pytest.fixture
def proxy(metastore: EmbeddedMetastore) -> Iterator[ThriftProxy]:
    with ThriftProxy(metastore.port) as proxy:
        yield proxy


@pytest.fixture(params=["true", "false"], ids=["lock", "compare-and-swap"])
def harmed(
    request: pytest.FixtureRequest,
    metastore: EmbeddedMetastore,
    proxy: ThriftProxy,
) -> Iterator[Catalog]:
    """A catalog whose calls go through the proxy; with a lock, the server does not compare as well."""
    properties = {
        "warehouse": metastore.warehouse,
        "iceberg.engine.hive.lock-enabled": request.param,
        "iceberg.hive.lock-compare-enabled": "false",
        "hive.metastore.client.connect.retry.delay": "10ms",
        "iceberg.hive.lock-timeout-ms": "20000",
    }
    with load_catalog("harmed", type="hive", uri=proxy.uri, **properties) as catalog:
        find_out_capability(catalog)
        proxy.calls.clear()
        yield catalog


@pytest.fixture
def name(catalog: Catalog, namespace: str) -> str:
    return f"{namespace}.events"


@pytest.fixture
def table(catalog: Catalog, name: str) -> Table:
    """The table as somebody unharmed sees it; it has one row."""
    table = catalog.create_table(name, SCHEMA, properties=QUICK)
    table.append(pa.table({"id": [0]}))
    return table


def append(table: Table) -> None:
    table.append(pa.table({"id": [1]}))


def appended(table: Table) -> bool:
    ids = table.scan().to_arrow()["id"].to_pylist()
    assert ids.count(1) <= 1, "applied twice"
    return 1 in ids


@pytest.mark.parametrize("method", [ALTER, DROP])
@pytest.mark.parametrize("fault", [Fault.DROP_ANSWER, Fault.DROP_REQUEST], ids=lambda fault: fault.name.lower())
def test_what_is_reported_of_a_harmed_rename_or_drop_is_true(
    harmed: Catalog, catalog: Catalog, table: Table, proxy: ThriftProxy, name: str, method: str, fault: Fault
) -> None:
    harmed.load_table(name)
    if method == ALTER:
        change, is_done = (lambda: harmed.rename_table(name, f"{name}2")), (lambda: catalog.table_exists(f"{name}2"))
        append(harmed.load_table(name))  # what probes the server was done
    else:
        change, is_done = (lambda: harmed.drop_table(name)), (lambda: not catalog.table_exists(name))
    proxy.on(method, fault)
    reported = outcome(change)
    proxy.heal()
    assert reported == ("made" if fault is Fault.DROP_ANSWER else "failed")
    assert is_done() == (reported == "made")


@pytest.mark.parametrize("lock_enabled", ["true", "false"], ids=["lock", "compare-and-swap"])
def test_a_late_alter_does_not_take_a_commit_away_that_was_made_meanwhile(
    proxy: ThriftProxy, catalog: Catalog, table: Table, name: str, lock_enabled: str
) -> None:
    proxy.late_seconds = 300.0
    with load_catalog("late", type="hive", uri=proxy.uri, **{"iceberg.engine.hive.lock-enabled": lock_enabled}) as late:
        victim = late.load_table(name)
        victim.append(pa.table({"id": [5]}))  # what probes the server was done
        proxy.on(ALTER, Fault.LATE_REQUEST)
        reported = outcome(lambda: append(victim))
        table.refresh().append(pa.table({"id": [7]}))
        proxy.heal()
    ids = table.refresh().scan().to_arrow()["id"].to_pylist()
    assert reported == "unknown"
    assert {0, 5, 7} <= set(ids) and 1 not in ids, "the server compares, and refuses what comes too late"


def test_where_the_server_does_not_compare_a_late_alter_is_waited_for_under_the_lock(
    proxy: ThriftProxy, catalog: Catalog, table: Table, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "_LATE_SECONDS", 20.0)
    proxy.late_seconds = 1.0
    with load_catalog("late", type="hive", uri=proxy.uri, **{"iceberg.hive.lock-compare-enabled": "false"}) as late:
        victim = late.load_table(name)
        proxy.on(ALTER, Fault.LATE_REQUEST)
        follower = threading.Timer(0.2, table.append, (pa.table({"id": [7]}),))  # waits for the lock
        follower.start()
        reported = outcome(lambda: append(victim))
        follower.join()
        proxy.heal()
    assert reported == "made"
    assert sorted(table.refresh().scan().to_arrow()["id"].to_pylist()) == [0, 1, 7]
    catalog.close()  # waits until its lock is given back
    assert list_locks(catalog.metastore.client, *name.split(".")) == []  # type: ignore[attr-defined]


def test_where_the_server_does_not_compare_a_commit_that_others_overtook_keeps_its_files_for_it_may_come_late(
    proxy: ThriftProxy, catalog: Catalog, table: Table, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "_LATE_SECONDS", 0.2)
    proxy.late_seconds = 6.0
    looks = {"commit.status-check.num-retries": "8", "commit.status-check.min-wait-ms": "300"}
    table.set_properties({**looks, "commit.status-check.max-wait-ms": "300"})
    with load_catalog("late", type="hive", uri=proxy.uri, **{"iceberg.hive.lock-compare-enabled": "false"}) as late:
        victim = late.load_table(name)
        proxy.on(ALTER, Fault.LATE_REQUEST, before=threading.Timer(0.1, table.append, (pa.table({"id": [7]}),)).start)
        assert outcome(lambda: append(victim)) == "unknown"
        assert 7 in catalog.load_table(name).scan().to_arrow()["id"].to_pylist(), "others were first"
        proxy.heal()  # now it comes
    assert sorted(table.refresh().scan().to_arrow()["id"].to_pylist()) == [0, 1]
    assert read_by_pyiceberg(catalog, name) == [0, 1]


# ------------------------------------------------------------------- errors of the server that hide a success


def fails_after(catalog: Catalog, method: str, then: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    """The server carries out the next call of a method, and reports an error when others have done something."""
    client = catalog.metastore.client  # type: ignore[attr-defined]
    call = getattr(client, method)

    def failing(*arguments: object) -> None:
        call(*arguments)
        monkeypatch.setattr(client, method, call)
        then()
        raise MetastoreError("a listener failed")

    monkeypatch.setattr(client, method, failing)


def rename_without_lock(catalog: Catalog, name: str, target: str) -> None:
    """As Hive does."""
    client, (database, table) = catalog.metastore.client, name.split(".")  # type: ignore[attr-defined]
    row = client.get_table(database, table)
    row.tableName = target.partition(".")[2]
    client.alter_table(database, table, row)


def test_a_commit_told_as_failed_whose_table_was_renamed_since_is_unknown_and_keeps_its_files(
    harmed: Catalog, catalog: Catalog, table: Table, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim = harmed.load_table(name)
    fails_after(harmed, "alter_table", lambda: rename_without_lock(catalog, name, f"{name}2"), monkeypatch)
    with pytest.raises(CommitStateUnknownError, match="a listener failed"):
        append(victim)
    assert appended(catalog.load_table(f"{name}2"))
    assert read_by_pyiceberg(catalog, f"{name}2") == [0, 1]


def test_a_create_told_as_failed_that_others_committed_to_since_is_a_success(
    harmed: Catalog, catalog: Catalog, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def others() -> None:
        for row in (7, 8):
            catalog.load_table(name).append(pa.table({"id": [row]}))

    fails_after(harmed, "create_table", others, monkeypatch)
    with harmed.create_table_transaction(name, SCHEMA, properties=QUICK) as transaction:
        append(transaction)  # type: ignore[arg-type]
    assert sorted(catalog.load_table(name).scan().to_arrow()["id"].to_pylist()) == [1, 7, 8]
    assert read_by_pyiceberg(catalog, name) == [1, 7, 8]


def test_a_create_told_as_failed_that_was_renamed_since_and_another_made_is_unknown_and_keeps_its_files(
    harmed: Catalog, catalog: Catalog, name: str, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def others() -> None:
        rename_without_lock(catalog, name, f"{name}2")
        folder = catalog.load_namespace_properties(namespace)["location"]
        catalog.create_table(name, SCHEMA, location=f"{folder}/elsewhere")

    fails_after(harmed, "create_table", others, monkeypatch)
    transaction = harmed.create_table_transaction(name, SCHEMA, properties=QUICK)
    append(transaction)  # type: ignore[arg-type]
    with pytest.raises(CommitStateUnknownError, match="a listener failed"):
        transaction.commit_transaction()
    assert catalog.load_table(name).scan().to_arrow().num_rows == 0
    assert read_by_pyiceberg(catalog, f"{name}2") == [1]


def test_a_lost_registration_is_not_told_as_made_because_somebody_registered_a_later_file_of_that_table(
    harmed: Catalog, catalog: Catalog, table: Table, proxy: ThriftProxy, name: str
) -> None:
    first = table.metadata_location
    table.append(pa.table({"id": [7]}))
    later = table.metadata_location
    proxy.on("create_table", Fault.DROP_REQUEST, before=lambda: catalog.register_table(f"{name}2", later))
    assert outcome(lambda: harmed.register_table(f"{name}2", first)) == "unknown"
    assert sorted(catalog.load_table(f"{name}2").scan().to_arrow()["id"].to_pylist()) == [0, 7]


@pytest.fixture
def loads_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every commit loads the table first, however short ago it was read."""
    monkeypatch.setattr("hms_iceberg.transaction.retry.VERIFIED_SECONDS", 0.0)


@pytest.mark.usefixtures("loads_first")
def test_a_commit_that_lost_its_answer_and_was_followed_by_another_is_a_success(
    metastore: EmbeddedMetastore, proxy: ThriftProxy, table: Table, name: str
) -> None:
    follower = table

    with load_catalog("followed", type="hive", uri=proxy.uri, **{"iceberg.engine.hive.lock-enabled": "false"}) as mine:
        victim = mine.load_table(name)
        victim.append(pa.table({"id": [5]}))
        proxy.on(ALTER, Fault.DROP_ANSWER)
        original = mine.metastore.client.get_table  # type: ignore[attr-defined]
        looks: list[str] = []

        def look(database: str, name: str) -> object:
            looks.append(name)
            if len(looks) == 3:  # after the load and the reading under the turn: the first look at the outcome
                follower.refresh().append(pa.table({"id": [7]}))
            return original(database, name)

        mine.metastore.client.get_table = look  # type: ignore[attr-defined]
        assert outcome(lambda: append(victim)) == "made"
    assert sorted(table.refresh().scan().to_arrow()["id"].to_pylist()) == [0, 1, 5, 7]


@pytest.mark.usefixtures("loads_first")
def test_a_failover_in_the_middle_of_a_commit_is_not_noticed(
    metastore: EmbeddedMetastore, proxy: ThriftProxy, table: Table, name: str
) -> None:
    with ThriftProxy(metastore.port) as second:
        uri = f"{proxy.uri},127.0.0.1:{second.port}"
        with load_catalog("two", type="hive", uri=uri) as catalog:
            victim = catalog.load_table(name)
            victim.append(pa.table({"id": [5]}))  # what probes the server was done
            proxy.calls.clear()
            proxy.on("get_table_req", Fault.DROP_REQUEST, skip=1, times=100)
            append(victim)
        assert "lock" in proxy.calls
        assert "unlock" in second.calls, "the lock is given back at the other address"
    assert appended(table.refresh())


@pytest.mark.parametrize("load", [["get_table_req"], []], ids=["read-long-ago", "just-read"])
def test_a_commit_takes_five_calls_with_a_lock_and_three_without_and_one_less_just_after_a_read(
    harmed: Catalog, table: Table, proxy: ThriftProxy, name: str, load: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hms_iceberg.transaction.retry.VERIFIED_SECONDS", 0.0 if load else 600.0)
    victim = harmed.load_table(name)
    append(victim)  # what probes the server was done
    proxy.calls.clear()
    victim.append(pa.table({"id": [uuid.uuid4().int % 1000 + 10]}))
    with_lock = [*load, "lock", "get_table_req", ALTER, "unlock"]
    without = [*load, "get_table_req", ALTER]
    assert proxy.calls == (with_lock if "lock" in proxy.calls else without)


@pytest.mark.parametrize("lock_enabled", ["true", "false"], ids=["lock", "compare-and-swap"])
def test_a_commit_in_company_takes_its_lock_first_and_reads_the_row_once(
    table: Table, proxy: ThriftProxy, name: str, lock_enabled: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "_ROW_SECONDS", 600.0)
    with load_catalog("mine", type="hive", uri=proxy.uri, **{"iceberg.engine.hive.lock-enabled": lock_enabled}) as mine:
        victim = mine.load_table(name)
        append(victim)
        table.refresh().append(pa.table({"id": [3]}))
        victim.append(pa.table({"id": [4]}))  # finds that it is not alone
        proxy.calls.clear()
        victim.append(pa.table({"id": [5]}))
    without = ["get_table_req", ALTER]
    assert proxy.calls == (["lock", *without, "unlock"] if lock_enabled == "true" else without)
    assert sorted(victim.scan().to_arrow()["id"].to_pylist()) == [0, 1, 3, 4, 5]


# ------------------------------------------------------------------------------- changes that are no commits


@pytest.mark.parametrize("change", ["rename", "drop", "drop view", "create namespace", "drop namespace"])
def test_a_change_that_can_neither_be_seen_through_nor_looked_up_is_reported_as_unknown(
    catalog: Catalog, table: Table, proxy: ThriftProxy, namespace: str, change: str
) -> None:
    view, new = f"{namespace}.seen", f"{namespace}_new"
    catalog.create_view(view, SCHEMA, ViewVersion.of_sql({"spark": "select 1 as id"}))
    quick = {"hive.metastore.client.connect.retry.delay": "10ms", "hive.metastore.connect.retries": "2"}
    with load_catalog("harmed", uri=proxy.uri, **quick, **{"iceberg.hive.lock-compare-enabled": "false"}) as harmed:
        method, make, is_made = {
            "rename": (ALTER, lambda: harmed.rename_table(table.identifier, f"{namespace}.other"), None),
            "drop": (DROP, lambda: harmed.drop_table(table.identifier), None),
            "drop view": (DROP, lambda: harmed.drop_view(view), lambda: not catalog.view_exists(view)),
            "create namespace": ("create_database", lambda: harmed.create_namespace(new), None),
            "drop namespace": ("drop_database", lambda: harmed.drop_namespace(new), None),
        }[change]
        if change == "drop namespace":
            catalog.create_namespace(new)
        harmed.list_tables(namespace)
        proxy.on(method, Fault.DROP_ANSWER, after=proxy.die)
        with pytest.raises(MetastoreAnswerLostError, match=f"Cannot tell whether the {change.split()[0][:4]}"):
            make()
    assert catalog.table_exists(table.identifier) == (change not in ("rename", "drop"))
    assert catalog.namespace_exists(new) == (change == "create namespace")
    assert is_made is None or is_made()


def test_where_the_server_does_not_compare_a_late_rename_takes_no_commit_away(
    proxy: ThriftProxy, catalog: Catalog, table: Table, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "_LATE_SECONDS", 20.0)
    proxy.late_seconds = 1.0
    with load_catalog("late", uri=proxy.uri, **{"iceberg.hive.lock-compare-enabled": "false"}) as late:
        proxy.on(ALTER, Fault.LATE_REQUEST)
        late.rename_table(name, f"{name}2")  # it waits for its request, and others for its lock
        with pytest.raises(NoSuchTableError):
            table.append(pa.table({"id": [7]}))
        proxy.heal()
    assert catalog.load_table(f"{name}2").scan().to_arrow()["id"].to_pylist() == [0]


def test_where_the_server_does_not_compare_a_late_removal_of_columns_takes_no_commit_away(
    strict_metastore: EmbeddedMetastore,
) -> None:
    """The server refuses the new columns in the old ones' places, so that these are taken out first."""
    with ThriftProxy(strict_metastore.port) as proxy, load_catalog("own", uri=strict_metastore.uri) as catalog:
        catalog.create_namespace("late")
        table = catalog.create_table("late.events", SCHEMA, properties=QUICK)
        with table.update_schema() as update:
            update.add_column("who", StringType())
        proxy.late_seconds = 1.0
        with load_catalog("late", uri=proxy.uri, **{"iceberg.hive.lock-compare-enabled": "false"}) as late:
            victim = late.load_table("late.events")
            proxy.on(ALTER, Fault.LATE_REQUEST, skip=1)
            with victim.update_schema() as update:
                update.move_first("who")
            proxy.heal()
        assert proxy.calls.count(ALTER) > 2
        assert [field.name for field in table.refresh().schema().fields] == ["who", "id"]
        columns = catalog.metastore.client.get_table(*table.identifier).sd.cols  # type: ignore[attr-defined]
        assert [column.name for column in columns] == ["who", "id"]
