"""Iceberg tables over the files of Hive tables that stay, and files that Iceberg tables take in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from hms_iceberg.catalog import Catalog
from hms_iceberg.errors import InvalidInputError, NoSuchTableError, TableAlreadyExistsError, UnsupportedError
from hms_iceberg.maintenance import check_table, remove_orphan_files
from hms_iceberg.migration import add_folder, add_hive_files, snapshot
from hms_iceberg.migration.add_hive_files import AddFilesResult, folder_of
from tests.support.hdfs_path import local_path
from tests.support.hive_warehouse import HiveWarehouse, all_files, write_files


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int32()), "name": [f"n{number}" for number in ids]})


@pytest.fixture
def warehouse(catalog: Catalog, namespace: str) -> HiveWarehouse:
    """`flights` with three partitions, one of them elsewhere, one null; and `plain` without partitions."""
    made = HiveWarehouse(catalog, namespace)
    made.create("flights", "id int, name string", "month int")
    made.add_partition("flights", ["1"], rows(1, 2), rows(3))
    made.add_partition("flights", ["2"], rows(4))
    made.add_partition("flights", ["__HIVE_DEFAULT_PARTITION__"], rows(5))
    write_files(made.create("plain", "id int, name string").table.sd.location, rows(1, 2), rows(3))
    return made


def ids(catalog: Catalog, name: str, **scan: Any) -> list[int]:
    return sorted(catalog.load_table(name).scan(**scan).to_arrow()["id"].to_pylist())


@pytest.mark.parametrize("source", ["flights", "plain"])
def test_a_snapshot_reads_the_hive_tables_files_and_owns_none(
    catalog: Catalog, namespace: str, warehouse: HiveWarehouse, source: str
) -> None:
    hive_files = all_files(local_path(warehouse.rows(source).table.sd.location))
    before = ids(catalog, snapshot(catalog, f"{namespace}.{source}", f"{namespace}.copy").table.identifier)
    assert before == ([1, 2, 3, 4, 5] if source == "flights" else [1, 2, 3])
    copy = catalog.load_table(f"{namespace}.copy")
    copy.delete("id = 1")
    copy.append(copy.scan("id = 2").to_arrow())
    assert ids(catalog, f"{namespace}.copy") == sorted([*before[1:], 2])
    assert all_files(local_path(warehouse.rows(source).table.sd.location)) == hive_files
    assert copy.properties["gc.enabled"] == "false" and check_table(copy).findings == ()
    with pytest.raises(UnsupportedError, match=r"gc\.enabled"):
        remove_orphan_files(copy)
    with pytest.raises(TableAlreadyExistsError):
        snapshot(catalog, f"{namespace}.{source}", f"{namespace}.copy")


def test_a_snapshot_has_a_folder_of_its_own(catalog: Catalog, namespace: str, warehouse: HiveWarehouse) -> None:
    location = warehouse.rows("plain").table.sd.location
    for place in (f"{location}/", f"{location}/below", location.rpartition("/")[0]):
        with pytest.raises(InvalidInputError, match=rf"{namespace}\.plain.*own"):
            snapshot(catalog, f"{namespace}.plain", f"{namespace}.copy", location=place)
    with pytest.raises(NoSuchTableError, match=rf"{namespace}\.nowhere"):
        snapshot(catalog, f"{namespace}.nowhere", f"{namespace}.copy")
    assert not catalog.table_exists(f"{namespace}.copy")


def test_files_of_chosen_partitions_are_added_once(catalog: Catalog, namespace: str, warehouse: HiveWarehouse) -> None:
    source, target = f"{namespace}.flights", f"{namespace}.target"
    empty = snapshot(catalog, source, target).table
    empty.delete()
    added = add_hive_files(catalog, target, source, partition_filter={"month": "1"})
    assert (added.files, ids(catalog, target)) == (2, [1, 2, 3])
    assert catalog.load_table(target).scan("month = 1").count() == 3
    add_hive_files(catalog, target, source, partition_filter={"MONTH": "__HIVE_DEFAULT_PARTITION__"})
    assert ids(catalog, target, row_filter="month is null") == [5]
    before = catalog.load_table(target).metadata_location
    with pytest.raises(InvalidInputError, match=rf"{target}.*already"):
        add_hive_files(catalog, target, source)
    with pytest.raises(InvalidInputError, match=rf"{target}.*nope.*Valid partition columns: month"):
        add_hive_files(catalog, target, source, partition_filter={"nope": "1"})
    assert add_hive_files(catalog, target, source, partition_filter={"month": "77"}) == AddFilesResult(0, 0)
    with pytest.raises(UnsupportedError, match="no Hive table"):
        add_hive_files(catalog, target, target)
    assert catalog.load_table(target).metadata_location == before
    doubled = add_hive_files(catalog, target, source, partition_filter={"month": "2"}, check_duplicate_files=False)
    assert doubled.changed_partitions == 1 and ids(catalog, target) == [1, 2, 3, 4, 5]


def test_partitions_are_added_by_a_spec_that_the_table_had_and_never_to_one_that_loses_their_values(
    catalog: Catalog, namespace: str, warehouse: HiveWarehouse
) -> None:
    source, target = f"{namespace}.flights", f"{namespace}.target"
    table = snapshot(catalog, source, target).table
    expected = table.scan().to_arrow().sort_by("id")
    table.delete()
    with table.update_spec() as update:
        update.add_field("id", "identity")
    assert add_hive_files(catalog, target, source).files == 4
    table = catalog.load_table(target)
    assert {task.file.spec_id for task in table.scan().plan_files()} == {0}
    assert table.scan().to_arrow().sort_by("id") == expected
    assert table.scan("month = 1").count() == 3

    plain = catalog.create_table(f"{namespace}.unpartitioned", schema=table.schema())
    with pytest.raises(InvalidInputError, match=r"column 'month' would be null.*Partition the table by month"):
        add_hive_files(catalog, plain.identifier, source)
    assert catalog.load_table(plain.identifier).metadata == plain.metadata

    with plain.update_spec() as update:
        update.add_field("id", "identity")
    assert add_hive_files(catalog, plain.identifier, f"{namespace}.plain").files == 2
    files = [task.file for task in catalog.load_table(plain.identifier).scan().plan_files()]
    assert sorted((file.spec_id, file.record_count) for file in files) == [(0, 2), (1, 1)]
    assert ids(catalog, f"{namespace}.unpartitioned") == [1, 2, 3]


def test_files_of_a_folder_are_added_in_every_format(
    catalog: Catalog, namespace: str, warehouse: HiveWarehouse, tmp_path: Path
) -> None:
    target = f"{namespace}.target"
    snapshot(catalog, f"{namespace}.flights", target).table.delete()
    for month in ("7", "8"):
        (tmp_path / f"month={month}").mkdir()
    pq.write_table(rows(70), tmp_path / "month=7" / "a.parquet")
    orc.write_table(rows(80), str(tmp_path / "month=8" / "b.orc"))
    (tmp_path / "_SUCCESS").touch()
    assert add_folder(catalog, target, f"file:{tmp_path}").files == 2
    assert ids(catalog, target, row_filter="month = 8") == [80] and ids(catalog, target) == [70, 80]


def test_columns_that_the_table_lacks_are_left_out_and_logged(
    catalog: Catalog, namespace: str, warehouse: HiveWarehouse, caplog: pytest.LogCaptureFixture
) -> None:
    table = catalog.create_table((namespace, "narrow"), pa.schema([("id", pa.int32())]))
    add_hive_files(catalog, table.identifier, (namespace, "plain"))
    assert ids(catalog, f"{namespace}.narrow") == [1, 2, 3]
    told = [each.getMessage() for each in caplog.records if "leaves out" in each.getMessage()]
    assert len(told) == 1 and f"{namespace}.narrow" in told[0] and told[0].endswith(": name")


@pytest.mark.parametrize(
    ("text", "folder"),
    [
        ("`parquet`.`file:/a/b`", "file:/a/b"),
        ("parquet.`s3://b/x.y/z`", "s3://b/x.y/z"),
        ("`ORC`.`/a`", "/a"),
        ("db.parquet", None),
        ("parquet.events", None),
    ],
)
def test_sources_are_tables_or_folders(text: str, folder: str | None) -> None:
    assert folder_of(text) == folder
