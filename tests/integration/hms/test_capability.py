"""Whether a server compares before it alters is found out on a scratch row, once, and the row goes away again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pytest

from hms_iceberg.catalog import Catalog
from hms_iceberg.errors import MetastoreError, NamespaceNotEmptyError
from hms_iceberg.hms.commit import capability, scratch_rows
from hms_iceberg.hms.commit.capability import Capability
from hms_iceberg.hms.connection.client import HmsClient
from hms_iceberg.hms.connection.client_settings import ClientSettings
from hms_iceberg.hms.connection.thrift_types import ttypes
from hms_iceberg.hms.embedded import EmbeddedMetastore
from tests.support.thrift_proxy import Fault, ThriftProxy


@pytest.fixture
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No process of this machine has noted anything yet."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)


@pytest.fixture
def probes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The databases that scratch views were made in."""
    made: list[str] = []
    probe = capability._probe_until_answered

    def count(client: HmsClient, database: str) -> bool:
        made.append(database)
        return probe(client, database)

    monkeypatch.setattr(capability, "_probe_until_answered", count)
    return made


@pytest.mark.parametrize(
    ("version", "compares"), [("4.0.0", None), ("4.0.1", True), ("10.1.0", True), ("4.1.0-7.3.1", None), ("3.0", None)]
)
def test_a_release_of_hive_4_is_known_by_its_version_and_needs_no_probe(
    client: HmsClient, probes: list[str], version: str, compares: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "version", lambda: version)
    assert capability.compares_by_release(client) is compares
    if compares:
        known = Capability(client)
        assert known.compares_for_certain("default") and known.compares_under_a_lock()
        assert probes == []


def test_hive_3_is_known_by_a_setting_and_tried_out_only_where_a_commit_depends_on_it(
    client: HmsClient, probes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "config_value", lambda name, default: "")
    known = Capability(client)
    assert not known.compares_under_a_lock()
    assert probes == []
    assert known.compares_for_certain("default"), "a vendor's build may compare"
    assert known.compares_under_a_lock(), "what is certain holds for every commit"


@pytest.mark.usefixtures("notes")
def test_what_one_process_found_out_another_one_believes_for_its_commits_under_a_lock_only(
    client: HmsClient, probes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(2):
        known = Capability(client)
        assert known.compares_under_a_lock() and known.compares_under_a_lock()
    assert len(probes) == 1
    assert known.compares_for_certain("default")
    assert len(probes) == 2, "what no lock stands behind is tried by every process"
    monkeypatch.setattr(capability, "_NOTE_SECONDS", -1.0)
    assert Capability(client).compares_under_a_lock()
    assert len(probes) == 3, "a note grows old"


@pytest.mark.usefixtures("notes")
def test_no_scratch_view_is_made_in_a_database_of_the_user_unless_it_must_be_and_cannot_be_elsewhere(
    client: HmsClient, catalog: Catalog, namespace: str, probes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    create = client.create_table

    def refuse(row: ttypes.Table) -> None:
        if row.dbName == "default":
            raise MetastoreError("no permission")
        create(row)

    assert Capability(client).compares_for_certain(namespace)
    assert probes == ["default"]
    probes.clear()
    capability._note(str(client.pool)).unlink()
    monkeypatch.setattr(client, "create_table", refuse)
    known = Capability(client)
    assert not known.compares_under_a_lock() and not known.compares_under_a_lock()
    assert probes == ["default"], "asked once, and trusted with nothing"
    assert known.compares_for_certain(namespace)
    assert probes == ["default", "default", namespace]


def test_the_probe_finds_compare_and_swap_and_leaves_nothing_behind(client: HmsClient) -> None:
    before = client.list_tables("default")
    assert Capability(client).compares_for_certain("default") is True
    assert client.list_tables("default") == before


PROBER = """
import os, signal, sys
from hms_iceberg.hms.commit import capability
from hms_iceberg.hms.connection.client import HmsClient
from hms_iceberg.hms.connection.client_settings import ClientSettings
capability._refuses_wrong_value = lambda *arguments: os.kill(os.getpid(), signal.SIGKILL)
client = HmsClient(ClientSettings.from_properties({"uri": sys.argv[1]}))
capability._probe_until_answered(client, sys.argv[2])
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
    assert capability._probe_until_answered(client, namespace) is True
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
    alter = client.alter_table
    monkeypatch.setattr(client, "alter_table", lambda db, name, row, environment=None: alter(db, name, row))
    assert capability._probe_until_answered(client, "default") is False
    assert not [name for name in client.list_tables("default") if "probe" in name]


def test_a_probe_that_arrives_twice_finds_compare_and_swap(
    metastore: EmbeddedMetastore, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ThriftProxy(metastore.port) as proxy:
        doubled = HmsClient(ClientSettings.from_properties({"uri": proxy.uri}))
        for method in ("create_table", "alter_table_with_environment_context", "drop_table_with_environment_context"):
            proxy.on(method, Fault.DOUBLE_REQUEST, times=2)
        assert capability._probe_until_answered(doubled, "default") is True
        doubled.close()


def test_a_server_that_refuses_every_comparison_is_recognised(
    client: HmsClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    alter = client.alter_table

    def always_wrong(database: str, name: str, row: object, environment: object = None) -> None:
        alter(database, name, row, capability.expectation("hms_iceberg.probe", "never"))

    monkeypatch.setattr(client, "alter_table", always_wrong)
    assert capability._probe_until_answered(client, "default") is False
