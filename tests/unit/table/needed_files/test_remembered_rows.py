"""Rows of a metastore are asked for once by who looks after many tables, and anew when they are old."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from hms_iceberg.catalog import load_catalog
from hms_iceberg.errors import NoSuchTableError
from hms_iceberg.metastore import TablePointer, TableRow
from hms_iceberg.table.file_system_catalog import FileSystemCatalog
from hms_iceberg.table.needed_files.remembered_rows import RememberedRows, asked_once
from tests.support.spelled_places import RowsMetastore

ARROW = pa.schema([("id", pa.int64())])


@pytest.fixture
def folders(tmp_path: Path) -> FileSystemCatalog:
    catalog = load_catalog("files", type="hadoop", warehouse=str(tmp_path))
    for name in ("a", "b"):
        catalog.create_namespace(name)
        catalog.create_table(f"{name}.t", ARROW)
    assert isinstance(catalog.metastore, FileSystemCatalog)
    return catalog.metastore


def counted(folders: FileSystemCatalog, monkeypatch: pytest.MonkeyPatch) -> list[None]:
    asked: list[None] = []
    rows = folders.rows

    def counting(namespace: str | None = None) -> Iterator[TableRow]:
        asked.append(None)
        return rows(namespace)

    monkeypatch.setattr(folders, "rows", counting)
    return asked


def test_all_tables_are_asked_for_once_by_many_threads(
    folders: FileSystemCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, remembered = counted(folders, monkeypatch), RememberedRows(folders)
    found: list[list[str]] = []
    threads = [threading.Thread(target=lambda: found.append(list(map(str, remembered.rows())))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [["a.t", "b.t"]] * 8 and len(asked) == 1
    assert list(map(str, remembered.rows("B"))) == ["b.t"] and len(asked) == 1


def test_what_is_about_to_be_deleted_is_compared_with_rows_that_were_asked_for_after_it_was_found(
    folders: FileSystemCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, remembered = counted(folders, monkeypatch), RememberedRows(folders)
    list(remembered.rows())
    one, other = remembered.fresh(), remembered.fresh()
    assert list(map(str, one.rows())) == list(map(str, other.rows())) == ["a.t", "b.t"]
    assert len(asked) == 2, "two who ask at a time share an answer"
    list(remembered.rows())
    assert len(asked) == 2
    list(remembered.fresh().rows())
    assert len(asked) == 3


def test_partitions_are_remembered_and_single_rows_are_not() -> None:
    metastore, name = RowsMetastore(), ("a", "t")
    metastore.add_hive(name, "s3://w/t", ("s3://w/t/p=1",))
    remembered = RememberedRows(metastore)

    def answers(rows: RememberedRows) -> list[list[str]]:
        row = rows.row(name)
        assert row is not None
        return [list(rows.partition_locations(name)), [row.location]]

    assert answers(remembered) == [["s3://w/t/p=1"], ["s3://w/t"]]
    metastore.hive[name] = "s3://w/moved", ("s3://w/t/p=2",)
    assert answers(remembered) == [["s3://w/t/p=1"], ["s3://w/moved"]]
    assert answers(remembered.fresh()) == [["s3://w/t/p=2"], ["s3://w/moved"]]


def test_rows_are_remembered_with_what_places_and_owners_are_known_by_and_nothing_long() -> None:
    metastore = RowsMetastore()
    kept = {"uuid": "u", "metadata_location": "s3://w/u/m.json", "write.data.path": "s3://w/u/d", "snapshot": "true"}
    shown = {"current-schema": "{}", "default-sort-order": "{}", "spark.sql.sources.schema.part.0": "{}"}
    metastore._rows["a", "u"] = TablePointer(("a", "u"), "s3://w/u", {**kept, **shown}, "")
    (row,) = asked_once(metastore).rows()
    assert row.properties == kept


def test_one_question_asks_once_and_who_looks_after_many_tables_goes_on_remembering() -> None:
    metastore = RowsMetastore()
    remembered = RememberedRows(metastore)
    assert asked_once(remembered) is remembered
    once = asked_once(metastore)
    assert list(once.rows()) == []
    metastore.add_hive(("a", "t"), "s3://w/t", None)
    assert list(once.rows()) == [] and len(list(asked_once(metastore).rows())) == 1


def test_where_a_table_is_gone_all_rows_are_asked_for_anew_unless_it_was_unknown_among_them() -> None:
    metastore = RowsMetastore()
    for name in ("t", "u"):
        metastore.add_hive(("a", name), f"s3://w/{name}", ())
    remembered = RememberedRows(metastore)
    with pytest.raises(NoSuchTableError):
        remembered.partition_locations(("a", "nobody"))
    assert list(map(str, remembered.rows())) == ["a.t", "a.u"]
    del metastore.hive["a", "t"], metastore._rows["a", "t"]
    metastore.add_hive(("a", "renamed"), "s3://w/t", ())
    for name, known in (("nobody", ["a.t", "a.u"]), ("t", ["a.u", "a.renamed"])):
        with pytest.raises(NoSuchTableError):
            remembered.partition_locations(("a", name))
        assert list(map(str, remembered.rows())) == known


def test_old_rows_are_asked_for_anew(folders: FileSystemCatalog, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, remembered = counted(folders, monkeypatch), RememberedRows(folders, seconds=-1)
    for _ in range(2):
        assert len(list(remembered.rows())) == 2
    assert len(asked) == 2
