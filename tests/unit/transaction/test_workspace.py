"""Which files are a transaction's own, and so its own to delete."""

from __future__ import annotations

import pytest

from hms_iceberg.errors import FileAlreadyExistsError, StorageError
from hms_iceberg.transaction.workspace import FileWorkspace
from tests.support.memory_storage import InMemoryStorage

MINE, THEIRS, WRITTEN = (f"mem://warehouse/t/metadata/{name}" for name in ("mine.avro", "theirs.avro", "data.parquet"))


def test_a_file_of_somebody_else_stays_where_one_of_its_name_could_not_be_made() -> None:
    storage = InMemoryStorage()
    storage.create(THEIRS, b"theirs")
    workspace = FileWorkspace(storage)
    workspace.create(MINE, b"mine")
    with pytest.raises(FileAlreadyExistsError):
        workspace.create(THEIRS, b"mine")
    assert workspace.created == (MINE,)
    assert workspace.clean_up(committed=None) == [MINE]
    assert storage.files == {THEIRS: b"theirs"}


def test_a_file_that_could_be_written_only_in_part_is_deleted_with_the_others() -> None:
    storage = InMemoryStorage()
    workspace = FileWorkspace(storage)

    def break_off(location: str) -> None:
        storage.files[location] = b"mi"
        raise StorageError("as told")

    storage.before_create = break_off
    with pytest.raises(StorageError, match="as told"):
        workspace.create(MINE, b"mine")
    assert workspace.clean_up(committed=None) == [MINE]
    assert storage.files == {}
