"""The journal of a migration, and the process that it names."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.errors import MigrationError
from hms_iceberg.migration.migration_journal import (
    Journal,
    Worker,
    read_journal,
    read_rollback_note,
    remove_rollback_note,
    write_journal,
    write_rollback_note,
)
from hms_iceberg.migration.recovery import newest_version

JOURNAL = Journal(
    migration_id="id",
    database="db",
    table="t",
    backup="t_backup_",
    staging="t__iceberg_staging",
    location="file:/wh/t",
    original={"type": "MANAGED_TABLE", "parameters": {"EXTERNAL": None}, "created": 7},
    files=3,
    bytes=100,
    partitions=2,
    existing=("old.json",),
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


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 2}', '{"format": 1, "worker": {"host": "h"}}'])
def test_a_journal_that_makes_no_sense_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "hive-migration.json").write_text(text)

    with pytest.raises(MigrationError, match=r"Cannot read the migration journal .*hive-migration\.json"):
        read_journal(ArrowStorage(), str(tmp_path))


def test_a_note_of_a_rollback_comes_and_goes(tmp_path: Path) -> None:
    storage, folder = ArrowStorage(), str(tmp_path)
    assert read_rollback_note(storage, folder) is None

    write_rollback_note(storage, folder)
    assert read_rollback_note(storage, folder) == Worker.this_process()
    with pytest.raises(MigrationError, match="Another process began to take the table back"):
        write_rollback_note(storage, folder)

    remove_rollback_note(storage, folder)
    assert read_rollback_note(storage, folder) is None


def test_this_process_is_alive() -> None:
    assert Worker.this_process().may_be_alive()


def test_a_process_that_ended_is_dead_even_before_it_is_collected() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        worker = replace(Worker.this_process(), pid=process.pid, started="")
        assert worker.may_be_alive()
        assert process.stdin is not None
        process.stdin.close()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)

        assert not worker.may_be_alive()

    assert not worker.may_be_alive()


def test_a_later_process_with_the_same_number_is_not_taken_for_it() -> None:
    this = Worker.this_process()
    if not this.started:  # without /proc there is nothing to tell two processes of one number apart by
        pytest.skip("this system does not tell when a process was started")

    assert not replace(this, started="1").may_be_alive()


def test_a_process_of_another_machine_may_be_alive() -> None:
    assert replace(Worker.this_process(), host="elsewhere").may_be_alive()


def test_attempts_that_were_killed_are_no_later_versions_of_a_table() -> None:
    made = ["/t/metadata/00000-a.metadata.json", "/t/metadata/00001-b.metadata.json", "/t/metadata/snap-9-b.avro"]

    assert newest_version(made) == newest_version([*made, "/t/metadata/00001-c.gz.metadata.json"]) == 1
    assert newest_version([*made, "/t/metadata/00010-d.metadata.json"]) == 10
    assert newest_version([]) == 0
