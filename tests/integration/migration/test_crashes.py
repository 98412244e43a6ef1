"""A migration, or a way back, that is killed after each of its changes: the same command, or the other, mends it.

For some, a spread of the changes is taken; HMS_ICEBERG_TESTS=all takes all.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hms_iceberg.catalog import Catalog
from hms_iceberg.errors import MigrationError, UnsupportedError
from hms_iceberg.hms.connection.thrift_types import ttypes
from hms_iceberg.hms.embedded import EmbeddedMetastore
from hms_iceberg.hms.hive_metastore import HiveMetastore
from hms_iceberg.hms.hive_tables import HiveRowChange, HiveTables
from hms_iceberg.migration import (
    Follower,
    MigrationOptions,
    add_hive_files,
    migrate,
    migrate_warehouse,
    plan_warehouse,
    rollback,
    snapshot,
)
from hms_iceberg.migration.migration_journal import Journal, MigrationRecord
from hms_iceberg.migration.migration_state import staging_name
from hms_iceberg.migration.rewrite import rewrite
from hms_iceberg.migration.undo import recovery
from hms_iceberg.processes import Process
from hms_iceberg.table import Table
from tests.support.crash_server import DEAD, Crash
from tests.support.fixed_rows import FixedRows
from tests.support.hive_warehouse import HiveWarehouse, Rows, all_files, data_files, write_files
from tests.support.spread import ALL, changes

pytestmark = pytest.mark.slow

TEXT = {"serdeInfo": ttypes.SerDeInfo(serializationLib="org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe")}


@pytest.fixture(autouse=True)
def _settling_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recovery, "SETTLED_SECONDS", 0.6)


@pytest.fixture
def warehouse(catalog: Catalog, namespace: str) -> HiveWarehouse:
    return HiveWarehouse(catalog, namespace)


def make(warehouse: HiveWarehouse, name: str, partitioned: bool, storage: dict[str, Any] | None = None) -> Rows:
    """A managed table of three rows in two files."""
    keys = "k int" if partitioned else ""
    made = warehouse.create(name, "id int", keys, parameters={"team": "ops"}, **(storage or {}))
    tables = [pa.table({"id": pa.array(each, pa.int32())}) for each in ([1, 2], [3])]
    if partitioned:
        for number, table in enumerate(tables):
            warehouse.add_partition(name, [str(number)], table)
    else:
        write_files(made.table.sd.location, *tables)
    return warehouse.rows(name)


def ids(warehouse: HiveWarehouse, name: str) -> list[int]:
    return sorted(warehouse.catalog.load_table((warehouse.namespace, name)).scan().to_arrow()["id"].to_pylist())


def is_iceberg(warehouse: HiveWarehouse, name: str) -> bool:
    return warehouse.catalog.table_exists((warehouse.namespace, name))


def assert_is_migrated(
    warehouse: HiveWarehouse, name: str, before: Rows, files: dict[str, tuple[int, int, int]]
) -> None:
    assert ids(warehouse, name) == [1, 2, 3]
    assert data_files(before.location) == files
    backup = warehouse.rows(f"{name}_backup_")
    assert [row.sd.location for row in backup.partitions] == [row.sd.location for row in before.partitions]
    assert backup.table.parameters["external.table.purge"] == "false"
    assert not warehouse.exists(f"{name}__iceberg_staging")


def assert_is_as_before(
    warehouse: HiveWarehouse, name: str, before: Rows, files: dict[str, tuple[int, int, int]]
) -> None:
    assert warehouse.rows(name) == before
    assert data_files(before.location) == files
    assert all_files(before.location) == set(files)
    assert not warehouse.exists(f"{name}_backup_")
    assert not warehouse.exists(f"{name}__iceberg_staging")


@pytest.mark.parametrize("partitioned", [True, False], ids=["partitioned", "unpartitioned"])
@pytest.mark.parametrize("mend", ["migrate", "rollback"])
def test_a_migration_killed_after_any_change_is_mended_by_either_command(
    warehouse: HiveWarehouse, crash: Crash, partitioned: bool, mend: str
) -> None:
    for points in changes(3 * (mend == "rollback") + 6 * partitioned, 12):
        name = f"t{points}"
        before = make(warehouse, name, partitioned)
        files = data_files(before.location)
        code = crash("migrate", f"{warehouse.namespace}.{name}", points)
        assert data_files(before.location) == files
        if mend == "migrate":
            migrate(warehouse.catalog, (warehouse.namespace, name))
            assert_is_migrated(warehouse, name, before, files)
        elif points > 0:  # before the first change there is nothing to roll back
            rollback(warehouse.catalog, (warehouse.namespace, name))
            assert_is_as_before(warehouse, name, before, files)
        if code != DEAD:
            break

    assert points > 10


@pytest.mark.parametrize("partitioned", [True, False], ids=["partitioned", "unpartitioned"])
@pytest.mark.parametrize("mend", ["migrate", "rollback"])
def test_a_way_back_killed_after_any_change_is_mended_by_either_command(
    warehouse: HiveWarehouse, crash: Crash, partitioned: bool, mend: str
) -> None:
    for points in changes(3 * (mend == "rollback") + 6 * partitioned, 12):
        name = f"t{points}"
        before = make(warehouse, name, partitioned)
        files = data_files(before.location)
        migrate(warehouse.catalog, (warehouse.namespace, name))
        code = crash("rollback", f"{warehouse.namespace}.{name}", points)
        assert data_files(before.location) == files
        if mend == "migrate":
            migrate(warehouse.catalog, (warehouse.namespace, name))
            assert_is_migrated(warehouse, name, before, files)
        elif code == DEAD and (is_iceberg(warehouse, name) or not _is_clean(warehouse, name, before, files)):
            rollback(warehouse.catalog, (warehouse.namespace, name))
            assert_is_as_before(warehouse, name, before, files)
        else:
            assert_is_as_before(warehouse, name, before, files)
        if code != DEAD:
            break

    assert points > 8


@pytest.mark.parametrize("partitioned", [True, False], ids=["partitioned", "unpartitioned"])
def test_a_way_back_killed_after_any_change_is_mended_without_harm_to_a_registered_copy(
    warehouse: HiveWarehouse, crash: Crash, partitioned: bool
) -> None:
    def notes() -> list[str]:
        return [path for path in all_files(before.location) if "_hive-migration" in path]

    for points in changes(4 * partitioned, 9):
        name = f"t{points}"
        source, copy = f"{warehouse.namespace}.{name}", f"{warehouse.namespace}.{name}_copy"
        before = make(warehouse, name, partitioned)
        files = data_files(before.location)
        migrate(warehouse.catalog, source)
        warehouse.catalog.register_table(copy, warehouse.catalog.load_table(source).metadata_location)
        warehouse.catalog.load_table(copy).set_properties({"own": "yes"})
        code = crash("rollback", source, points)
        if code == DEAD and (is_iceberg(warehouse, name) or notes()):
            rollback(warehouse.catalog, source)
        assert not notes()
        assert warehouse.rows(name) == before and data_files(before.location) == files
        assert ids(warehouse, f"{name}_copy") == [1, 2, 3]
        assert warehouse.catalog.load_table(copy).properties["own"] == "yes"
        if code != DEAD:
            break

    assert points > 12


@pytest.mark.parametrize(("partitioned", "mend"), [(True, "rewrite"), (False, "rollback")])
def test_a_copy_killed_after_any_change_is_mended_and_leaves_no_rows_behind(
    warehouse: HiveWarehouse, crash: Crash, partitioned: bool, mend: str
) -> None:
    for points in changes(6 * partitioned, 12):
        name = f"t{points}"
        before = make(warehouse, name, partitioned, TEXT)
        files = all_files(before.location)
        code = crash("rewrite", f"{warehouse.namespace}.{name}", points)
        if mend == "rewrite":
            rewrite(warehouse.catalog, f"{warehouse.namespace}.{name}", rows=FixedRows(warehouse.catalog))
            assert ids(warehouse, name) == [1, 2, 3] and warehouse.exists(f"{name}_backup_")
            assert len(list(before.location.parent.glob(f"{name}__*/data/**/*.parquet"))) == (2 if partitioned else 1)
            assert {name.rpartition("/")[0] for name in all_files(before.location) - files} == {"_iceberg/metadata"}
        elif points > 0:
            rollback(warehouse.catalog, (warehouse.namespace, name))
            assert warehouse.rows(name) == before and not list(before.location.parent.glob(f"{name}__*/**/*.*"))
            assert not warehouse.exists(f"{name}_backup_")
            assert all_files(before.location) == files
        assert data_files(before.location).keys() == files and not warehouse.exists(f"{name}__iceberg_staging")
        if code != DEAD:
            break

    assert points > 10


def test_a_copy_killed_in_the_second_attempt_of_its_commit_is_mended(warehouse: HiveWarehouse, crash: Crash) -> None:
    versions: list[Path] = []
    for points in count(5):
        before = make(warehouse, f"t{points}", False, TEXT)
        assert crash("rewrite", f"{warehouse.namespace}.t{points}", points) == DEAD
        versions = list(before.location.parent.glob(f"t{points}__*/metadata/00001-*.metadata.json"))
        if versions:
            break
    # An attempt that lost to another one leaves such a file.
    shutil.copy(versions[0], versions[0].with_name(f"00001-{uuid.uuid4()}.metadata.json"))

    rewrite(warehouse.catalog, f"{warehouse.namespace}.t{points}", rows=FixedRows(warehouse.catalog))

    assert ids(warehouse, f"t{points}") == [1, 2, 3]


def test_a_new_plan_of_the_warehouse_goes_on_with_copies_that_were_killed(
    warehouse: HiveWarehouse, crash: Crash
) -> None:
    names = ["t3", "t6", "t9"]
    for name in names:
        make(warehouse, name, False, TEXT)
        assert crash("rewrite", f"{warehouse.namespace}.{name}", int(name[1:])) == DEAD
    make(warehouse, "between", True)
    migrate(warehouse.catalog, f"{warehouse.namespace}.between")
    hive = HiveTables.of(warehouse.catalog.metastore)
    hive.rename(warehouse.namespace, "between", staging_name("between"))
    make(warehouse, "after", False)
    migrate(warehouse.catalog, f"{warehouse.namespace}.after")
    hive.copy(warehouse.namespace, "after", staging_name("after"), HiveRowChange({}))
    names += ["between", "after"]

    plan = plan_warehouse(warehouse.catalog, [f"{warehouse.namespace}.*"])
    migrate_warehouse(
        warehouse.catalog,
        plan,
        rewrite=lambda catalog, name, options: rewrite(catalog, name, options, rows=FixedRows(catalog)),
    )

    assert [ids(warehouse, name) for name in names] == [[1, 2, 3]] * 5
    assert warehouse.names() == sorted([*names, *(f"{name}_backup_" for name in names)])


@pytest.mark.parametrize("command", ["snapshot", "follow", "add_files"])
def test_a_table_over_hives_files_is_made_by_the_same_command_after_a_kill_at_any_change(
    warehouse: HiveWarehouse, crash: Crash, command: str
) -> None:
    for points in changes(1, 7):
        name = f"t{points}"
        source, copy = f"{warehouse.namespace}.{name}", f"{warehouse.namespace}.{name}_copy"
        before = make(warehouse, name, partitioned=True)
        if command != "snapshot":
            snapshot(warehouse.catalog, source, copy)
        if command == "add_files":
            warehouse.catalog.load_table(copy).delete()
        elif command == "follow":
            (before.location / "k=0" / "000000_0").rename(before.location / "k=0" / "000009_0")
        files = data_files(before.location)
        code = crash(command, source, points)
        if command == "follow":
            Follower(warehouse.catalog, source, copy).round()
        elif command == "snapshot" and not warehouse.catalog.table_exists(copy):
            snapshot(warehouse.catalog, source, copy)
        elif command == "add_files" and not ids(warehouse, f"{name}_copy"):
            add_hive_files(warehouse.catalog, copy, source)
        assert ids(warehouse, f"{name}_copy") == [1, 2, 3]
        assert data_files(before.location) == files and warehouse.rows(name) == before
        if code != DEAD:
            break

    assert points > 3


BACK = [("as hive", True), ("migrate", False), *([("as hive", False), ("migrate", True)] if ALL else [])]


@pytest.mark.parametrize(("mend", "partitioned"), [*BACK, *([("rollback", True), ("rollback", False)] if ALL else [])])
def test_a_way_back_with_appended_rows_killed_after_any_change_loses_none_and_doubles_none(
    warehouse: HiveWarehouse, crash: Crash, partitioned: bool, mend: str
) -> None:
    for points in changes(8 * partitioned, 16):
        name = f"t{points}"
        source = f"{warehouse.namespace}.{name}"
        before = make(warehouse, name, partitioned)
        files = data_files(before.location)
        migrate(warehouse.catalog, source)
        more = {"id": pa.array([4, 5], pa.int32()), **({"k": pa.array([0, 9], pa.int32())} if partitioned else {})}
        warehouse.catalog.load_table(source).append(pa.table(more))
        code = crash("as_hive", source, points)
        undone = is_iceberg(warehouse, name)
        if mend == "migrate":
            migrate(warehouse.catalog, source)
            assert ids(warehouse, name) == [1, 2, 3, 4, 5]
            if undone:
                backup = warehouse.rows(f"{name}_backup_")
                assert [row.values for row in backup.partitions] == [row.values for row in before.partitions]
                assert _of_hive(before.location) == set(files)
        else:
            _back(warehouse, source, as_hive=mend == "as hive")
            assert not is_iceberg(warehouse, name) and not warehouse.exists(f"{name}_backup_")
            migrate(warehouse.catalog, source)
            lost = mend == "rollback" and undone
            assert ids(warehouse, name) == ([1, 2, 3] if lost else [1, 2, 3, 4, 5])
        if code != DEAD:
            break

    assert points > 10


def _write_more(table: Table) -> None:
    table.append(pa.table({"id": pa.array([6], pa.int32()), "k": pa.array([9], pa.int32())}))


def _delete_some(table: Table) -> None:
    table.delete("id = 1")


@pytest.mark.parametrize("meanwhile", [None, _write_more, _delete_some])
def test_a_way_back_killed_between_its_copies_and_its_switch_goes_on_if_the_table_is_what_it_was(
    warehouse: HiveWarehouse, crash: Crash, meanwhile: Callable[[Table], None] | None
) -> None:
    for points in count(6):
        source = f"{warehouse.namespace}.t{points}"
        before = make(warehouse, f"t{points}", partitioned=True)
        migrate(warehouse.catalog, source)
        table = warehouse.catalog.load_table(source)
        table.append(pa.table({"id": pa.array([4, 5], pa.int32()), "k": pa.array([0, 9], pa.int32())}))
        assert crash("as_hive", source, points) == DEAD
        backup = warehouse.rows(f"t{points}_backup_")
        if len(backup.partitions) == 3:  # the partition of k=9 comes after the copies
            break
    copies = {file: told for file, told in data_files(before.location).items() if "-" in file and file[:2] == "k="}
    assert len(copies) == 2 and ids(warehouse, f"t{points}") == [1, 2, 3, 4, 5]

    if meanwhile is _delete_some:
        meanwhile(table.refresh())
        with pytest.raises(UnsupportedError, match="not part of it any more"):
            rollback(warehouse.catalog, source, as_hive=True)
        assert not copies.keys() & data_files(before.location).keys()
        assert len(warehouse.rows(f"t{points}_backup_").partitions) == 2
        return
    if meanwhile is not None:
        meanwhile(table.refresh())
    assert rollback(warehouse.catalog, source, as_hive=True).appended_files == (2 if meanwhile is None else 3)

    kept = copies.items() & data_files(before.location).items()
    assert len(kept) == (2 if meanwhile is None else 0)
    migrate(warehouse.catalog, source)
    assert ids(warehouse, f"t{points}") == [1, 2, 3, 4, 5, *([] if meanwhile is None else [6])]


def _of_hive(location: Path) -> set[str]:
    """Files below a table's folder that Hive reads."""
    return {file for file in data_files(location) if not file.startswith("data/")}


