"""A lock that is asked for while the metadata file is still written."""

from __future__ import annotations

import time

import pyarrow as pa
import pytest

from hms_iceberg.catalog import Catalog
from hms_iceberg.hms.connection.client import HmsClient
from hms_iceberg.hms.connection.client_settings import ClientSettings
from hms_iceberg.hms.embedded import EmbeddedMetastore
from hms_iceberg.hms.locking.host_lock import LocalMutex
from hms_iceberg.hms.locking.lock_admin import list_locks
from hms_iceberg.hms.locking.lock_settings import LockSettings
from tests.integration.hms.test_locks import table_lock, wait_until
from tests.support.thrift_proxy import Fault, ThriftProxy


def test_a_lock_that_was_asked_for_ahead_brings_the_row_as_it_is_under_the_lock(
    client: HmsClient, catalog: Catalog, namespace: str
) -> None:
    catalog.create_table(f"{namespace}.t", pa.schema([pa.field("id", pa.int64())]))
    mine = table_lock(client, namespace)
    mine.begin(with_row=True)
    assert mine.try_acquire()
    row, moment = mine.take_row() or (None, 0.0)
    assert row == client.get_table(namespace, "t") and time.monotonic() - moment < 30
    assert mine.take_row() is None
    other = table_lock(client, namespace)
    other._mutex = LocalMutex("of another machine", (namespace, "t"))
    other.begin(with_row=True)
    assert not other.try_acquire() and other.take_row() is None, "it was read while the lock was another one's"
    mine.release()
    other.acquire()
    assert other.take_row() is None
    other.release()
    for begins in (False, True):
        mine.begin(with_row=begins)
        mine.release()
    assert list_locks(client, namespace) == []


@pytest.mark.parametrize("fault", [Fault.SLOW_ANSWER, Fault.DROP_REQUEST, Fault.DROP_ANSWER])
def test_a_lock_is_asked_for_ahead_while_the_one_before_it_is_still_given_back(
    metastore: EmbeddedMetastore, client: HmsClient, database: str, fault: Fault
) -> None:
    with ThriftProxy(metastore.port, slow_seconds=0.5) as proxy:
        through = HmsClient(ClientSettings.from_properties({"uri": proxy.uri}))
        first, second = table_lock(through, database), table_lock(through, database, LockSettings(timeout=30))
        first.acquire()
        proxy.on("unlock", fault)
        first.release(wait=False)
        began = time.monotonic()
        second.begin(with_row=True)
        if not second.try_acquire():
            second.acquire()
        assert fault is not Fault.SLOW_ANSWER or time.monotonic() - began < proxy.slow_seconds
        assert [found.lock_id for found in list_locks(client, database)] == [second.lock_id]
        second.release(wait=False)
        through.close()
        assert list_locks(client, database) == []
        third = table_lock(client, database)
        assert third.try_acquire()
        third.release()


@pytest.mark.parametrize("fault", [fault for fault in Fault if fault not in (Fault.NO_ANSWER, Fault.DOUBLE_REQUEST)])
@pytest.mark.parametrize("number", [0, 1])
def test_a_lock_that_was_asked_for_ahead_over_a_network_that_fails_is_taken_and_given_back(
    metastore: EmbeddedMetastore, client: HmsClient, database: str, fault: Fault, number: int
) -> None:
    with ThriftProxy(metastore.port, late_seconds=0.1) as proxy:
        harmed = HmsClient(ClientSettings.from_properties({"uri": proxy.uri}))
        for takes in (True, False):
            mine = table_lock(harmed, database, LockSettings(timeout=30, creation_min_wait=0.01, check_min_wait=0.01))
            proxy.at(number, fault)
            mine.begin(with_row=True)
            if takes:
                mine.acquire()
                mine.ensure_active()
                assert mine.take_row() is None, "there is no such table"
            mine.release()
            proxy.heal()
            assert wait_until(lambda: not list_locks(client, database))
        harmed.close()
