"""`hms-iceberg migrate` and `rollback-migration` on the real metastore."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from hms_iceberg.catalog import Catalog
from hms_iceberg.cli.main import main
from hms_iceberg.hms.embedded import EmbeddedMetastore
from tests.support.hive_warehouse import HiveWarehouse


@pytest.fixture
def table(catalog: Catalog, namespace: str) -> str:
    """A Hive table of three rows in two partitions; its full name."""
    warehouse = HiveWarehouse(catalog, namespace)
    warehouse.create("flights", "id int, at timestamp", "month int")
    for month, ids in (("1", [1, 2]), ("2", [3])):
        at = pa.array([0] * len(ids), pa.timestamp("us", tz="UTC"))
        warehouse.add_partition("flights", [month], pa.table({"id": pa.array(ids, pa.int32()), "at": at}))
    return f"{namespace}.flights"


def test_a_table_is_checked_migrated_and_taken_back(
    table: str, catalog: Catalog, metastore: EmbeddedMetastore, capsys: pytest.CaptureFixture[str]
) -> None:
    uri = ["--uri", metastore.uri]

    assert main(["migrate", table, *uri, "--dry-run"]) == 0
    assert f"{table} can be migrated: 2 files" in capsys.readouterr().out

    assert main(["migrate", table, *uri, "--table-property", "team=ops", "--threads", "2"]) == 0
    said = capsys.readouterr().out
    assert f"{table} is an Iceberg table: 2 files" in said
    assert "3 rows) in 2 partitions" in said
    assert f"hms-iceberg rollback-migration {table}" in said
    migrated = catalog.load_table(table)
    assert migrated.properties["team"] == "ops"
    assert str(migrated.schema().find_field("at").field_type) == "timestamptz"

    assert main(["migrate", table, *uri]) == 0
    assert "is an Iceberg table already" in capsys.readouterr().out
    assert main(["migrate", table, *uri, "--output", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["already_done"]

    assert main(["rollback-migration", table, "--dry-run", *uri]) == 0
    said = capsys.readouterr().out
    assert f"{table} can be the Hive table again that it was, with 2 files." in said
    assert f"keeps them as long as {table}_backup_ is there. Nothing was changed." in said
    assert catalog.table_exists(table)
    migrated.delete("id = 1")
    assert main(["rollback-migration", table, "--dry-run", "--discard-changes", *uri]) == 0
    assert "1 of them are not in the Iceberg table's present version" in capsys.readouterr().out
    assert main(["rollback-migration", table, *uri]) == 1
    assert "--discard-changes. Nothing was changed" in capsys.readouterr().err

    assert main(["rollback-migration", table, "--discard-changes", *uri]) == 0
    assert f"{table} is the Hive table it was, with 2 files. 1 snapshots were discarded." in capsys.readouterr().out
    assert not catalog.table_exists(table)


def test_the_hive_table_that_may_be_meant_is_proposed(
    table: str, metastore: EmbeddedMetastore, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["migrate", f"{table[:-1]}", "--uri", metastore.uri]) == 1
    assert capsys.readouterr().err.endswith(f"Did you mean {table}?\n")


def test_the_type_of_timestamps_can_be_chosen(table: str, catalog: Catalog, metastore: EmbeddedMetastore) -> None:
    assert main(["migrate", table, "--uri", metastore.uri, "--timestamp-type", "timestamp"]) == 0

    assert str(catalog.load_table(table).schema().find_field("at").field_type) == "timestamp"


def test_the_metastore_can_come_from_the_configuration(
    table: str, metastore: EmbeddedMetastore, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG__PROD__URI", metastore.uri)

    assert main(["migrate", table, "--catalog", "prod", "--dry-run"]) == 0

    assert "can be migrated" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["migrate", "{ns}.nothing"], 1, "Error: Table {ns}.nothing does not exist in the metastore"),
        (["migrate", "nothing"], 1, "Error: Not the name of a table: 'nothing'"),
        (["rollback-migration", "{ns}.nothing"], 1, "there is no trace of a migration"),
        (["migrate", "{ns}.t", "--table-property", "novalue"], 2, "expected KEY=VALUE"),
        (["migrate", "{ns}.t", "--timestamp-type", "date"], 2, "is not one of"),
    ],
)
def test_a_mistake_is_one_clear_line(
    words: list[str],
    code: int,
    said: str,
    namespace: str,
    metastore: EmbeddedMetastore,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([*(word.format(ns=namespace) for word in words), "--uri", metastore.uri]) == code

    assert said.format(ns=namespace) in capsys.readouterr().err


def test_a_metastore_that_is_down_is_one_clear_line(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["-p", "hive.metastore.connect.retries=1", "--uri", "thrift://127.0.0.1:1"]

    assert main(["migrate", "db.t", *words]) == 1

    said = capsys.readouterr().err
    assert said.startswith("Error: No Hive Metastore answered at thrift://127.0.0.1:1")
    assert said.count("\n") == 1
