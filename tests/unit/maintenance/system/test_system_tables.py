"""All tables as rows: by the rows of a metastore, or by loading each; one damaged table is never another's."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hms_iceberg import load_catalog
from hms_iceberg.arrow.columns.arrow_schema import to_arrow
from hms_iceberg.cli.main import main
from hms_iceberg.errors import ConfigurationError, InvalidInputError, MetastoreUnavailableError
from hms_iceberg.maintenance import system_table
from hms_iceberg.maintenance.service.service import MaintenanceService
from hms_iceberg.maintenance.system import SYSTEM_TABLES, system_schema
from hms_iceberg.maintenance.system.request import Selected
from hms_iceberg.maintenance_policy import Policies, Policy
from hms_iceberg.metastore import ListedTable, TableKind
from hms_iceberg.report import portrait_of
from tests.unit.maintenance.service.test_service import make


@pytest.fixture
def catalog(tmp_path: Path) -> Any:
    found = load_catalog("files", type="hadoop", warehouse=str(tmp_path))
    for name in ("web", "raw"):
        found.create_namespace(name)
    return found


@pytest.fixture
def tables(catalog: Any) -> dict[str, Any]:
    """A table of small files, one with deletes, an empty one, and one whose manifest list is gone."""
    found = {
        name: make(catalog, name, files) for name, files in (("web.small", 6), ("raw.empty", 0), ("web.broken", 6))
    }
    found["raw.deletes"] = make(catalog, "raw.deletes", 3)
    found["raw.deletes"].delete("id = 1")
    with found["raw.deletes"].new_row_delta() as delta:
        delta.delete_equal(pa.table({"id": pa.array([0]), "city": ["Bonn"]}), columns=["id", "city"])
    broken = found["web.broken"]
    broken.storage.delete(broken.current_snapshot().manifest_list)
    return {name: table.refresh() for name, table in sorted(found.items())}


class Rows:
    """A metastore that tells of everything in bulk."""

    def __init__(self, *rows: ListedTable) -> None:
        self._rows = rows

    def listed(self, of_namespace: Any, of_table: Any) -> Any:
        return (each for each in self._rows if of_namespace(each.identifier[0]) and of_table(each.identifier))


def by_name(told: pa.Table) -> dict[str, dict[str, Any]]:
    return {f"{each['namespace']}.{each['table']}": each for each in told.to_pylist()}


def test_tables_are_told_with_what_they_hold(catalog: Any, tables: dict[str, Any]) -> None:
    told = by_name(system_table(catalog, "tables"))
    assert list(told) == list(tables)
    found, current = told["web.small"], tables["web.small"].current_snapshot()
    assert (found["kind"], found["location"]) == ("iceberg", tables["web.small"].location())
    assert (found["rows"], found["data_files"], found["delete_files"], found["snapshots"]) == (12, 6, 0, 6)
    assert found["snapshot_id"] == current.snapshot_id
    assert found["committed_at"] == datetime.fromtimestamp(current.timestamp_ms / 1000, timezone.utc)
    assert found["bytes"] == sum(each.file.file_size_in_bytes for each in tables["web.small"].scan().plan_files())
    assert found["average_file_bytes"] == found["bytes"] // 6 and 0 <= found["age_seconds"] < 600
    deletes = told["raw.deletes"]
    assert (deletes["delete_files"], deletes["position_deletes"], deletes["equality_deletes"]) == (2, 1, 1)
    assert told["raw.empty"]["snapshot_id"] is None and told["raw.empty"]["error"] is None
    assert told["web.broken"]["error"] is None, "its snapshot is not looked at"


def test_snapshots_are_those_of_each_table(catalog: Any, tables: dict[str, Any]) -> None:
    told = system_table(catalog, "snapshots")
    expected = []
    for name, table in tables.items():
        namespace, own = name.split(".")
        for row in table.inspect.snapshots().to_pylist():
            is_current = row["snapshot_id"] == table.metadata.current_snapshot_id
            expected.append({"namespace": namespace, "table": own, **row, "is_current": is_current, "error": None})
    assert told.to_pylist() == expected and len(expected) > 12


def test_the_health_of_files_is_that_of_their_metadata_tables(catalog: Any, tables: dict[str, Any]) -> None:
    policies = Policies(Policy(compact_target_bytes=4 * 2**20))
    told = by_name(system_table(catalog, "files_health", policies=policies))
    assert list(told) == list(tables)
    for name in ("raw.empty", "raw.deletes", "web.small"):
        inspect, found = tables[name].inspect, told[name]
        files, deletes = inspect.data_files().to_pylist(), inspect.delete_files().to_pylist()
        assert (found["rows"], found["data_files"]) == (sum(each["record_count"] for each in files), len(files))
        assert found["data_bytes"] == sum(each["file_size_in_bytes"] for each in files)
        assert found["target_file_bytes"] == 4 * 2**20
        assert (found["small_files"], found["small_bytes"], found["large_files"]) == (
            len(files),
            found["data_bytes"],
            0,
        )
        assert found["delete_bytes"] == sum(each["file_size_in_bytes"] for each in deletes)
        contents = [each["content"] for each in deletes]
        assert (found["position_delete_files"], found["equality_delete_files"]) == (
            contents.count(1),
            contents.count(2),
        )
        assert found["manifests"] == inspect.manifests().num_rows and found["error"] is None
    assert (told["raw.deletes"]["files_with_deletes"], told["raw.deletes"]["deleted_positions"]) == (2, 1)
    assert told["web.broken"]["error"].startswith("MissingFileError: ") and told["web.broken"]["rows"] is None
    portrait = portrait_of(tables["raw.deletes"])
    assert (portrait.data_bytes, portrait.equality_delete_files) == (told["raw.deletes"]["data_bytes"], 1)


def test_vectors_and_dangling_deletes_are_counted(catalog: Any) -> None:
    table = make(catalog, "web.vectors", 3, version=3)
    table.delete("id in (0, 1)")
    (told,) = system_table(catalog, "files_health").to_pylist()
    assert (told["deletion_vectors"], told["position_delete_files"], told["dangling_delete_files"]) == (2, 0, 0)
    paths = {each["file_path"]: each["file_size_in_bytes"] for each in table.inspect.delete_files().to_pylist()}
    assert told["delete_bytes"] == sum(paths.values())
    keyed = make(catalog, "web.keyed", 2)
    with keyed.new_row_delta() as delta:
        delta.delete_equal(pa.table({"id": pa.array([999]), "city": ["Bonn"]}), columns=["id", "city"])
    (told,) = system_table(catalog, "files_health", ("web.keyed",)).to_pylist()
    assert (told["dangling_delete_files"], told["equality_delete_files"], told["files_with_deletes"]) == (1, 0, 0)


def test_maintenance_is_what_a_dry_run_of_the_service_says(catalog: Any, tables: dict[str, Any]) -> None:
    policies = Policies(Policy(compact_min_files=3))
    steps = MaintenanceService(catalog, policies=policies).run(dry_run=True).steps
    told = system_table(catalog, "maintenance", policies=policies).to_pylist()
    found = [
        (f"{each['namespace']}.{each['table']}", each["action"] or "", each["why"] or "", each["error"] or "")
        for each in told
    ]
    assert found == [(each.table, each.action, each.why, each.result) for each in steps]
    assert {("web.small", "rewrite_data_files"), ("web.broken", "")} <= {each[:2] for each in found}
    assert all(each["input_bytes"] for each in told if each["action"] == "rewrite_data_files")


def test_the_policy_file_of_a_catalog_is_what_all_follow(
    catalog: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make(catalog, "web.small", 3)
    policy = tmp_path / "policy.yaml"
    policy.write_text("default: {compact-min-files: 2, compact-target-bytes: 4096}\n", "utf-8")
    assert system_table(catalog, "maintenance").num_rows == 0
    where = {"type": "hadoop", "warehouse": str(tmp_path), "maintenance-policy": str(policy)}
    with_policy = load_catalog("files", **where)
    (told,) = system_table(with_policy, "maintenance").to_pylist()
    assert told["action"] == "rewrite_data_files"
    (health,) = system_table(with_policy, "files_health").to_pylist()
    assert health["target_file_bytes"] == 4096
    options = [word for name, value in where.items() for word in ("-p", f"{name}={value}")]
    assert main(["maintain", "--dry-run", *options]) == 0
    assert told["why"] in capsys.readouterr().out
    assert main(["report", "web.small", "--output", "json", *options]) == 0
    (portrait,) = json.loads(capsys.readouterr().out)
    assert [(each["action"], each["why"]) for each in portrait["advice"]] == [(told["action"], told["why"])]
    policy.write_text("default: {compact-min-file: 2}\n", "utf-8")
    with pytest.raises(ConfigurationError, match="compact-min-file"):
        system_table(with_policy, "maintenance")


def test_only_wanted_tables_are_loaded(catalog: Any, tables: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = []
    load = type(catalog).load_table
    monkeypatch.setattr(type(catalog), "load_table", lambda self, name: (loaded.append(name), load(self, name))[1])
    for name in set(SYSTEM_TABLES) - {"locks"}:
        loaded.clear()
        assert set(by_name(system_table(catalog, name, ("web.s*", "raw.deletes")))) == {"web.small", "raw.deletes"}
        assert sorted(loaded) == [("raw", "deletes"), ("web", "small")]


@pytest.mark.parametrize(
    ("patterns", "namespaces"),
    [(("web.*",), "web"), (("*",), "web raw"), (("w*",), "web raw"), (("[rw]*.t", "web.a"), "web raw"), ((), "")],
)
def test_namespaces_that_no_pattern_means_are_not_listed(patterns: tuple[str, ...], namespaces: str) -> None:
    selected = Selected.by_patterns(patterns)
    assert [each for each in ("web", "raw") if selected.of_namespace(each)] == namespaces.split()


def test_the_rows_of_a_metastore_are_enough(catalog: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    summary = {"total-records": "7", "total-data-files": "2", "total-delete-files": "1", "total-files-size": "300"}
    current = {"current-snapshot-id": "42", "current-snapshot-timestamp-ms": "1000", "snapshot-count": "3"}
    hive = {"numFiles": "2", "numRows": "7", "totalSize": "300"}
    whole = {"metadata_location": "m", **hive, **current, "current-snapshot-summary": json.dumps(summary)}
    cut = {**whole, "current-snapshot-summary": '{"total-rec'}
    rows = Rows(
        ListedTable(("db", "whole"), TableKind.ICEBERG, "s3://b/whole", whole),
        ListedTable(("db", "cut"), TableKind.ICEBERG, "s3://b/cut", cut),
        ListedTable(("db", "hive"), TableKind.HIVE, "s3://b/hive", hive),
        ListedTable(("db", "bare"), TableKind.ICEBERG, "s3://b/bare", {"metadata_location": "s3://b/bare/m.json"}),
        ListedTable(("db", "lost"), TableKind.ICEBERG, "s3://b/lost", current),
        ListedTable(("db", "view"), TableKind.HIVE_VIEW),
        ListedTable(("db", "secret"), None, error="MetastoreError: no"),
        ListedTable(("private",), None, error="MetastoreError: never"),
    )
    monkeypatch.setattr(type(catalog.metastore), "table_rows", rows, raising=False)
    told = by_name(system_table(catalog, "tables"))
    assert list(told) == [f"db.{each}" for each in ["bare", "cut", "hive", "lost", "secret", "view", "whole"]] + [
        "private.None"
    ]
    assert told["db.whole"] | {"age_seconds": 0} == {
        "namespace": "db",
        "table": "whole",
        "kind": "iceberg",
        "location": "s3://b/whole",
        "rows": 7,
        "data_files": 2,
        "delete_files": 1,
        "position_deletes": None,
        "equality_deletes": None,
        "bytes": 300,
        "average_file_bytes": 150,
        "snapshots": 3,
        "snapshot_id": 42,
        "committed_at": datetime(1970, 1, 1, 0, 0, 1, tzinfo=timezone.utc),
        "age_seconds": 0,
        "error": None,
    }
    assert [told["db.cut"][key] for key in ("rows", "data_files", "delete_files", "bytes")] == [7, 2, None, 300]
    assert [told["db.hive"][key] for key in ("kind", "rows", "snapshots", "error")] == ["hive", 7, None, None]
    for name in ("db.bare", "db.lost"):
        assert told[name]["rows"] is None and told[name]["error"].startswith("NoSuch"), "it is loaded, and not there"
    assert (told["db.view"]["kind"], told["db.view"]["location"]) == ("hive view", None)
    assert [told[each]["error"] for each in ("db.secret", "private.None")] == [
        "MetastoreError: no",
        "MetastoreError: never",
    ]
    deep = by_name(system_table(catalog, "maintenance"))
    assert list(deep) == ["db.secret", "private.None"] and deep["db.secret"]["error"] == "MetastoreError: no"


def test_a_metastore_that_is_gone_ends_the_query(catalog: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    make(catalog, "web.small", 1)

    def gone(self: object, name: object) -> None:
        raise MetastoreUnavailableError("gone")

    monkeypatch.setattr(type(catalog), "load_table", gone)
    with pytest.raises(MetastoreUnavailableError):
        system_table(catalog, "files_health")


def test_every_system_table_has_its_columns_without_any_table(catalog: Any) -> None:
    for name in SYSTEM_TABLES:
        told = system_table(catalog, name)
        assert told.num_rows == 0 and told.schema.equals(to_arrow(system_schema(name), field_ids=False)), name
        assert all(each.doc for each in system_schema(name).fields if name != "snapshots"), name
    with pytest.raises(InvalidInputError, match="No system table 'locke': expected one of tables, "):
        system_table(catalog, "locke")


def test_the_command_lists_them(catalog: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make(catalog, "web.small", 6)
    make(catalog, "raw.other", 1)
    where = ["-p", "type=hadoop", "-p", f"warehouse={tmp_path}"]
    assert main(["list", "--long", "--needs", *where]) == 0
    header, other, small = (line.split("\t") for line in capsys.readouterr().out.splitlines())
    assert (header[0], header[-1]) == ("table", "needs")
    assert (small[0], small[1], small[2], small[6]) == ("web.small", "12", "6", "6") and "rewrite_data_files" in small[
        -1
    ]
    assert (other[0], other[-1]) == ("raw.other", "")
    assert main(["list", "web", "-l", "--output", "json", *where]) == 0
    [told] = json.loads(capsys.readouterr().out)
    assert (told["table"], told["data_files"]) == ("small", 6)
    assert main(["list", "nosuch", "-l", *where]) == 1
    assert main(["list", "--needs", *where]) == 2
