"""What cares for a table deletes no file that a neighbour, a copy of it, a journal or a way back needs."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hms_iceberg.catalog import Catalog
from hms_iceberg.errors import CorruptFileError, MetastoreError, MigrationError, NoSuchTableError
from hms_iceberg.hms.rows.all_rows import HiveTableRows
from hms_iceberg.maintenance import check_table, expire_snapshots, remove_orphan_files, rewrite_data_files
from hms_iceberg.maintenance.orphan_files import OrphanFiles
from hms_iceberg.maintenance.service.service import MaintenanceService
from hms_iceberg.maintenance_policy import Policies, Policy
from hms_iceberg.migration import add_hive_files, migrate, rollback
from hms_iceberg.table import Table
from hms_iceberg.table.needed_files.needed_by_others import table_rows_of
from hms_iceberg.table.needed_files.remembered_rows import RememberedRows
from tests.support.hdfs_path import local_path, pyiceberg_files, set_changed
from tests.support.hive_warehouse import HiveWarehouse, all_files, column_of, write_files
from tests.support.operations import BY_CITY, SCHEMA, rows

HIVE = "id int, name string"


def hive_rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int32()), "name": [f"n{number}" for number in ids]})


def aged(folder: Path) -> None:
    """Makes every file below a folder ten days old."""
    for path in folder.rglob("*"):
        if path.is_file():
            set_changed(path, path.stat().st_mtime_ns - 10 * 86_400 * 10**9)


def removed(table: Table, **choices: Any) -> OrphanFiles:
    aged(local_path(table.location()))
    return remove_orphan_files(table, **choices)


@pytest.fixture
def warehouse(catalog: Catalog, namespace: str) -> HiveWarehouse:
    return HiveWarehouse(catalog, namespace)


@pytest.fixture
def outer(catalog: Catalog, namespace: str) -> Table:
    """A table with an orphan in its folder."""
    table = catalog.create_table(f"{namespace}.outer", SCHEMA, partition_spec=BY_CITY)
    table.append(rows(1, 2))
    lost(table)
    return table


def elsewhere(catalog: Catalog) -> str:
    """A namespace beside that of the test."""
    name = f"elsewhere_{uuid.uuid4().hex[:12]}"
    catalog.create_namespace(name)
    return name


def rename_hive(warehouse: HiveWarehouse, name: str, namespace: str) -> None:
    """Makes a Hive table `kept` of a namespace."""
    row = warehouse.client.get_table(warehouse.namespace, name)
    row.dbName, row.tableName = namespace, "kept"
    warehouse.client.alter_table(warehouse.namespace, name, row)


def lost(table: Table, name: str = "data/city=Ulm/lost.parquet") -> Path:
    path = local_path(table.location()) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("x")
    return path


def iceberg(warehouse: HiveWarehouse, location: str, **properties: str) -> Table:
    name = f"{warehouse.namespace}.neighbour"
    table = warehouse.catalog.create_table(name, SCHEMA, location=location, properties=properties)
    table.append(rows(7, 8))
    return table


# Each puts files of others into a folder.
def a_table(warehouse: HiveWarehouse, folder: str) -> None:
    iceberg(warehouse, f"{folder}/deep/inner")


def metadata_elsewhere(warehouse: HiveWarehouse, folder: str) -> None:
    iceberg(warehouse, f"{folder}/inner", **{"write.metadata.path": f"{warehouse.location}/elsewhere"})


def metadata_below(warehouse: HiveWarehouse, folder: str) -> None:
    iceberg(warehouse, f"{warehouse.location}/elsewhere", **{"write.metadata.path": f"{folder}/theirs"})


def data_below(warehouse: HiveWarehouse, folder: str) -> None:
    iceberg(warehouse, f"{warehouse.location}/elsewhere", **{"write.data.path": f"{folder}/theirs"})


def data_in_an_object_store(warehouse: HiveWarehouse, folder: str) -> None:
    path = {"write.data.path": f"{folder}/objects", "write.object-storage.enabled": "true"}
    iceberg(warehouse, f"{warehouse.location}/elsewhere", **path)


def data_in_the_same_folder(warehouse: HiveWarehouse, folder: str) -> None:
    iceberg(warehouse, f"{warehouse.location}/elsewhere", **{"write.data.path": f"{folder}/data"})


def a_migrated_table(warehouse: HiveWarehouse, folder: str) -> None:
    made = warehouse.create("inner", HIVE, location=f"{folder}/inner")
    write_files(made.table.sd.location, hive_rows(1, 2), hive_rows(3))
    migrate(warehouse.catalog, (warehouse.namespace, "inner"))
    warehouse.client.drop_table(warehouse.namespace, "inner_backup_")
    warehouse.catalog.load_table(f"{warehouse.namespace}.inner").append(hive_rows(4))


def a_migrated_table_of_another_metastore(warehouse: HiveWarehouse, folder: str) -> None:
    a_migrated_table(warehouse, folder)
    warehouse.catalog.drop_table(f"{warehouse.namespace}.inner")


def a_hive_table(warehouse: HiveWarehouse, folder: str) -> None:
    made = warehouse.create("inner", HIVE, location=f"{folder}/inner", managed=False)
    write_files(made.table.sd.location, hive_rows(1, 2))


def a_hive_partition(warehouse: HiveWarehouse, folder: str) -> None:
    warehouse.create("parts", HIVE, "p int", managed=False)
    warehouse.add_partition("parts", ["1"], hive_rows(1))
    warehouse.add_partition("parts", ["2"], hive_rows(2), location=f"{folder}/somewhere")


def a_hive_table_at_the_same_place(warehouse: HiveWarehouse, folder: str) -> None:
    made = warehouse.create("inner", HIVE, location=folder, managed=False)
    write_files(made.table.sd.location, hive_rows(1, 2))


def a_linked_folder(warehouse: HiveWarehouse, folder: str) -> None:
    other = local_path(warehouse.location) / "not_a_table"
    write_files(str(other), hive_rows(1))
    aged(other)
    (local_path(folder) / "link").symlink_to(other)
    (local_path(folder) / "loop").symlink_to(local_path(folder))
    (local_path(folder) / "file.parquet").symlink_to(other / "000000_0")


NEIGHBOURS: list[Callable[[HiveWarehouse, str], None]] = [
    a_table,
    metadata_elsewhere,
    metadata_below,
    data_below,
    data_in_an_object_store,
    data_in_the_same_folder,
    a_migrated_table,
    a_migrated_table_of_another_metastore,
    a_hive_table,
    a_hive_partition,
    a_hive_table_at_the_same_place,
    a_linked_folder,
]


@pytest.mark.parametrize("put", NEIGHBOURS, ids=lambda put: put.__name__)
def test_orphans_go_and_no_file_of_a_neighbour(
    warehouse: HiveWarehouse, outer: Table, put: Callable[[HiveWarehouse, str], None]
) -> None:
    put(warehouse, outer.location())
    base = local_path(warehouse.location)
    before = all_files(base)
    orphan = local_path(outer.location()) / "data/city=Ulm/lost.parquet"
    found = removed(outer)
    assert {local_path(each) for each in found.locations} == {orphan}
    assert before - all_files(base) == {str(orphan.relative_to(base))}
    for name in warehouse.catalog.list_tables(warehouse.namespace):
        assert check_table(warehouse.catalog.load_table(name), record_counts=True).findings == ()


def test_a_neighbour_that_is_known_by_another_path_loses_nothing(warehouse: HiveWarehouse) -> None:
    base = local_path(warehouse.location)
    (base / "real").mkdir()
    (base / "link").symlink_to(base / "real")
    inner = iceberg(warehouse, f"{warehouse.location}/real/outer/inner")
    name, folder = f"{warehouse.namespace}.outer", f"{warehouse.location}/link/outer"
    outer = warehouse.catalog.create_table(name, SCHEMA, location=folder)
    outer.append(rows(1, 2))
    lost(outer)
    assert [local_path(each).name for each in removed(outer).locations] == ["lost.parquet"]
    assert check_table(inner, record_counts=True).findings == ()


def test_tables_that_are_renamed_while_they_are_looked_for_are_found(
    warehouse: HiveWarehouse, outer: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_hive_partition(warehouse, outer.location())
    client, other = warehouse.client, elsewhere(warehouse.catalog)
    asked = client.get_tables
    every = table_rows_of(warehouse.catalog.metastore)
    assert every is not None
    remembered = RememberedRows(every)
    assert f"{warehouse.namespace}.parts" in map(str, remembered.rows())

    def renamed_before(database: str, names: Sequence[str]) -> Iterator[Any]:
        if "parts" in names and database == warehouse.namespace:
            rename_hive(warehouse, "parts", other)
        return asked(database, names)

    monkeypatch.setattr(client, "get_tables", renamed_before)
    assert f"{other}.kept" in map(str, every.rows())
    with pytest.raises(NoSuchTableError):
        list(every.partition_locations((warehouse.namespace, "parts")))
    assert [local_path(each).name for each in removed(outer, rows=remembered).locations] == ["lost.parquet"]


@pytest.mark.parametrize("knows", ["all names at once", "the names of a namespace", "nothing by the pattern"])
def test_an_expiry_asks_for_the_tables_of_each_namespace_once_and_sees_all_of_them(
    warehouse: HiveWarehouse, outer: Table, monkeypatch: pytest.MonkeyPatch, knows: str
) -> None:
    client, others = warehouse.client, [elsewhere(warehouse.catalog) for _ in range(3)]
    theirs = next(iter(outer.scan().plan_files())).file.file_path.rpartition("/")[0]
    for name in others:
        warehouse.catalog.create_table(f"{name}.t", SCHEMA)
    warehouse.catalog.create_table(f"{others[0]}.inner", SCHEMA, location=theirs)
    asked, call = list[str](), client._call

    def counted(method: str, *arguments: Any, **more: Any) -> Any:
        asked.append(method)
        if method == "get_table_meta" and knows != "all names at once":
            if knows == "the names of a namespace":
                raise MetastoreError("Invalid method name: 'get_table_meta'")
            return []
        return call(method, *arguments, **more)

    monkeypatch.setattr(client, "_call", counted)
    names = [str(row) for row in HiveTableRows(client).rows()]
    assert {f"{name}.t" for name in others} <= set(names) and len(names) == len(set(names))
    spaces = len(client.list_databases())
    outer.overwrite(rows(3))
    asked.clear()
    expired = expire_snapshots(outer, older_than=2**62)
    assert f"table {others[0]}.inner (they are in its folder)" in expired.kept.values()
    assert asked.count("get_table_objects_by_name_req") <= spaces
    if knows == "all names at once":
        assert asked.count("get_table_meta") == asked.count("get_all_databases") == 2
        assert not {"get_table_names_by_filter", "get_tables"} & set(asked)


def test_a_folder_of_another_table_has_no_orphans(warehouse: HiveWarehouse, outer: Table) -> None:
    made = warehouse.create("hive", HIVE)
    write_files(made.table.sd.location, hive_rows(1))
    aged(made.location)
    for folder in (made.table.sd.location, f"{made.table.sd.location}/"):
        assert removed(outer, location=folder).locations == ()
    assert removed(outer, location=made.table.sd.location).other_tables == (made.table.sd.location,)


def test_a_table_that_moved_away_loses_nothing_to_the_one_that_took_its_place(warehouse: HiveWarehouse) -> None:
    catalog, space = warehouse.catalog, warehouse.namespace
    place = f"{warehouse.location}/place"
    moved = catalog.create_table(f"{space}.moved", SCHEMA, location=place)
    moved.append(rows(1, 2, 3))
    with moved.transaction() as transaction:
        transaction.update_location(f"{warehouse.location}/moved")
    moved.append(rows(4))
    successor = catalog.create_table(f"{space}.successor", SCHEMA, location=place)
    successor.append(rows(5))
    orphan = lost(successor, "data/lost.parquet")
    assert removed(successor).locations == (f"{place}/data/lost.parquet",)
    assert not orphan.exists()
    assert iceberg_ids(warehouse, "moved") == [1, 2, 3, 4]
    assert check_table(catalog.load_table(f"{space}.moved")).findings == ()
    # Nobody has the files of a table that was dropped.
    catalog.drop_table(f"{space}.moved")
    assert len(removed(successor).locations) > 3
    assert iceberg_ids(warehouse, "successor") == [5]


def test_files_that_were_taken_in_stay_while_another_table_has_them_in_its_folder(warehouse: HiveWarehouse) -> None:
    catalog, space = warehouse.catalog, warehouse.namespace
    warehouse.create("events", HIVE, "month int")
    warehouse.add_partition("events", ["1"], hive_rows(1, 2))
    warehouse.add_partition("events", ["2"], hive_rows(3), location=f"{warehouse.location}/elsewhere/month=2")
    theirs = iceberg(warehouse, f"{warehouse.location}/theirs")
    schema = pa.schema([("id", pa.int32()), ("name", pa.string()), ("month", pa.int32())])

    def taken_in() -> Table:
        table = catalog.create_table_if_not_exists(f"{space}.ours", schema)
        if table.spec().is_unpartitioned():
            table.update_spec().add_identity("month").commit()
        add_hive_files(catalog, f"{space}.ours", f"{space}.events")
        return table.refresh()

    ours = taken_in()
    assert sorted(ours.scan().to_arrow()["id"].to_pylist()) == [1, 2, 3]
    other = catalog.create_table(f"{space}.other", SCHEMA, partition_spec=theirs.spec())
    other.add_files([task.file.file_path for task in theirs.scan().plan_files()])
    for table, owner, rows_of in ((ours, "events", hive_ids), (other, "neighbour", iceberg_ids)):
        kept = rows_of(warehouse, owner)
        assert len(kept) > 1
        table.refresh().delete()
        expired = expire_snapshots(table, older_than=2**62)
        assert set(expired.kept.values()) == {f"table {space}.{owner} (they are in its folder)"}
        assert set(expired.kept) >= set(expired.files.data_files)
        assert rows_of(warehouse, owner) == kept
    taken_in()
    catalog.drop_table(f"{space}.ours", purge_requested=True)
    assert hive_ids(warehouse, "events") == [1, 2, 3]
    # The Hive table is dropped with its files left: nobody has them any more.
    files = [path for path in local_path(warehouse.location).rglob("*month=*/*") if path.is_file()]
    taken_in()
    warehouse.client._call("drop_table", space, "events", False, subject="table events", repeatable=False)
    catalog.drop_table(f"{space}.ours", purge_requested=True)
    assert len(files) == 2 and not any(path.exists() for path in files)


@pytest.mark.parametrize("by", ["this package", "PyIceberg", None])
def test_a_copy_that_was_registered_loses_nothing(
    metastore: Any, catalog: Catalog, namespace: str, outer: Table, by: str | None
) -> None:
    keep, copy = by is not None, None
    if by == "PyIceberg":  # its rows do not tell the UUID
        peer = pytest.importorskip("pyiceberg.catalog").load_catalog(
            "peer", type="hive", uri=metastore.uri, **pyiceberg_files(metastore.warehouse)
        )
        peer.register_table((namespace, "copy"), outer.metadata_location)
        copy = catalog.load_table(f"{namespace}.copy")
    elif keep:
        copy = catalog.register_table(f"{namespace}.copy", outer.metadata_location)
    outer.overwrite(rows(3))
    outer.append(rows(4))
    expired = expire_snapshots(outer, older_than=2**62)
    assert len(expired.files.data_files) == 1 and expired.deleted == len(expired.files.all()) - len(expired.kept)
    assert bool(expired.kept) is keep
    if copy is not None:
        assert set(expired.kept.values()) == {f"table {namespace}.copy, a copy"}
    found = removed(outer)
    assert len(found.locations) == 1
    if copy is None:
        return
    copy.append(rows(5))
    copy.delete("id = 5")
    assert removed(outer).locations == ()
    assert sorted(copy.refresh().scan().to_arrow()["id"].to_pylist()) == [1, 2]
    assert check_table(copy).findings == ()
    lost(outer)
    local_path(copy.current_snapshot().manifest_list).write_bytes(b"damaged")
    with pytest.raises(CorruptFileError, match=rf"{namespace}\.outer.*{namespace}\.copy may name some"):
        removed(outer)
    catalog.drop_table(f"{namespace}.copy")
    assert len(removed(outer).locations) > len(expired.kept)
    assert check_table(outer.refresh()).findings == ()


@pytest.mark.parametrize("by", ["this package", "PyIceberg", "PyIceberg, of a file elsewhere"])
def test_a_copy_that_was_registered_after_rows_were_remembered_loses_nothing(
    metastore: Any, catalog: Catalog, namespace: str, outer: Table, by: str
) -> None:
    outer.append(rows(3))
    remembered = RememberedRows(catalog.metastore.table_rows)  # type: ignore[attr-defined]
    for _ in remembered.rows():
        pass
    file, name = outer.metadata_location, f"{namespace}.copy"
    if by.endswith("elsewhere"):
        file = f"{outer.location().rpartition('/')[0]}/elsewhere/00000-{uuid.uuid4()}.metadata.json"
        catalog.storage.create(file, catalog.storage.read(outer.metadata_location))
    if by == "this package":
        catalog.register_table(name, file)
    else:
        peer = pytest.importorskip("pyiceberg.catalog").load_catalog(
            "peer", type="hive", uri=metastore.uri, **pyiceberg_files(metastore.warehouse)
        )
        peer.register_table(name, file)
    outer.overwrite(rows(4))
    assert expire_snapshots(outer, older_than=2**62, rows=remembered).kept
    assert [local_path(each).name for each in removed(outer, rows=remembered).locations] == ["lost.parquet"]
    copy = catalog.load_table(name)
    assert sorted(copy.scan().to_arrow()["id"].to_pylist()) == [1, 2, 3] and check_table(copy).findings == ()


def test_a_partition_that_was_added_after_rows_were_remembered_loses_nothing(
    warehouse: HiveWarehouse, outer: Table
) -> None:
    warehouse.create("events", HIVE, "month int")
    warehouse.add_partition("events", ["1"], hive_rows(1))
    remembered = RememberedRows(warehouse.catalog.metastore.table_rows)  # type: ignore[attr-defined]
    identifiers = [row.identifier for row in remembered.rows() if row.has_partitions]
    assert identifiers and all(list(remembered.partition_locations(each)) for each in identifiers)
    warehouse.add_partition("events", ["2"], hive_rows(2), location=f"{outer.location()}/data/theirs")
    assert [local_path(each).name for each in removed(outer, rows=remembered).locations] == ["lost.parquet"]
    assert hive_ids(warehouse, "events") == [1, 2]


def test_an_expiry_asks_a_metastore_once_for_each_stranger_and_only_if_files_go(
    catalog: Catalog, namespace: str, outer: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog.create_table(f"{namespace}.stranger", SCHEMA)
    client = catalog.metastore.client  # type: ignore[attr-defined]
    told, get_tables = list[str](), client.get_tables
    monkeypatch.setattr(client, "get_tables", lambda database, names: told.extend(names) or get_tables(database, names))
    assert not expire_snapshots(outer, older_than=2**62).files.all()
    assert "stranger" not in told
    outer.overwrite(rows(4))
    assert expire_snapshots(outer, older_than=2**62).deleted
    assert told.count("stranger") == 1


def test_a_purge_leaves_what_a_copy_or_a_way_back_needs(
    warehouse: HiveWarehouse, outer: Table, migrated: Table, caplog: pytest.LogCaptureFixture
) -> None:
    catalog, namespace = warehouse.catalog, warehouse.namespace
    copy = catalog.register_table(f"{namespace}.copy", outer.metadata_location)
    outer.append(rows(4))
    newest = [task.file.file_path for task in outer.scan("id = 4").plan_files()]
    catalog.purge_table(outer.identifier)
    assert f"table {namespace}.copy, a copy needs" in caplog.text
    assert sorted(copy.scan().to_arrow()["id"].to_pylist()) == [1, 2] and check_table(copy).findings == ()
    assert not any(local_path(each).exists() for each in (*newest, outer.metadata_location))
    name = migrated.identifier[1]
    other = elsewhere(catalog)
    catalog.rename_table(migrated.identifier, f"{other}.{name}")
    catalog.purge_table(f"{other}.{name}")
    assert hive_ids(warehouse, f"{name}_backup_") == [1, 2, 3, 4]
    left = {path for path in all_files(migrated_folder(migrated)) if path.endswith((".parquet", ".metadata.json"))}
    assert left == set()
    catalog.purge_table(copy.identifier)
    assert [path for path in all_files(local_path(copy.location())) if not path.endswith("lost.parquet")] == []


@pytest.fixture(params=["partitioned", "plain"])
def migrated(warehouse: HiveWarehouse, request: pytest.FixtureRequest) -> Table:
    """A table that was migrated, then appended to and compacted."""
    name = request.param
    made = warehouse.create(name, HIVE, "month int" if name == "partitioned" else "")
    if name == "partitioned":
        warehouse.add_partition(name, ["1"], hive_rows(1, 2), hive_rows(3))
        warehouse.add_partition(name, ["2"], hive_rows(4), location=f"{warehouse.location}/far/away")
    else:
        write_files(made.table.sd.location, hive_rows(1, 2), hive_rows(3), hive_rows(4))
    migrate(warehouse.catalog, (warehouse.namespace, name))
    table = warehouse.catalog.load_table(f"{warehouse.namespace}.{name}")
    more = hive_rows(5)
    table.append(more if name == "plain" else more.append_column("month", pa.array([1], pa.int32())))
    rewrite_data_files(table, options={"rewrite-all": "true"})
    return table


def iceberg_ids(warehouse: HiveWarehouse, name: str) -> list[int]:
    return sorted(warehouse.catalog.load_table(f"{warehouse.namespace}.{name}").scan().to_arrow()["id"].to_pylist())


def hive_ids(warehouse: HiveWarehouse, name: str) -> list[int]:
    """What the Hive table holds, read from its folders by pyarrow."""
    made = warehouse.rows(name)
    folders = [local_path(each.sd.location) for each in made.partitions] or [made.location]
    files = [path for folder in folders for path in folder.iterdir() if path.is_file()]
    return sorted(number for path in files for number in column_of(path, "id"))


NOTHING_NEW = Policy().with_settings({"compact": "false", "remove-orphans-every-ms": "0"}, "a test")


def maintained(table: Table, **settings: str) -> dict[str, str]:
    """A run of the service years later; what it says of each action."""
    aged(local_path(table.location()))
    table.refresh().set_properties({"history.expire.max-snapshot-age-ms": "1"})
    policies = Policies(NOTHING_NEW.with_settings(settings, "a test"))
    report = MaintenanceService(table.catalog, [".".join(table.identifier)], policies).run()
    assert not report.failed
    return {step.action: step.result for step in report.steps}


def test_maintenance_leaves_the_way_back_of_a_migration(warehouse: HiveWarehouse, migrated: Table) -> None:
    name = migrated.identifier[1]
    lost(migrated, "_iceberg/data/lost.parquet" if name == "plain" else "data/month=1/lost.parquet")
    ids = sorted(migrated.scan().to_arrow()["id"].to_pylist())
    done = maintained(migrated)
    assert f"stay for the Hive table {warehouse.namespace}.{name}_backup_, its way back" in done["expire_snapshots"]
    assert "deleted 1 orphan files" in done["remove_orphan_files"]
    assert len(migrated.refresh().snapshots()) == 1
    assert sorted(migrated.scan().to_arrow()["id"].to_pylist()) == ids == [1, 2, 3, 4, 5]
    assert hive_ids(warehouse, f"{name}_backup_") == [1, 2, 3, 4]
    rollback(warehouse.catalog, (warehouse.namespace, name), discard_changes=True)
    assert hive_ids(warehouse, name) == [1, 2, 3, 4]


@pytest.mark.parametrize("how", ["policy", "drop", "rename"])
def test_files_of_a_way_back_go_once_it_is_given_up(warehouse: HiveWarehouse, migrated: Table, how: str) -> None:
    name = migrated.identifier[1]
    backup = f"{name}_backup_"
    if how == "policy":
        maintained(migrated, keep_backups="false")
    elif how == "drop":
        maintained(migrated)
        warehouse.client.drop_table(warehouse.namespace, backup)
        maintained(migrated)
    else:  # it is known under any name
        place = HiveWarehouse(warehouse.catalog, elsewhere(warehouse.catalog))
        rename_hive(warehouse, backup, place.namespace)
        maintained(migrated)
        assert hive_ids(place, "kept") == [1, 2, 3, 4]
        return
    left = {path for path in all_files(migrated_folder(migrated)) if path.endswith("_0")}
    assert left == set()
    assert sorted(migrated.refresh().scan().to_arrow()["id"].to_pylist()) == [1, 2, 3, 4, 5]
    assert check_table(migrated, record_counts=True).findings == ()
    if how == "policy":
        with pytest.raises(MigrationError, match="are gone"):
            rollback(warehouse.catalog, (warehouse.namespace, name), discard_changes=True)


def migrated_folder(table: Table) -> Path:
    return local_path(table.location())
