"""The record of a migration: its journal, and the notes of its way back."""

from __future__ import annotations

import gzip
import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.errors import MigrationError
from hms_iceberg.migration.migration_journal import HandbackNote, Journal, MigrationRecord
from hms_iceberg.migration.undo.recovery import newest_version
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


def begin(folder: Path, journal: Journal = JOURNAL) -> MigrationRecord:
    return MigrationRecord.begin(ArrowStorage(), str(folder), journal)


def test_a_journal_is_read_as_it_was_written(tmp_path: Path) -> None:
    record = begin(tmp_path)

    assert MigrationRecord.find(ArrowStorage(), str(tmp_path)) == record
    assert record.journal == JOURNAL


def test_where_there_is_no_journal_there_is_none(tmp_path: Path) -> None:
    assert MigrationRecord.find(ArrowStorage(), str(tmp_path)) is None


def test_a_second_journal_is_refused(tmp_path: Path) -> None:
    record = begin(tmp_path)

    with pytest.raises(MigrationError, match="another migration of it was begun"):
        begin(tmp_path, replace(JOURNAL, migration_id="other"))

    assert MigrationRecord.find(ArrowStorage(), str(tmp_path)) == record


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 1}', '{"format": 2, "worker": {"host": "h"}}'])
def test_a_journal_that_makes_no_sense_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "_hive-migration.json").write_text(text)

    with pytest.raises(MigrationError, match=r"Cannot read the migration journal .*_hive-migration\.json"):
        MigrationRecord.find(ArrowStorage(), str(tmp_path))


def test_a_journal_of_another_format_is_refused(tmp_path: Path) -> None:
    begin(tmp_path)
    path = tmp_path / "_hive-migration.json"
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, "format": content["format"] + 1}))

    with pytest.raises(MigrationError, match="written by another version of this package"):
        MigrationRecord.find(ArrowStorage(), str(tmp_path))


def test_a_note_of_a_rollback_comes_and_goes_and_names_the_last_who_began(tmp_path: Path) -> None:
    record = begin(tmp_path)
    assert record.taken_back_by is None

    (tmp_path / "_hive-migration.rollback.json").write_text(json.dumps({**asdict(Process.this()), "pid": 1}))
    assert record.taken_back_by not in (None, Process.this())
    record.begin_to_take_back()
    assert record.taken_back_by == Process.this()

    record.end_taking_back()
    assert record.taken_back_by is None


def test_of_two_that_begin_a_rollback_at_once_one_is_refused(tmp_path: Path) -> None:
    class Slow(ArrowStorage):
        def delete(self, location: str) -> None:
            super().delete(location)
            MigrationRecord(ArrowStorage(), str(tmp_path), JOURNAL).begin_to_take_back()

    with pytest.raises(MigrationError, match="Another process began to take the table back"):
        MigrationRecord(Slow(), str(tmp_path), JOURNAL).begin_to_take_back()


def test_the_version_that_is_given_up_is_noted_for_its_migration_and_the_last_one_counts(tmp_path: Path) -> None:
    record = begin(tmp_path)
    assert record.given_up is None

    for version in ("file:/wh/t/metadata/00002-a.metadata.json", "file:/wh/t/metadata/00003-ü.metadata.json"):
        record.give_up(version)

        assert record.given_up == version
    assert replace(record, journal=replace(JOURNAL, migration_id="other")).given_up is None


def test_a_switch_is_noted_as_often_as_it_is_seen_and_a_new_version_to_give_up_has_none_yet(tmp_path: Path) -> None:
    record = begin(tmp_path)
    for version in ("file:/wh/t/metadata/00002-a.metadata.json", "file:/wh/t/metadata/00003-b.metadata.json"):
        record.give_up(version)
        assert not record.is_switched
        for _ in range(2):
            record.note_switched()
            assert record.is_switched
    assert not replace(record, journal=replace(JOURNAL, migration_id="other")).is_switched


def test_a_record_that_is_deleted_leaves_nothing_and_its_journal_goes_last(tmp_path: Path) -> None:
    gone: list[str] = []

    class Watched(ArrowStorage):
        def delete(self, location: str) -> None:
            gone.extend(sorted(path.name for path in tmp_path.iterdir() if location.endswith(path.name)))
            super().delete(location)

    record = MigrationRecord.begin(Watched(), str(tmp_path), JOURNAL)
    record.write_files([("file:/wh/t/a", 1)])
    record.begin_to_take_back()
    record.note_handback(HandbackNote("v", ("a",), ((("1",), "file:/wh/t/k=1"),)))
    record.give_up("file:/wh/t/metadata/00002-a.metadata.json")
    record.note_switched()
    assert record.handback == HandbackNote("v", ("a",), ((("1",), "file:/wh/t/k=1"),))

    record.delete()

    assert list(tmp_path.iterdir()) == []
    assert len(gone) == 6 and gone[0].endswith("files.json.gz") and gone[-1] == "_hive-migration.json"


def test_the_list_of_files_is_read_as_it_was_written(tmp_path: Path) -> None:
    record, files = begin(tmp_path), {"file:/wh/t/a": 1, "file:/wh/t/k=ü/a": 2, "s3://other/k=2/b, c": 1 << 40}
    record.write_files(files.items())

    assert record.read_files() == files


_NO_JSON, _NO_OBJECT = gzip.compress(b"{", mtime=0), gzip.compress(b"[1]", mtime=0)


@pytest.mark.parametrize(
    "data",
    [None, b"", b"no zip", _NO_JSON[:-4], _NO_JSON, _NO_OBJECT],
    ids=["gone", "empty", "not packed", "cut off", "no JSON", "no object"],
)
def test_a_list_of_files_that_is_gone_or_damaged_is_named(tmp_path: Path, data: bytes | None) -> None:
    record = begin(tmp_path)
    if data is not None:
        Path(record.files_location).write_bytes(data)

    with pytest.raises(
        MigrationError, match=r"(?s)files that db\.t had.*_hive-migration\.id\.files.*Nothing was changed"
    ):
        record.read_files()


def test_attempts_that_were_killed_are_no_later_versions_of_a_table() -> None:
    made = ["/t/metadata/00000-a.metadata.json", "/t/metadata/00001-b.metadata.json", "/t/metadata/snap-9-b.avro"]

    assert newest_version(made) == newest_version([*made, "/t/metadata/00001-c.gz.metadata.json"]) == 1
    assert newest_version([*made, "/t/metadata/00010-d.metadata.json"]) == 10
    assert newest_version([]) == 0
