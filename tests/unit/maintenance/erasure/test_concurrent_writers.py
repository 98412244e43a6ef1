"""An erasure beside writers: nothing of theirs is lost, and nothing of what is forgotten comes back."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest

from hms_iceberg.errors import CommitConflictError
from tests.support.memory_metastore import InMemoryMetastore, after
from tests.support.operations import MERGE_ON_READ, SCHEMA, rows
from tests.support.row_tables import create, ids, other_writer

NOW = dt.timedelta(0)


def test_rows_that_another_writer_adds_meanwhile_are_forgotten_as_well(tmp_path: Path) -> None:
    table = create(tmp_path, schema=SCHEMA)
    table.append(rows(1, 2, 3))
    metastore = table.metastore
    assert isinstance(metastore, InMemoryMetastore)
    metastore.script.append(after(lambda: other_writer(table).append(rows(2, 4))))

    result = table.forget("id = 2", dry_run=False, after=NOW)

    assert ids(table.refresh()) == [1, 3, 4]
    assert len(table.snapshots()) == 2
    assert result.report is not None and len(result.report["proof"]["files"]) == 2


def test_an_append_that_was_begun_before_follows_the_erasure(tmp_path: Path) -> None:
    table = create(tmp_path, schema=SCHEMA)
    table.append(rows(1, 2, 3))
    other = other_writer(table).transaction()
    other.append(rows(2, 5))
    table.forget("id = 2", dry_run=False, after=NOW)

    other.commit_transaction()

    assert ids(table.refresh()) == [1, 2, 3, 5]


@pytest.mark.parametrize("mode", [MERGE_ON_READ, {}])
@pytest.mark.parametrize("version", [2, 3])
def test_deletes_of_rows_in_files_that_were_written_anew_are_a_conflict(
    tmp_path: Path, version: int, mode: dict[str, str]
) -> None:
    table = create(tmp_path, version, schema=SCHEMA, **mode)
    table.append(rows(1, 2, 3))
    other = other_writer(table).transaction()
    other.delete("id = 3")
    table.forget("id = 2", dry_run=False, after=NOW)

    with pytest.raises(CommitConflictError):
        other.commit_transaction()

    assert ids(table.refresh()) == [1, 3]


def test_a_compaction_that_was_begun_before_does_not_bring_rows_back(tmp_path: Path) -> None:
    table = create(tmp_path, schema=SCHEMA)
    for number in (1, 2, 3):
        table.append(rows(number))
    metastore = table.metastore
    assert isinstance(metastore, InMemoryMetastore)
    metastore.script.append(after(lambda: other_writer(table).forget("id = 2", dry_run=False, after=NOW)))

    with pytest.raises(CommitConflictError):
        table.maintenance.rewrite_data_files(options={"rewrite-all": "true", "partial-progress.enabled": "false"})

    assert ids(table.refresh()) == [1, 3]
