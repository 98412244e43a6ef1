"""An erasure that is killed at any call leaves the table old or new, and `resume_forget` finishes it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.maintenance import check_table, forget, resume_forget
from hms_iceberg.maintenance.erasure.erasure_journal import open_erasures
from hms_iceberg.table import Table
from hms_iceberg.transaction.workspace import read_version
from tests.support.erasure_histories import left_of
from tests.support.operations import MERGE_ON_READ, SCHEMA
from tests.support.row_tables import NAME, create, rows_of

CITY = "Sq7Kx93MbTwe"
KEPT = [{"id": 1, "city": "Bonn", "amount": 1}, {"id": 3, "city": None, "amount": 3}]


class Killed(BaseException):
    """The process is gone."""


class Process:
    """A process that is killed before one of its calls that change something, and so after the one before."""

    def __init__(self, table: Table, number: int) -> None:
        self.calls = 0
        self._number = number
        storage: Any = ArrowStorage()
        for name in ("create", "open_output", "delete", "delete_empty_folder"):
            setattr(storage, name, self._watched(getattr(storage, name)))
        metastore: Any = table.metastore
        self._swap = metastore.swap
        metastore.swap = self._watched(metastore.swap)
        self.table = opened(table, storage)

    def end(self) -> None:
        metastore: Any = self.table.metastore
        metastore.swap = self._swap

    def _watched(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*arguments: Any, **more: Any) -> Any:
            self.calls += 1
            if self.calls > self._number:
                raise Killed
            return call(*arguments, **more)

        return watched


def opened(table: Table, storage: Any) -> Table:
    location = table.metastore.load(NAME).metadata_location
    return Table(NAME, read_version(location, storage), table.metastore, storage)


def made(folder: Path) -> Table:
    table = create(folder, schema=SCHEMA, **MERGE_ON_READ)
    rows = [*KEPT, {"id": 2, "city": CITY, "amount": 2}, {"id": 4, "city": "Köln", "amount": 4}]
    table.append(pa.Table.from_pylist(rows, schema=table.schema().as_arrow()))
    table.delete("id = 4")
    return table


def test_an_erasure_that_is_killed_at_any_call_is_finished_by_another_process(tmp_path: Path) -> None:
    number, is_through = 0, False
    while not is_through:
        folder = tmp_path / str(number)
        table = made(folder)
        before, old = rows_of(table), Path(table.metadata_location)
        process = Process(table, number)
        try:
            forget(process.table, f"city = '{CITY}'", dry_run=False, after=dt.timedelta(0))
            is_through = True
        except Killed:
            pass
        process.end()
        table = opened(table, ArrowStorage())
        assert rows_of(table) in (before, KEPT)
        journals = open_erasures(table.metadata, table.metadata_location, table.storage)
        result = resume_forget(table)
        assert (result is not None) == bool(journals)
        if rows_of(table.refresh()) != KEPT:
            assert not journals
            forget(table, f"city = '{CITY}'", dry_run=False, after=dt.timedelta(0))
        assert rows_of(table.refresh()) == KEPT
        assert left_of(CITY, folder) == [] and not old.exists(), number
        assert not open_erasures(table.metadata, table.metadata_location, table.storage)
        assert not check_table(table, record_counts=True).findings
        number += 1
    assert number > 10
