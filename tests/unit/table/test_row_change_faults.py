"""Storage that fails while rows are changed: the error is told, and nothing of the change stays."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.errors import CorruptDataFileError, MissingFileError, StorageError
from hms_iceberg.table.table import Table
from tests.support.row_tables import MODES, arrow, check, create, data_files_on_disk, ids, numbered, row
from tests.support.tables import BY_CITY

CHANGES: dict[str, Callable[[Table], Any]] = {
    "delete": lambda table: table.delete("amount in (2, 4, 6)"),
    "update": lambda table: table.update({"city": "Bern"}, "amount in (2, 4, 6)"),
    "overwrite": lambda table: table.overwrite(numbered(50, 53), "amount in (2, 4, 6)"),
    "upsert": lambda table: table.upsert(
        arrow([row(1, amount=0), row(2, amount=0), row(3, amount=0), row(50)]), ["id"]
    ),
    "row delta": lambda table: table.new_row_delta().delete_equal(numbered(1, 4), ["id"]).add_rows(numbered(50, 53)),
}


class FailingStorage(ArrowStorage):
    """Fails to write the n-th data file."""

    def __init__(self, outputs: int) -> None:
        super().__init__()
        self.outputs = outputs

    def open_output(self, location: str) -> BinaryIO:
        if "/data/" in location:
            self.outputs -= 1
            if self.outputs < 0:
                raise StorageError(f"Cannot create {location}: the disk is full.")
        return super().open_output(location)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("outputs", [0, 1])
def test_a_disk_that_is_full_leaves_the_table_as_it_was(tmp_path: Path, change: str, mode: str, outputs: int) -> None:
    table = create(tmp_path, 2, mode, spec=BY_CITY)
    table.append(numbered(0, 9))
    before, location = data_files_on_disk(table), table.metadata_location
    table._storage = FailingStorage(outputs)
    with pytest.raises(StorageError, match="full"):
        CHANGES[change](table)
    assert data_files_on_disk(table) == before
    assert table.refresh().metadata_location == location
    table._storage = ArrowStorage()
    assert ids(table) == list(range(9))
    check(table)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("change", ["delete", "update", "overwrite", "upsert"])
def test_a_data_file_that_is_gone_or_damaged_is_named(tmp_path: Path, change: str, mode: str) -> None:
    table = create(tmp_path, 2, mode)
    table.append(numbered(0, 9))
    (path,) = data_files_on_disk(table)
    data = Path(path).read_bytes()
    Path(path).write_bytes(data[: len(data) // 2])
    with pytest.raises(CorruptDataFileError, match=Path(path).name):
        CHANGES[change](table)
    Path(path).unlink()
    with pytest.raises(MissingFileError, match=Path(path).name):
        CHANGES[change](table)
    assert data_files_on_disk(table) == set()
    assert len(table.refresh().snapshots()) == 1
