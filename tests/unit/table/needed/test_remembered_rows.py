"""Rows of a metastore are asked for once by who looks after many tables, and anew when they are old."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from hms_iceberg.catalog import load_catalog
from hms_iceberg.metastore import TableRow
from hms_iceberg.table.file_system_catalog import FileSystemCatalog
from hms_iceberg.table.needed.neighbours import RememberedRows

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


def test_old_rows_are_asked_for_anew(folders: FileSystemCatalog, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, remembered = counted(folders, monkeypatch), RememberedRows(folders, seconds=-1)
    for _ in range(2):
        assert len(list(remembered.rows())) == 2
    assert len(asked) == 2
