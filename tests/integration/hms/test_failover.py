"""Two addresses of one metastore: the first dies in the middle of a commit, and the second finishes it or tells."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

from hms_iceberg.catalog import Catalog, load_catalog
from hms_iceberg.errors import CommitStateUnknownError
from hms_iceberg.hms.embedded import EmbeddedMetastore
from tests.support.commit_operations import find_out_capability
from tests.support.thrift_proxy import Fault, ThriftProxy

SCHEMA = pa.schema([pa.field("id", pa.int64())])
ALTER = "alter_table_with_environment_context"
LOCKED = ("get_table_req", "lock", ALTER, "unlock")
UNLOCKED = ("get_table_req", ALTER)
QUICK = {"commit.status-check.num-retries": "1", "commit.status-check.min-wait-ms": "100"}
ONCE = {"hive.metastore.client.connect.retry.delay": "100ms", "hive.metastore.client.socket.timeout": "20s"}


def append(number: int) -> pa.Table:
    return pa.table({"id": [number]}, schema=SCHEMA)


@pytest.mark.parametrize(("lock", "methods"), [("true", LOCKED), ("false", UNLOCKED)], ids=["lock", "compare-and-swap"])
@pytest.mark.parametrize("fault", [Fault.DROP_REQUEST, Fault.DROP_ANSWER], ids=lambda fault: fault.name.lower())
def test_a_commit_survives_the_death_of_its_address(
    metastore: EmbeddedMetastore, catalog: Catalog, namespace: str, lock: str, methods: tuple[str, ...], fault: Fault
) -> None:
    table = catalog.create_table((namespace, "events"), SCHEMA, properties=QUICK)
    certain, doubtful = set(), set()
    for number, method in enumerate(methods):

        def commit(first: ThriftProxy, through: Catalog, number: int = number, method: str = method) -> None:
            loaded = through.load_table(table.identifier)
            find_out_capability(through)
            first.on(method, fault, before=first.die)
            loaded.append(append(number))

        try:
            _with_two_addresses(metastore, lock, commit)
            certain.add(number)
        except CommitStateUnknownError:
            assert (method, fault) == (ALTER, Fault.DROP_REQUEST), "whatever else is lost can be found out"
            doubtful.add(number)
    rows = table.refresh().scan().to_arrow()["id"].to_pylist()
    assert len(rows) == len(set(rows)), "nothing is committed twice"
    assert certain <= set(rows) <= certain | doubtful
    table.append(append(100))


@pytest.mark.parametrize("fault", [Fault.DROP_REQUEST, Fault.DROP_ANSWER], ids=lambda fault: fault.name.lower())
def test_a_create_survives_the_death_of_its_address(
    metastore: EmbeddedMetastore, catalog: Catalog, namespace: str, fault: Fault
) -> None:
    name = (namespace, "made")

    def create(first: ThriftProxy, through: Catalog) -> None:
        first.on("create_table", fault, before=first.die)
        through.create_table(name, SCHEMA, properties=QUICK)

    if fault is Fault.DROP_ANSWER:
        _with_two_addresses(metastore, "true", create)
    else:
        with pytest.raises(CommitStateUnknownError):
            _with_two_addresses(metastore, "true", create)
        assert not catalog.table_exists(name)
        catalog.create_table(name, SCHEMA)
    catalog.load_table(name).append(append(1))


def test_what_a_server_can_do_is_asked_at_the_second_address_as_well(
    metastore: EmbeddedMetastore, catalog: Catalog, namespace: str
) -> None:
    table = catalog.create_table((namespace, "events"), SCHEMA)

    def commit(first: ThriftProxy, through: Catalog) -> None:
        loaded = through.load_table(table.identifier)
        first.on(ALTER, Fault.DROP_ANSWER, before=first.die)  # the probe's
        loaded.append(append(1))

    _with_two_addresses(metastore, "false", commit)
    assert table.refresh().scan().count() == 1


def _with_two_addresses(
    metastore: EmbeddedMetastore, lock: str, commit: Callable[[ThriftProxy, Catalog], None]
) -> None:
    with ThriftProxy(metastore.port) as first, ThriftProxy(metastore.port) as second:
        properties = {**ONCE, "warehouse": metastore.warehouse, "iceberg.engine.hive.lock-enabled": lock}
        uri = f"{first.uri},{second.uri}"
        with load_catalog("two", type="hive", uri=uri, **properties) as through:
            commit(first, through)
        assert second.calls, "the second address was needed"
