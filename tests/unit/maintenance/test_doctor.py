"""The doctor without a metastore: machine and storage."""

from __future__ import annotations

from pathlib import Path

from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.catalog import load_catalog
from hms_iceberg.maintenance.doctor import Health, examine_surroundings
from hms_iceberg.maintenance.doctor.machine_health import examine_storage
from hms_iceberg.maintenance.doctor.metastore_health import examine_snapshots
from hms_iceberg.maintenance.expire_with_files import MANY_SNAPSHOTS
from hms_iceberg.metastore import TableRow
from tests.support.memory_storage import InMemoryStorage


def test_a_folder_that_may_be_written_is_told_as_such_and_left_empty(tmp_path: Path) -> None:
    found = list(examine_storage(ArrowStorage({}), str(tmp_path)))
    assert [each.subject for each in found] == ["storage", "overwriting", "storage's clock"]
    assert {each.state for each in found} == {Health.GOOD}
    assert list(tmp_path.iterdir()) == []


def test_a_storage_that_cannot_be_written_is_told_with_its_own_words(tmp_path: Path) -> None:
    (tmp_path / "warehouse").write_text("a file where the folder should be")
    (diagnosis,) = examine_storage(ArrowStorage({}), str(tmp_path / "warehouse"))
    assert diagnosis.state is Health.BAD and diagnosis.remedy


def test_files_of_another_time_are_told(tmp_path: Path) -> None:
    class Late(InMemoryStorage):
        """Its clock is an hour behind."""

        def list(self, prefix):  # type: ignore[no-untyped-def]
            import dataclasses
            import time

            for file in super().list(prefix):
                yield dataclasses.replace(file, modified_ms=int((time.time() - 3600) * 1000))

    clock = list(examine_storage(Late(), "mem://warehouse"))[-1]
    assert (clock.state, clock.said) == (Health.DOUBTFUL, "-3600 s against this machine's")


def test_a_metastore_that_nobody_reaches_ends_the_round(tmp_path: Path) -> None:
    with load_catalog(type="hive", uri="thrift://127.0.0.1:1", warehouse=str(tmp_path)) as catalog:
        last = list(examine_surroundings(catalog))[-1]
    assert (last.subject, last.state) == ("metastore", Health.BAD)
    assert last.remedy is not None and "127.0.0.1:1" in last.remedy


def test_tables_of_so_many_snapshots_that_every_commit_pays_for_them_are_told() -> None:
    def row(name: str, count: str, is_iceberg: bool = True) -> TableRow:
        return TableRow(("db", name), f"mem://{name}", {"snapshot-count": count}, is_iceberg)

    few = row("few", str(MANY_SNAPSHOTS - 1)), row("hive", "70000", False), row("odd", "many"), row("none", "")
    (told,) = examine_snapshots([*few, row("many", "70000")])
    assert (told.subject, told.state) == ("table db.many", Health.DOUBTFUL)
    assert told.said.startswith("70000 snapshots") and "4.9 s of processor and 630 MB" in told.said
    assert told.remedy is not None and "expire-snapshots db.many" in told.remedy
    assert list(examine_snapshots([row("limit", str(MANY_SNAPSHOTS))]))
