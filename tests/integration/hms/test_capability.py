"""Whether a server compares before it alters is found out on a scratch row, once, and the row goes away again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from hms_iceberg.catalog import Catalog
from hms_iceberg.errors import MetastoreError, NamespaceNotEmptyError
from hms_iceberg.hms.commit import capability, scratch_rows
from hms_iceberg.hms.connection.client import HmsClient
from hms_iceberg.hms.connection.client_settings import ClientSettings
from hms_iceberg.hms.connection.thrift_types import ttypes
from hms_iceberg.hms.embedded import EmbeddedMetastore
from tests.support.thrift_proxy import Fault, ThriftProxy


@pytest.fixture
def client(metastore: EmbeddedMetastore) -> Iterator[HmsClient]:
    client = HmsClient(ClientSettings.from_properties({"uri": metastore.uri}))
    yield client
    client.close()


def forget_support(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the process were new."""
    monkeypatch.setattr(capability, "_known", {})
    monkeypatch.setattr(capability, "_noted", {})


@pytest.fixture
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No process of this machine has noted anything yet."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)


@pytest.mark.usefixtures("notes")
def test_what_one_process_found_out_another_one_believes_for_its_commits_under_a_lock_only(
    client: HmsClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    probes: list[str] = []
    probe = capability._probe
    monkeypatch.setattr(capability, "_probe", lambda client, database: probes.append("") or probe(client, database))
    for _ in range(2):
        forget_support(monkeypatch)
        capability.learn_support(client, "default")
        assert capability.known_support(client) is True
    assert len(probes) == 1
    capability.supports_compare_and_swap(client, "default")
    assert len(probes) == 2, "what no lock stands behind is tried by every process"
    monkeypatch.setattr(capability, "_NOTE_SECONDS", -1.0)
    forget_support(monkeypatch)
    capability.learn_support(client, "default")
    assert len(probes) == 3, "a note grows old"


@pytest.mark.usefixtures("notes")
def test_a_server_that_cannot_be_probed_is_asked_once_and_trusted_with_nothing(
    client: HmsClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def refuse(row: ttypes.Table) -> None:
        asked.append(row.tableName)
        raise MetastoreError("no permission")

    forget_support(monkeypatch)
    monkeypatch.setattr(client, "create_table", refuse)
    capability.learn_support(client, "default")
    capability.learn_support(client, "default")
    assert (capability.known_support(client), len(asked)) == (None, 1)


def test_the_probe_finds_compare_and_swap_and_leaves_nothing_behind(
    client: HmsClient, metastore: EmbeddedMetastore, monkeypatch: pytest.MonkeyPatch
) -> None:
    forget_support(monkeypatch)
    before = client.list_tables("default")
    assert capability.known_support(client) is None
    assert capability.supports_compare_and_swap(client, "default") is True
    assert capability.known_support(client) is True
    assert client.list_tables("default") == before


PROBER = """
import os, signal, sys
from hms_iceberg.hms.commit import capability
from hms_iceberg.hms.connection.client import HmsClient
from hms_iceberg.hms.connection.client_settings import ClientSettings
capability._refuses_wrong_value = lambda *arguments: os.kill(os.getpid(), signal.SIGKILL)
client = HmsClient(ClientSettings.from_properties({"uri": sys.argv[1]}))
capability.supports_compare_and_swap(client, sys.argv[2])
"""


def _name_of_another_machine() -> str:
    return f"hms_iceberg_probe_{'0' * 12}_1_{time.time():.0f}_abc"


def test_what_a_killed_probe_left_goes_with_the_next_one_or_with_its_namespace(
    client: HmsClient, metastore: EmbeddedMetastore, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    namespace = f"probed_{os.getpid()}_{time.time_ns() % 10**6}"
    catalog.create_namespace(namespace)
    killed = [sys.executable, "-c", PROBER, metastore.uri, namespace]
    assert subprocess.run(killed, check=False).returncode == -signal.SIGKILL
    foreign = scratch_rows.scratch_row(namespace, _name_of_another_machine(), "1")
    client.create_table(foreign)
    assert len(client.list_tables(namespace)) == 2
    assert (catalog.list_tables(namespace), catalog.list_views(namespace)) == ([], [])
    forget_support(monkeypatch)
    assert capability.supports_compare_and_swap(client, namespace) is True
    assert client.list_tables(namespace) == [foreign.tableName], "of a process that may live"
    with monkeypatch.context() as patch:
        patch.setattr(scratch_rows, "_MAX_AGE_SECONDS", -1.0)
        scratch_rows.drop_left_behind(client, namespace)
    assert client.list_tables(namespace) == []
    assert subprocess.run(killed, check=False).returncode == -signal.SIGKILL
    table = catalog.create_table((namespace, "events"), pa.schema([pa.field("id", pa.int64())]))
    with pytest.raises(NamespaceNotEmptyError):
        catalog.drop_namespace(namespace)
    catalog.drop_table(table.identifier)
    catalog.drop_namespace(namespace)
    assert not catalog.namespace_exists(namespace)


def test_a_server_that_ignores_the_comparison_is_recognised(client: HmsClient, monkeypatch: pytest.MonkeyPatch) -> None:
    forget_support(monkeypatch)
    alter = client.alter_table
    monkeypatch.setattr(client, "alter_table", lambda db, name, row, environment=None: alter(db, name, row))
    assert capability.supports_compare_and_swap(client, "default") is False
    assert not [name for name in client.list_tables("default") if "probe" in name]


def test_a_probe_that_arrives_twice_finds_compare_and_swap(
    metastore: EmbeddedMetastore, monkeypatch: pytest.MonkeyPatch
) -> None:
    forget_support(monkeypatch)
    with ThriftProxy(metastore.port) as proxy:
        doubled = HmsClient(ClientSettings.from_properties({"uri": proxy.uri}))
        for method in ("create_table", "alter_table_with_environment_context", "drop_table_with_environment_context"):
            proxy.on(method, Fault.DOUBLE_REQUEST, times=2)
        assert capability.supports_compare_and_swap(doubled, "default") is True
        doubled.close()


def test_a_server_that_refuses_every_comparison_is_recognised(
    client: HmsClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    forget_support(monkeypatch)
    alter = client.alter_table

    def always_wrong(database: str, name: str, row: object, environment: object = None) -> None:
        alter(database, name, row, capability.expectation("hms_iceberg.probe", "never"))

    monkeypatch.setattr(client, "alter_table", always_wrong)
    assert capability.supports_compare_and_swap(client, "default") is False
