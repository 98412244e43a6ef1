"""What others have at the places that a migration uses stays theirs, through the migration, its undo and the way back.

Each neighbour's rows and files are compared before and after.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hms_iceberg.catalog import Catalog
from hms_iceberg.errors import IcebergError, MigrationError
from hms_iceberg.hms.connection.thrift_types import ttypes
from hms_iceberg.hms.hive_tables import HiveTables
from hms_iceberg.migration import migrate, rollback
from hms_iceberg.migration.rewrite import rewrite
from hms_iceberg.migration.undo import recovery
from tests.support.fixed_rows import ROWS as FIXED
from tests.support.fixed_rows import FixedRows
from tests.support.hdfs_path import local_path
from tests.support.hive_warehouse import HiveWarehouse, Rows, all_files, data_files, write_files

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int32())})
TEXT = {"serdeInfo": ttypes.SerDeInfo(serializationLib="org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe")}


@pytest.fixture(autouse=True)
def _settling_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recovery, "SETTLED_SECONDS", 0.6)


@pytest.fixture
def warehouse(catalog: Catalog, namespace: str) -> HiveWarehouse:
    return HiveWarehouse(catalog, namespace)


def make(warehouse: HiveWarehouse, name: str, partitioned: bool, **more: Any) -> Rows:
    """A managed table of three rows in one file."""
    made = warehouse.create(name, "id int", "k int" if partitioned else "", **more)
    if partitioned:
        warehouse.add_partition(name, ["1"], ROWS)
    else:
        write_files(made.table.sd.location, ROWS)
    return warehouse.rows(name)


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def ids(catalog: Catalog, name: str) -> list[int]:
    return sorted(catalog.load_table(name).scan().to_arrow()["id"].to_pylist())


def fail(hive: str, table: Any) -> tuple[str, ...]:
    """A proof that fails, so that a migration is undone."""
    return ("they differ",)


@pytest.mark.parametrize("partitioned", [True, False], ids=["partitioned", "unpartitioned"])
@pytest.mark.parametrize("come", ["before", "after"])
@pytest.mark.parametrize("end", ["rollback", "undo"])
def test_an_iceberg_table_at_the_same_location_keeps_its_metadata(
    warehouse: HiveWarehouse, partitioned: bool, come: str, end: str
) -> None:
    catalog, space = warehouse.catalog, warehouse.namespace
    made = make(warehouse, "t", partitioned)
    files = data_files(made.location)

    def neighbour() -> None:
        place = {} if partitioned else {"write.metadata.path": f"{made.table.sd.location}/_iceberg/metadata"}
        table = catalog.create_table(
            f"{space}.n", ROWS.schema, location=made.table.sd.location, properties={"write.data.path": data, **place}
        )
        table.append(ROWS)

    data = f"{warehouse.location}/data_of_n"
    if come == "before":
        neighbour()

    def late(hive: str, table: Any) -> tuple[str, ...]:
        if come == "after":
            neighbour()
        return fail(hive, table) if end == "undo" else ()

    if end == "undo":
        with pytest.raises(MigrationError, match="they differ"):
            migrate(catalog, f"{space}.t", proof=late)
    else:
        migrate(catalog, f"{space}.t", proof=late)
        catalog.load_table(f"{space}.n").append(ROWS)
        rollback(catalog, f"{space}.t")

    expected = [1, 2, 3] if end == "undo" else [1, 1, 2, 2, 3, 3]
    assert ids(catalog, f"{space}.n") == expected
    assert warehouse.rows("t") == made and warehouse.names() == ["n", "t"]
    assert {name: told for name, told in data_files(made.location).items() if name in files} == files
    assert len(catalog.load_table(f"{space}.n").history()) == (1 if end == "undo" else 2)
    migrate(catalog, f"{space}.t")
    assert ids(catalog, f"{space}.t") == [1, 2, 3] and ids(catalog, f"{space}.n") == expected


@pytest.mark.parametrize("partitioned", [True, False], ids=["partitioned", "unpartitioned"])
@pytest.mark.parametrize("way", ["in place", "copy"])
def test_a_registered_copy_can_be_read_after_the_way_back(
    warehouse: HiveWarehouse, partitioned: bool, way: str
) -> None:
    catalog, space = warehouse.catalog, warehouse.namespace
    made = make(warehouse, "t", partitioned, **(TEXT if way == "copy" else {}))
    before = data_files(made.location)
    if way == "copy":
        rewrite(catalog, f"{space}.t", rows=FixedRows(catalog))
    else:
        migrate(catalog, f"{space}.t")
    catalog.register_table(f"{space}.copy", catalog.load_table(f"{space}.t").metadata_location)
    catalog.load_table(f"{space}.copy").set_properties({"kept": "yes"})
    catalog.load_table(f"{space}.t").set_properties({"gone": "yes"})

    rollback(catalog, f"{space}.t")

    assert ids(catalog, f"{space}.copy") == [1, 2, 3]
    assert catalog.load_table(f"{space}.copy").properties["kept"] == "yes"
    assert warehouse.rows("t") == made and warehouse.names() == ["copy", "t"]
    assert {name: told for name, told in data_files(made.location).items() if name in before} == before
    folder = local_path(catalog.load_table(f"{space}.copy").metadata_location).parent
    assert not [name for name in all_files(folder) if "hive-migration" in name]
    if way == "in place":
        migrate(catalog, f"{space}.t")
        assert ids(catalog, f"{space}.t") == ids(catalog, f"{space}.copy") == [1, 2, 3]


@pytest.mark.parametrize("partitioned", [True, False], ids=["partitioned", "unpartitioned"])
@pytest.mark.parametrize("act", ["rollback", "discard", "migrate", "dry run"])
def test_a_table_that_was_renamed_after_its_migration_is_not_taken_apart_under_its_old_name(
    warehouse: HiveWarehouse, partitioned: bool, act: str
) -> None:
    catalog, space = warehouse.catalog, warehouse.namespace
    made = make(warehouse, "t", partitioned)
    migrate(catalog, f"{space}.t")
    catalog.rename_table(f"{space}.t", f"{space}.u")
    before = contents(made.location)

    ways: dict[str, Any] = {
        "rollback": lambda: rollback(catalog, f"{space}.t"),
        "discard": lambda: rollback(catalog, f"{space}.t", discard_changes=True),
        "migrate": lambda: migrate(catalog, f"{space}.t"),
        "dry run": lambda: migrate(catalog, f"{space}.t", dry_run=True),
    }
    with pytest.raises(MigrationError, match=rf"{space}\.u"):
        ways[act]()
    with pytest.raises(MigrationError, match=rf"(?s){space}\.t.*[Rr]ename"):
        rollback(catalog, f"{space}.u")

    assert contents(made.location) == before
    assert ids(catalog, f"{space}.u") == [1, 2, 3] and warehouse.names() == ["t_backup_", "u"]
    catalog.rename_table(f"{space}.u", f"{space}.t")
    rollback(catalog, f"{space}.t")
    assert warehouse.rows("t") == made and all_files(made.location) == set(data_files(made.location))


@pytest.mark.parametrize("partitioned", [True, False], ids=["partitioned", "unpartitioned"])
def test_a_new_hive_table_of_the_old_name_at_the_same_place_is_not_migrated_over_the_renamed_one(
    warehouse: HiveWarehouse, partitioned: bool
) -> None:
    catalog, space = warehouse.catalog, warehouse.namespace
    made = make(warehouse, "t", partitioned)
    migrate(catalog, f"{space}.t")
    catalog.rename_table(f"{space}.t", f"{space}.u")
    catalog.load_table(f"{space}.u").append(
        ROWS.append_column("k", pa.array([1, 1, 1], pa.int32())) if partitioned else ROWS
    )
    again = warehouse.create("t", "id int", "k int" if partitioned else "")
    before = contents(made.location)

    for act in (migrate, rollback):
        with pytest.raises(IcebergError, match=rf"{space}\.u"):
            act(catalog, f"{space}.t")  # type: ignore[operator]

    assert contents(made.location) == before and warehouse.rows("t") == again
    assert ids(catalog, f"{space}.u") == [1, 1, 2, 2, 3, 3]


@pytest.mark.parametrize("partitioned", [True, False], ids=["partitioned", "unpartitioned"])
@pytest.mark.parametrize("end", ["rollback", "undo", "drop"])
def test_a_hive_table_that_lives_in_the_folder_beside_keeps_its_files_when_a_table_is_copied(
    warehouse: HiveWarehouse, partitioned: bool, end: str
) -> None:
    catalog, space = warehouse.catalog, warehouse.namespace
    neighbour = make(warehouse, "t__iceberg", partitioned)
    nested = make(warehouse, "nested", False, location=f"{warehouse.location}/t__iceberg/data/below")
    made = make(warehouse, "t", partitioned, **TEXT)
    before = contents(neighbour.location)

    if end == "undo":
        with pytest.raises(MigrationError, match="they differ"):
            rewrite(catalog, f"{space}.t", rows=FixedRows(catalog), proof=fail)
    else:
        rewrite(catalog, f"{space}.t", rows=FixedRows(catalog))
        assert ids(catalog, f"{space}.t") == [1, 2, 3]
        copy = local_path(catalog.load_table(f"{space}.t").location())
        assert not copy.is_relative_to(neighbour.location) and not neighbour.location.is_relative_to(copy)
        catalog.load_table(f"{space}.t").append(FIXED)
        if end == "drop":
            catalog.drop_table(f"{space}.t", purge_requested=True)
        else:
            rollback(catalog, f"{space}.t", discard_changes=True)
            assert not all_files(copy)

    assert contents(neighbour.location) == before
    assert warehouse.rows("t__iceberg") == neighbour and warehouse.rows("nested") == nested
    if end != "drop":
        assert warehouse.rows("t") == made and data_files(made.location).keys() == all_files(made.location)


def test_a_folder_of_a_killed_undo_is_cleared_without_what_another_table_has_in_it(warehouse: HiveWarehouse) -> None:
    catalog, space = warehouse.catalog, warehouse.namespace
    made = make(warehouse, "t", False, **TEXT)

    def register(hive: str, table: Any) -> tuple[str, ...]:
        catalog.register_table(f"{space}.copy", table.metadata_location)
        return fail(hive, table)

    with pytest.raises(MigrationError):
        rewrite(catalog, f"{space}.t", rows=FixedRows(catalog), proof=register)

    assert ids(catalog, f"{space}.copy") == [1, 2, 3]
    assert HiveTables.of(catalog.metastore).find(space, "t") is not None
    assert data_files(made.location).keys() == all_files(made.location) - {"_iceberg/metadata/_hive-migration.json"}


@pytest.mark.parametrize("kind", ["hive", "partition", "iceberg"])
def test_the_undo_of_a_copy_leaves_what_others_have_in_its_folder(warehouse: HiveWarehouse, kind: str) -> None:
    catalog, space = warehouse.catalog, warehouse.namespace
    make(warehouse, "t", False, **TEXT)
    theirs: dict[Path, bytes] = {}

    def late(hive: str, table: Any) -> tuple[str, ...]:
        place = f"{table.location()}/../{table.location().rpartition('/')[2]}/./theirs"
        if kind == "iceberg":
            catalog.create_table(f"{space}.other", ROWS.schema, location=place).append(ROWS)
        elif kind == "hive":
            warehouse.create("other", "id int", location=place, managed=False)
            write_files(place, ROWS)
        else:
            warehouse.create("other", "id int", "k int")
            warehouse.add_partition("other", ["1"], ROWS, location=place)
        folder = local_path(table.location()) / "theirs"
        theirs.update({path: path.read_bytes() for path in folder.rglob("*") if path.is_file()})
        return fail(hive, table)

    with pytest.raises(MigrationError, match="they differ"):
        rewrite(catalog, f"{space}.t", rows=FixedRows(catalog), proof=late)
    assert theirs and {path: path.read_bytes() for path in theirs} == theirs
    folder = next(iter(theirs)).parents[0 if kind != "iceberg" else 1].parent
    left = {path for path in folder.rglob("*") if path.is_file()}
    assert left == set(theirs)
