"""The journal of a migration, and the note of its way back."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path

import pytest

from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.errors import MigrationError
from hms_iceberg.migration.migration_journal import (
    Journal,
    files_location,
    is_switch_noted,
    read_files,
    read_given_up,
    read_journal,
    read_rollback_note,
    remove_rollback_note,
    write_files,
    write_given_up,
    write_journal,
    write_rollback_note,
    write_switched,
)
from hms_iceberg.migration.recovery import newest_version
from hms_iceberg.processes import Process

JOURNAL = Journal(
    migration_id="id",
    database="db",
    table="t",
    backup="t_backup_",
    staging="t__iceberg_staging",
    location="file:/wh/t",
    iceberg_location="file:/wh/t",
    original={"type": "MANAGED_TABLE", "parameters": {"EXTERNAL": None}, "created": 7},
    files=3,
    bytes=100,
    partitions=2,
)


def test_a_journal_is_read_as_it_was_written(tmp_path: Path) -> None:
    write_journal(ArrowStorage(), str(tmp_path), JOURNAL)

    assert read_journal(ArrowStorage(), str(tmp_path)) == JOURNAL


def test_where_there_is_no_journal_there_is_none(tmp_path: Path) -> None:
    assert read_journal(ArrowStorage(), str(tmp_path)) is None


def test_a_second_journal_is_refused(tmp_path: Path) -> None:
    write_journal(ArrowStorage(), str(tmp_path), JOURNAL)

    with pytest.raises(MigrationError, match="another migration of it was begun"):
        write_journal(ArrowStorage(), str(tmp_path), replace(JOURNAL, migration_id="other"))

    assert read_journal(ArrowStorage(), str(tmp_path)) == JOURNAL


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 1}', '{"format": 2, "worker": {"host": "h"}}'])
def test_a_journal_that_makes_no_sense_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "_hive-migration.json").write_text(text)

    with pytest.raises(MigrationError, match=r"Cannot read the migration journal .*_hive-migration\.json"):
        read_journal(ArrowStorage(), str(tmp_path))


def test_a_journal_of_another_format_is_refused(tmp_path: Path) -> None:
    write_journal(ArrowStorage(), str(tmp_path), JOURNAL)
    path = tmp_path / "_hive-migration.json"
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, "format": content["format"] + 1}))

    with pytest.raises(MigrationError, match="written by another version of this package"):
        read_journal(ArrowStorage(), str(tmp_path))


def test_a_note_of_a_rollback_comes_and_goes(tmp_path: Path) -> None:
    storage, folder = ArrowStorage(), str(tmp_path)
    assert read_rollback_note(storage, folder) is None

    write_rollback_note(storage, folder)
    assert read_rollback_note(storage, folder) == Process.this()
    with pytest.raises(MigrationError, match="Another process began to take the table back"):
        write_rollback_note(storage, folder)

    remove_rollback_note(storage, folder)
    assert read_rollback_note(storage, folder) is None


def test_the_version_that_is_given_up_is_noted_for_its_migration_and_the_last_one_counts(tmp_path: Path) -> None:
    storage, folder = ArrowStorage(), str(tmp_path)
    assert read_given_up(storage, folder, JOURNAL) is None

    for version in ("file:/wh/t/metadata/00002-a.metadata.json", "file:/wh/t/metadata/00003-ü.metadata.json"):
        write_given_up(storage, folder, JOURNAL, version)

        assert read_given_up(storage, folder, JOURNAL) == version
    assert read_given_up(storage, folder, replace(JOURNAL, migration_id="other")) is None


def test_a_switch_is_noted_as_often_as_it_is_seen_and_a_new_version_to_give_up_has_none_yet(tmp_path: Path) -> None:
    storage, folder = ArrowStorage(), str(tmp_path)
    for version in ("file:/wh/t/metadata/00002-a.metadata.json", "file:/wh/t/metadata/00003-b.metadata.json"):
        write_given_up(storage, folder, JOURNAL, version)
        assert not is_switch_noted(storage, folder, JOURNAL)
        for _ in range(2):
            write_switched(storage, folder, JOURNAL)
            assert is_switch_noted(storage, folder, JOURNAL)
    assert not is_switch_noted(storage, folder, replace(JOURNAL, migration_id="other"))


def test_the_list_of_files_is_read_as_it_was_written(tmp_path: Path) -> None:
    storage, files = ArrowStorage(), {"file:/wh/t/a": 1, "file:/wh/t/k=ü/a": 2, "s3://other/k=2/b, c": 1 << 40}
    write_files(storage, str(tmp_path), JOURNAL, files.items())

    assert read_files(storage, str(tmp_path), JOURNAL) == files


_NO_JSON, _NO_OBJECT = gzip.compress(b"{", mtime=0), gzip.compress(b"[1]", mtime=0)


@pytest.mark.parametrize(
    "data",
    [None, b"", b"no zip", _NO_JSON[:-4], _NO_JSON, _NO_OBJECT],
    ids=["gone", "empty", "not packed", "cut off", "no JSON", "no object"],
)
def test_a_list_of_files_that_is_gone_or_damaged_is_named(tmp_path: Path, data: bytes | None) -> None:
    if data is not None:
        Path(files_location(str(tmp_path), JOURNAL)).write_bytes(data)

    with pytest.raises(
        MigrationError, match=r"(?s)files that db\.t had.*_hive-migration\.id\.files.*Nothing was changed"
    ):
        read_files(ArrowStorage(), str(tmp_path), JOURNAL)


def test_attempts_that_were_killed_are_no_later_versions_of_a_table() -> None:
    made = ["/t/metadata/00000-a.metadata.json", "/t/metadata/00001-b.metadata.json", "/t/metadata/snap-9-b.avro"]

    assert newest_version(made) == newest_version([*made, "/t/metadata/00001-c.gz.metadata.json"]) == 1
    assert newest_version([*made, "/t/metadata/00010-d.metadata.json"]) == 10
    assert newest_version([]) == 0
