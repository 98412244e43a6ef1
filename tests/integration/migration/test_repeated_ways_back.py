"""A way back that failed is asked for again: what Hive was given stays, and nothing that came later is discarded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

from hms_iceberg.catalog import Catalog
from hms_iceberg.errors import MigrationError, StorageDeniedError
from hms_iceberg.hms.hive_tables import HiveTables
from hms_iceberg.migration import migrate, rollback
from hms_iceberg.migration.migration_journal import MigrationRecord
from hms_iceberg.migration.undo import recovery
from hms_iceberg.table import Table
from tests.support.hdfs_path import local_path
from tests.support.hive_warehouse import HiveWarehouse, Rows, all_files, column_of, write_files


@pytest.fixture(autouse=True)
def _settling_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recovery, "SETTLED_SECONDS", 0.6)


@pytest.fixture
def warehouse(catalog: Catalog, namespace: str) -> HiveWarehouse:
    return HiveWarehouse(catalog, namespace)


def made(warehouse: HiveWarehouse, partitioned: bool) -> Rows:
    """A managed table `t` of three rows in two files."""
    warehouse.create("t", "id int", "k int" if partitioned else "")
    tables = [pa.table({"id": pa.array(each, pa.int32())}) for each in ([1, 2], [3])]
    if partitioned:
        for number, table in enumerate(tables):
            warehouse.add_partition("t", [str(number)], table)
    else:
        write_files(f"{warehouse.location}/t", *tables)
    return warehouse.rows("t")


def append(table: Table, *ids: int) -> None:
    rows = pa.table({"id": pa.array(ids, pa.int32())})
    if len(table.schema().fields) > 1:
        rows = rows.append_column("k", pa.array([9] * len(ids), pa.int32()))
    table.append(rows)


def iceberg_ids(warehouse: HiveWarehouse, name: str = "t") -> list[int]:
    return sorted(warehouse.catalog.load_table((warehouse.namespace, name)).scan().to_arrow()["id"].to_pylist())


def hive_ids(rows: Rows) -> list[int]:
    """What Hive reads: every file in the folders that the metastore names, but what is hidden or below them."""
    places = [local_path(each.sd.location) for each in rows.partitions] if rows.table.partitionKeys else [rows.location]
    files = [path for place in places for path in place.iterdir() if path.is_file() and path.name[0] not in "._"]
    return sorted(each for file in files for each in column_of(file, "id"))


def denied(*arguments: Any) -> None:
    raise StorageDeniedError("denied")


def stop(*arguments: Any) -> None:
    raise KeyboardInterrupt


def stopped(warehouse: HiveWarehouse, monkeypatch: pytest.MonkeyPatch, **options: bool) -> None:
    """A way back that ends after all its preparations, when it is about to switch names."""
    with monkeypatch.context() as patch:
        for name in ("rename_pair", "take_over"):
            patch.setattr(HiveTables, name, stop)
        with pytest.raises(KeyboardInterrupt):
            rollback(warehouse.catalog, f"{warehouse.namespace}.t", **options)


@pytest.mark.parametrize("partitioned", [True, False], ids=["partitioned", "unpartitioned"])
@pytest.mark.parametrize("step", ["tidying", "drop"])
def test_a_way_back_that_fails_again_after_its_switch_keeps_the_rows_that_hive_was_given(
    warehouse: HiveWarehouse, monkeypatch: pytest.MonkeyPatch, partitioned: bool, step: str
) -> None:
    before = made(warehouse, partitioned)
    source = f"{warehouse.namespace}.t"
    migrate(warehouse.catalog, source)
    append(warehouse.catalog.load_table(source), 4, 5)

    with monkeypatch.context() as patch:
        patch.setattr(*((HiveTables, "drop", denied) if step == "drop" else (MigrationRecord, "delete", denied)))
        for _ in range(3):
            with pytest.raises(StorageDeniedError):
                rollback(warehouse.catalog, source, as_hive=True)
            assert hive_ids(warehouse.rows("t")) == [1, 2, 3, 4, 5]
    rollback(warehouse.catalog, source)

    assert hive_ids(warehouse.rows("t")) == [1, 2, 3, 4, 5]
    assert warehouse.names() == ["t"]
    assert not any("_hive-migration" in file for file in all_files(before.location))
    migrate(warehouse.catalog, source)
    assert iceberg_ids(warehouse) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("partitioned", [True, False], ids=["partitioned", "unpartitioned"])
@pytest.mark.parametrize("later", [True, False], ids=["changed", "unchanged"])
def test_a_way_back_that_was_stopped_before_its_switch_does_not_discard_the_table_that_goes_on(
    warehouse: HiveWarehouse, monkeypatch: pytest.MonkeyPatch, partitioned: bool, later: bool
) -> None:
    before = made(warehouse, partitioned)
    source = f"{warehouse.namespace}.t"
    migrate(warehouse.catalog, source)
    append(warehouse.catalog.load_table(source), 4)
    stopped(warehouse, monkeypatch, discard_changes=True)
    table = warehouse.catalog.load_table(source)
    if later:
        append(table, 5)
    warehouse.catalog.drop_table(source)
    files = all_files(before.location)

    for command in (rollback, migrate, rollback):
        with pytest.raises(MigrationError, match="changed after its migration"):
            command(warehouse.catalog, source)
        assert {file for file in files if "_hive-migration" not in file} <= all_files(before.location)

    warehouse.catalog.register_table(source, table.metadata_location)
    assert iceberg_ids(warehouse) == ([1, 2, 3, 4, 5] if later else [1, 2, 3, 4])


def test_what_a_stopped_way_back_gave_goes_if_the_changes_are_discarded_after_all(
    warehouse: HiveWarehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = made(warehouse, partitioned=True)
    source = f"{warehouse.namespace}.t"
    migrate(warehouse.catalog, source)
    table = warehouse.catalog.load_table(source)
    append(table, 4)
    stopped(warehouse, monkeypatch, as_hive=True)
    append(table, 5)
    warehouse.catalog.drop_table(source)
    HiveTables.of(warehouse.catalog.metastore).rename(warehouse.namespace, "t_backup_", "t")
    assert hive_ids(warehouse.rows("t")) == [1, 2, 3, 4]
    with pytest.raises(MigrationError, match="changed after its migration"):
        rollback(warehouse.catalog, source)

    rollback(warehouse.catalog, source, discard_changes=True)

    assert hive_ids(warehouse.rows("t")) == [1, 2, 3]
    assert warehouse.rows("t") == before


def _metadata_of_a_killed_commit(table: Table) -> None:
    """The metadata file of a commit whose process died before it told the metastore."""
    place, name = table.metadata_location.rsplit("/", 1)
    number = int(name.split("-", 1)[0]) + 1
    killed = local_path(place) / f"{number:05d}-0b2c7d0e-0000-4000-8000-000000000000.metadata.json"
    killed.write_bytes(local_path(table.metadata_location).read_bytes())


@pytest.mark.parametrize("partitioned", [True, False], ids=["partitioned", "unpartitioned"])
@pytest.mark.parametrize("stage", ["first rename", "tidying"])
def test_the_metadata_of_a_killed_commit_does_not_keep_a_way_back_from_its_end(
    warehouse: HiveWarehouse, monkeypatch: pytest.MonkeyPatch, partitioned: bool, stage: str
) -> None:
    before = made(warehouse, partitioned)
    source = f"{warehouse.namespace}.t"
    migrate(warehouse.catalog, source)
    _metadata_of_a_killed_commit(warehouse.catalog.load_table(source))
    patches: dict[str, tuple[Any, str, Callable[..., Any]]] = {
        "first rename": (HiveTables, "rename_pair", _first_of_the_pair),
        "tidying": (MigrationRecord, "delete", denied),
    }
    with monkeypatch.context() as patch:
        patch.setattr(*patches[stage])
        if stage == "tidying" or partitioned:
            with pytest.raises(StorageDeniedError):
                rollback(warehouse.catalog, source)

    rollback(warehouse.catalog, source)

    assert warehouse.rows("t") == before and warehouse.names() == ["t"]
    assert hive_ids(warehouse.rows("t")) == [1, 2, 3]


def _first_of_the_pair(hive: HiveTables, database: str, first: tuple[str, str], second: tuple[str, str]) -> None:
    hive.rename(database, *first)
    raise StorageDeniedError("denied")


def test_a_repeated_way_back_leaves_what_a_copy_in_another_namespace_names(
    warehouse: HiveWarehouse, monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    catalog = warehouse.catalog
    made(warehouse, partitioned=False)
    source = f"{warehouse.namespace}.t"
    migrate(catalog, source)
    table = catalog.load_table(source)
    catalog.register_table(f"{other}.copy", table.metadata_location)
    append(catalog.load_table(f"{other}.copy"), 4)
    catalog.load_table(source).set_properties({"later": "yes"})

    with monkeypatch.context() as patch:
        patch.setattr(MigrationRecord, "delete", denied)
        for _ in range(2):
            with pytest.raises(StorageDeniedError):
                rollback(catalog, source)
    rollback(catalog, source)

    assert sorted(catalog.load_table(f"{other}.copy").scan().to_arrow()["id"].to_pylist()) == [1, 2, 3, 4]
    assert hive_ids(warehouse.rows("t")) == [1, 2, 3]
    catalog.drop_table(f"{other}.copy")


@pytest.fixture
def other(catalog: Catalog, namespace: str) -> Iterator[str]:
    name = f"{namespace}_other"
    catalog.create_namespace(name)
    yield name
    for table in catalog.list_tables(name):
        catalog.drop_table(table)
    catalog.drop_namespace(name)