def _back(warehouse: HiveWarehouse, name: str, as_hive: bool) -> None:
    # A kill may come after the last change.
    with suppress(MigrationError):
        rollback(warehouse.catalog, name, as_hive=as_hive, discard_changes=not as_hive)


def _is_clean(warehouse: HiveWarehouse, name: str, before: Rows, files: dict[str, tuple[int, int, int]]) -> bool:
    """Whether nothing is left to do: the kill came after the last change."""
    return all_files(before.location) == set(files)


def test_a_recovery_that_is_killed_too_can_be_recovered(warehouse: HiveWarehouse, crash: Crash) -> None:
    for first, second in (
        ((1, 1), (5, 2), (8, 3), (9, 1), (10, 4), (11, 2), (12, 1), (13, 3)) if ALL else ((5, 2), (9, 1), (12, 1))
    ):
        name = f"t{first}_{second}"
        before = make(warehouse, name, partitioned=True)
        files = data_files(before.location)
        for number in (first, second, second):
            crash("migrate", f"{warehouse.namespace}.{name}", number)

        migrate(warehouse.catalog, (warehouse.namespace, name))

        assert_is_migrated(warehouse, name, before, files)


@pytest.mark.parametrize("mend", ["migrate", "rollback"])
def test_a_metastore_that_dies_in_the_middle_leaves_what_the_same_command_mends(
    warehouse: HiveWarehouse, metastore: EmbeddedMetastore, monkeypatch: pytest.MonkeyPatch, mend: str
) -> None:
    before = make(warehouse, "t", partitioned=True)
    files = data_files(before.location)
    real = HiveTables.rename_pair
    properties = {"uri": metastore.uri, "hive.metastore.connect.retries": "1"}
    catalog = Catalog("brief", HiveMetastore(properties), warehouse.catalog.storage, properties)

    def rename_pair(*arguments: Any) -> Any:
        metastore.kill()
        return real(*arguments)

    monkeypatch.setattr(HiveTables, "rename_pair", rename_pair)
    try:
        with pytest.raises(MigrationError, match="run the same command again") as caught:
            migrate(catalog, (warehouse.namespace, "t"))
    finally:
        metastore.start()
        monkeypatch.undo()

    assert "No file was moved or deleted" in str(caught.value)
    if mend == "migrate":
        migrate(warehouse.catalog, (warehouse.namespace, "t"))
        assert_is_migrated(warehouse, "t", before, files)
    else:
        rollback(warehouse.catalog, (warehouse.namespace, "t"))
        assert_is_as_before(warehouse, "t", before, files)


