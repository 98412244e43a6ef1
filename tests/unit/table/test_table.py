"""The table facade over a metastore in memory and files on disk."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.arrow.writing.write import write_data_files
from hms_iceberg.catalog import Catalog
from hms_iceberg.errors import (
    CommitConflictError,
    InvalidInputError,
    InvalidSchemaChangeError,
    NoSuchRefError,
    NoSuchSnapshotError,
    NoSuchTableError,
    UnknownColumnError,
    UnsupportedError,
)
from hms_iceberg.expressions.tree import EqualTo
from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.spec.snapshots_and_refs import StatisticsFile
from hms_iceberg.spec.transforms.partition_transforms import BucketTransform, TruncateTransform
from hms_iceberg.table import StaticTable, Table
from hms_iceberg.table.reading.scan import milliseconds, snapshot_as_of
from hms_iceberg.updates.rows.row_delta import RowDelta
from hms_iceberg.updates.table_settings import SetProperties
from tests.support.memory_metastore import InMemoryMetastore
from tests.support.tables import QUICK

ARROW = pa.schema([("id", pa.int64()), ("name", pa.string())])


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    catalog = Catalog("memory", InMemoryMetastore(), ArrowStorage({}), {"warehouse": str(tmp_path)})
    catalog.create_namespace("db", {"location": str(tmp_path / "db.db")})
    return catalog


@pytest.fixture
def table(catalog: Catalog) -> Table:
    return catalog.create_table("db.events", ARROW, properties=QUICK)


def rows(*ids: int, name: str = "x") -> pa.Table:
    return pa.table({"id": list(ids), "name": [name] * len(ids)}, schema=ARROW)


def written(table: Table, *ids: int) -> DataFile:
    """A data file that is not part of the table yet."""
    (file,) = write_data_files(table.metadata, table.storage, rows(*ids))
    return file


def ids(table: Table | StaticTable, **options: object) -> list[int]:
    return sorted(table.scan(**options).to_arrow()["id"].to_pylist())  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------------- scans


def test_an_empty_table_is_scanned(table: Table) -> None:
    assert table.scan("id > 1").to_arrow() == ARROW.empty_table()
    assert (table.scan().count(), list(table.scan().plan_files())) == (0, [])
    assert table.scan(ref="main").count() == 0


def test_a_scan_is_narrowed_step_by_step(table: Table) -> None:
    table.append(rows(*range(10)))
    scan = table.scan("id > 2").filter(EqualTo("name", "x")).filter("id < 6").select("id")
    assert scan.to_arrow().to_pydict() == {"id": [3, 4, 5]}
    assert scan.select("name").selected_fields == ()
    assert scan.projection().column_names == ["id"]
    assert table.scan("ID = 1", case_sensitive=False, selected_fields=("NAME",)).to_arrow().to_pydict() == {
        "name": ["x"]
    }
    with pytest.raises(UnknownColumnError):
        table.scan("ID = 1").to_arrow()


def test_metadata_columns_are_selected_by_name(table: Table) -> None:
    table.append(rows(1, 2, 3))
    found = table.scan(selected_fields=("id", "_pos", "_file")).to_arrow()
    assert found["_pos"].to_pylist() == [0, 1, 2]
    assert found.column_names == ["id", "_pos", "_file"]
    assert len(set(found["_file"].to_pylist())) == 1


@pytest.mark.parametrize("limit", [0, 1, 4, 100])
def test_a_limit_is_kept(table: Table, limit: int) -> None:
    table.append(rows(1, 2, 3))
    table.append(rows(4, 5))
    scan = table.scan(limit=limit)
    assert scan.to_arrow().num_rows == scan.count() == scan.to_polars().height == min(limit, 5)
    with pytest.raises(InvalidInputError):
        table.scan(limit=-1)


def test_the_schema_of_a_snapshot_and_a_tag_is_that_of_their_time_and_of_a_branch_todays(table: Table) -> None:
    table.append(rows(1))
    snapshot = table.current_snapshot()
    assert snapshot is not None
    table.manage_snapshots().create_tag(None, "tag").create_branch(None, "branch").commit()
    table.update_schema().rename_column("name", "title").commit()
    assert table.scan(snapshot_id=snapshot.snapshot_id).to_arrow().column_names == ["id", "name"]
    assert table.scan(ref="tag").to_arrow().column_names == ["id", "name"]
    assert table.scan(ref="branch").to_arrow().column_names == ["id", "title"]
    assert table.scan("title = 'x'").use_ref("branch").count() == 1


def test_what_is_not_there_cannot_be_scanned(table: Table) -> None:
    table.append(rows(1))
    with pytest.raises(NoSuchSnapshotError, match="no snapshot 5"):
        table.scan(snapshot_id=5)
    with pytest.raises(NoSuchRefError, match="'absent'; it has main"):
        table.scan(ref="absent")
    with pytest.raises(NoSuchSnapshotError, match=r"had no snapshot at 1999-01-01T00:00:00.000000\+00:00; its first"):
        table.scan(as_of="1999-01-01")
    with pytest.raises(InvalidInputError, match="snapshot_id and ref"):
        table.scan(snapshot_id=5, ref="main")


# ------------------------------------------------------------------------------------------- time travel


@pytest.mark.parametrize(
    ("time", "expected"),
    [
        (5, 5),
        ("1970-01-01T00:00:00.005", 5),
        ("1970-01-01 01:00:00.005+01:00", 5),
        ("1970-01-02", 86_400_000),
        (dt.datetime(1970, 1, 2), 86_400_000),
        (dt.datetime(1970, 1, 2, tzinfo=dt.timezone(dt.timedelta(hours=1))), 82_800_000),
        ("1969-12-31T23:59:59.9999", -1),
    ],
)
def test_a_time_is_given_as_number_text_or_datetime(time: object, expected: int) -> None:
    assert milliseconds(time) == expected  # type: ignore[arg-type]


@pytest.mark.parametrize("time", [True, 1.5, "yesterday", None])
def test_what_is_no_time_is_refused(time: object) -> None:
    with pytest.raises(InvalidInputError, match="Not a time"):
        milliseconds(time)  # type: ignore[arg-type]


def test_the_snapshot_of_a_time_is_told_by_the_log_and_not_by_lineage(table: Table) -> None:
    table.append(rows(1))
    table.append(rows(2))
    first, second = table.snapshots()
    table.manage_snapshots().rollback_to_snapshot(first.snapshot_id).commit()
    log = table.history()
    assert [entry.snapshot_id for entry in log] == [first.snapshot_id, second.snapshot_id, first.snapshot_id]
    assert table.snapshot_as_of_timestamp(log[-1].timestamp_ms) == first
    assert table.snapshot_as_of_timestamp(log[0].timestamp_ms - 1) is None
    assert snapshot_as_of(table.metadata, log[0].timestamp_ms, inclusive=False) is None


# ---------------------------------------------------------------------------------------------- changes


def test_a_builder_commits_at_the_end_of_its_block_and_not_after_an_error(table: Table) -> None:
    with table.update_schema() as schema:
        schema.add_column("note", "string")
    assert table.schema().find_field("note").optional
    with pytest.raises(InvalidSchemaChangeError), table.update_schema() as schema:
        schema.add_column("other", "string").add_column("id", "string")
    assert table.refresh().schema().column_names == ["id", "name", "note"]


def test_partitioning_sorting_and_properties_are_changed(table: Table) -> None:
    with table.update_spec() as spec:
        spec.add_field("id", BucketTransform(4)).add_identity("name").rename_field("name", "title")
        assert len(spec.apply().fields) == 2
    table.update_spec().remove_field("id_bucket_4").commit()
    table.update_sort_order().asc("name").desc("id", "bucket[2]").commit()
    table.set_properties(a=1, b=True)
    table.set_properties({"c.d": "2"})
    table.remove_properties("a", "absent")
    assert [field.name for field in table.spec().fields] == ["title"]
    assert [str(field) for field in table.sort_order().fields] == [
        "identity(2) asc nulls-last",
        "bucket[2](1) desc nulls-last",
    ]
    assert (table.properties["b"], table.properties["c.d"], "a" in table.properties) == ("true", "2", False)
    assert len(table.specs()) == 3


def test_files_are_appended_deleted_overwritten_and_rewritten_by_who_wrote_them(table: Table) -> None:
    first, second, third = written(table, 1, 2), written(table, 3), written(table, 1, 2)
    table.new_fast_append().append_file(first).set("job", "7").commit()
    table.new_append().append_file(second).commit()
    table.rewrite_files().delete_file(first).add_file(third).commit()
    assert ids(table) == [1, 2, 3]
    table.rewrite_manifests().rewrite_if(lambda manifest: True).cluster_by(lambda file: file.file_path).commit()
    table.new_overwrite().overwrite_by_row_filter("id = 3").add_file(written(table, 4)).isolation("snapshot").commit()
    table.new_delete().delete_from_row_filter("id < 3").commit()
    assert ids(table) == [4]
    operations = [snapshot.operation for snapshot in table.snapshots()]
    assert operations == ["append", "append", "replace", "replace", "overwrite", "delete"]
    assert table.snapshots()[0].summary["job"] == "7"


def test_a_staged_change_is_published_later(table: Table) -> None:
    table.new_append().append_file(written(table, 1)).stage_only().set("wap.id", "a").commit()
    assert ids(table) == []
    (staged,) = table.snapshots()
    table.manage_snapshots().cherrypick(staged.snapshot_id).commit()
    assert ids(table) == [1]


def test_a_row_delta_that_points_at_a_file_that_is_gone_is_a_conflict(table: Table, catalog: Catalog) -> None:
    table.append(rows(1))
    (task,) = table.scan().plan_files()
    transaction = table.transaction()
    transaction.add(RowDelta((written(table, 2),), referenced=frozenset({task.file.file_path})))
    catalog.load_table("db.events").delete("id = 1")
    with pytest.raises(CommitConflictError, match=task.file.file_path):
        transaction.commit_transaction()


def test_any_update_is_part_of_a_transaction(table: Table) -> None:
    with table.transaction() as transaction:
        transaction.add(SetProperties({"a": "1"})).append(rows(1))
    assert table.properties["a"] == "1"


def test_appends_merge_manifests_where_the_table_asks_for_it(table: Table) -> None:
    table.set_properties({"commit.manifest-merge.enabled": "true", "commit.manifest.min-count-to-merge": "2"})
    table.append(rows(1))
    table.append(rows(2))
    snapshot = table.current_snapshot()
    assert snapshot is not None
    assert (snapshot.summary["manifests-created"], snapshot.summary["manifests-replaced"]) == ("1", "1")
    assert ids(table) == [1, 2]


def test_old_snapshots_expire(table: Table) -> None:
    for number in range(4):
        table.append(rows(number))
    newest = table.metadata.last_updated_ms
    table.expire_snapshots().older_than(newest + 1).retain_last(2).commit()
    assert len(table.snapshots()) == 2
    assert ids(table) == [0, 1, 2, 3]


# --------------------------------------------------------------------------------------------- identity


def test_a_table_shows_itself_and_equals_another_handle_at_the_same_version(table: Table, catalog: Catalog) -> None:
    other = catalog.load_table("db.events")
    assert table == other
    assert hash(table) == hash(other)
    assert repr(table).startswith("Table(db.events, columns=[id: long, name: string]")
    other.append(rows(1))
    assert table != other
    assert table.refresh() == other
    assert table.name() == table.identifier == ("db", "events")


def test_a_static_table_reads_one_version_for_ever(table: Table) -> None:
    table.append(rows(1))
    static = StaticTable.from_metadata(table.metadata_location)
    table.append(rows(2))
    assert ids(static) == [1]
    with pytest.raises(UnsupportedError, match="cannot be refreshed"):
        static.refresh()


def test_a_static_table_is_found_by_the_folder_of_a_file_system_table(table: Table, tmp_path: Path) -> None:
    table.append(rows(1))
    folder = tmp_path / "copy" / "metadata"
    folder.mkdir(parents=True)
    (folder / "v3.metadata.json").write_bytes(Path(table.metadata_location).read_bytes())
    (folder / "version-hint.text").write_text("3\n")
    assert ids(StaticTable.from_metadata(str(tmp_path / "copy"))) == [1]
    assert ids(StaticTable.from_metadata(str(folder))) == [1]


def test_statistics_and_the_format_version_are_changed(table: Table) -> None:
    table.append(rows(1))
    (snapshot,) = table.snapshots()
    table.update_statistics().set_statistics(StatisticsFile(snapshot.snapshot_id, "mem://a.puffin", 10, 5)).commit()
    assert [file.statistics_path for file in table.metadata.statistics] == ["mem://a.puffin"]
    table.update_statistics().remove_statistics(snapshot.snapshot_id).commit()
    assert table.metadata.statistics == ()
    table.upgrade_table_version(3)
    assert table.format_version == 3
    with pytest.raises(InvalidInputError, match="downgrade"):
        table.upgrade_table_version(2)


def test_a_partition_value_of_more_digits_than_there_are_is_refused_and_leaves_nothing(
    catalog: Catalog, tmp_path: Path
) -> None:
    column = pa.schema([("amount", pa.decimal128(38, 0))])
    table = catalog.create_table("db.large", column, properties=QUICK)
    with table.update_spec() as update:
        update.add_field("amount", TruncateTransform(1000), "thousands")
    least, greatest = Decimal("-" + "9" * 38), Decimal("9" * 38)
    table.append(pa.table({"amount": [greatest]}, schema=column))
    before = sorted(filter(Path.is_file, tmp_path.rglob("*")))
    with pytest.raises(InvalidInputError, match="more than 38 digits"):
        table.append(pa.table({"amount": [least]}, schema=column))
    assert sorted(filter(Path.is_file, tmp_path.rglob("*"))) == before
    assert table.scan("amount > 5").to_arrow()["amount"].to_pylist() == [greatest]


def test_a_table_whose_name_another_one_took_is_not_moved_to_that(catalog: Catalog, table: Table) -> None:
    table.append(rows(1))
    catalog.rename_table("db.events", "db.old")
    catalog.create_table("db.events", ARROW, properties=QUICK).append(rows(7))
    with pytest.raises(NoSuchTableError, match="its name belongs to the table at"):
        table.refresh()
    assert ids(table) == [1]


def test_a_table_without_a_uuid_is_moved_to_the_version_that_has_one(catalog: Catalog) -> None:
    table = catalog.create_table("db.old", ARROW, properties={"format-version": "1", **QUICK})
    table._version = replace(table._version, metadata=replace(table.metadata, table_uuid=None))
    catalog.load_table("db.old").append(rows(1))
    assert ids(table.refresh()) == [1]