def test_a_migration_of_a_living_process_is_left_alone(warehouse: HiveWarehouse) -> None:
    made = make(warehouse, "t", partitioned=True)
    folder = f"{made.table.sd.location}/metadata"
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        worker = replace(Process.this(), pid=other.pid, started="")
        names = ("test", warehouse.namespace, "t", "t_backup_", "t__iceberg_staging", made.table.sd.location)
        MigrationRecord.begin(warehouse.catalog.storage, folder, Journal(*names, names[-1], {}, 2, 2, 2, worker=worker))

        for command in (migrate, rollback):
            with pytest.raises(MigrationError, match=f"Process {other.pid} on host .* may still be at work"):
                command(warehouse.catalog, (warehouse.namespace, "t"))
        other.communicate()

    rollback(warehouse.catalog, (warehouse.namespace, "t"))
    assert all_files(made.location) == set(data_files(made.location))


@pytest.mark.parametrize(
    "where", [{"host": "another-machine"}, {"system": "000000000000"}], ids=["machine", "container"]
)
def test_a_migration_elsewhere_is_taken_over_only_when_asked_to(
    warehouse: HiveWarehouse, where: dict[str, str]
) -> None:
    made = make(warehouse, "t", partitioned=True)
    folder = f"{made.table.sd.location}/metadata"
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        worker = replace(Process.this(), pid=ended.pid, started="", **where)
    names = ("test", warehouse.namespace, "t", "t_backup_", "t__iceberg_staging", made.table.sd.location)
    MigrationRecord.begin(warehouse.catalog.storage, folder, Journal(*names, names[-1], {}, 2, 2, 2, worker=worker))

    with pytest.raises(MigrationError, match="--take-over"):
        migrate(warehouse.catalog, (warehouse.namespace, "t"))
    migrate(warehouse.catalog, (warehouse.namespace, "t"), MigrationOptions(take_over=True))

    assert ids(warehouse, "t") == [1, 2, 3]


def test_a_journal_that_cannot_be_read_stops_everything(warehouse: HiveWarehouse) -> None:
    made = make(warehouse, "t", partitioned=True)
    warehouse.catalog.storage.create(f"{made.table.sd.location}/metadata/_hive-migration.json", b"{")

    for command in (migrate, rollback):
        with pytest.raises(MigrationError, match=r"Cannot read the migration journal .*_hive-migration\.json"):
            command(warehouse.catalog, (warehouse.namespace, "t"))

    assert warehouse.rows("t") == made
