"""Files of before an erasure: who deletes them when they are due, and what keeps them."""

from __future__ import annotations

import datetime as dt
import time
from pathlib import Path
from typing import Any

import pytest

from hms_iceberg.arrow.deletes.delete_writer import DeletedPositions, PositionDeleteWriter
from hms_iceberg.arrow.deletes.puffin import write_deletion_vectors
from hms_iceberg.catalog import Catalog, load_catalog
from hms_iceberg.errors import CommitConflictError
from hms_iceberg.maintenance import resume_forget
from hms_iceberg.maintenance.erasure.erasure_journal import open_erasures
from hms_iceberg.maintenance.service.service import MaintenanceService
from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.table import Table
from hms_iceberg.updates.rows.row_delta import RowDelta
from tests.support.erasure_histories import left_of
from tests.support.operations import SCHEMA, rows
from tests.support.row_tables import create, ids, live

PERSON = "Zq7Kx93MbTwe"
WHERE = f"city = '{PERSON}'"
_DAY = 24 * 60 * 60


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    return load_catalog("files", type="hadoop", warehouse=str(tmp_path))


def waiting(catalog: Catalog, **options: Any) -> Table:
    """A table from which a person's row went a moment ago; what keeps the service busy otherwise is off."""
    catalog.create_namespace("web")
    off = {f"maintenance.{each}": "false" for each in ("remove-orphans", "compact", "expire-snapshots")}
    table = catalog.create_table("web.visits", SCHEMA, properties={**off, "write.parquet.compression-codec": "none"})
    table.append(rows(1, city=PERSON))
    table.append(rows(2, 3))
    table.forget(WHERE, dry_run=False, **options)
    return table.refresh()


def steps(catalog: Catalog, days: float, dry_run: bool = False) -> list[tuple[str, str, str]]:
    """The steps of the service's run so many days from now: action, outcome and result."""
    service = MaintenanceService(catalog, clock=lambda: time.time() + days * _DAY)
    return [(step.action, step.outcome, step.result) for step in service.run(dry_run).steps]


def test_the_service_deletes_them_when_they_are_due_and_not_before(catalog: Catalog, tmp_path: Path) -> None:
    table = waiting(catalog)
    assert steps(catalog, 0.9) == []
    assert steps(catalog, 1.1, dry_run=True) == [("finish_erasure", "planned", "")]
    assert left_of(PERSON, tmp_path)
    [(action, outcome, result)] = steps(catalog, 1.1)
    assert (action, outcome) == ("finish_erasure", "done") and "none holds such rows" in result
    assert left_of(PERSON, tmp_path) == []
    table.refresh()
    assert not open_erasures(table.metadata, table.metadata_location, table.storage)
    assert steps(catalog, 1.1) == [] and ids(table) == [2, 3]


@pytest.mark.parametrize("options", [{"sign_key": b"0123456789abcdef0123"}, {"reported": True}])
def test_the_service_leaves_those_whose_report_is_waited_for_and_says_what_to_do(
    catalog: Catalog, tmp_path: Path, options: dict[str, Any]
) -> None:
    table = waiting(catalog, **options)
    [(_, outcome, result)] = steps(catalog, 1.1)
    assert outcome == "failed" and "hms-iceberg forget web.visits --resume" in result
    assert left_of(PERSON, tmp_path)
    done = resume_forget(table, now=True)
    assert done is not None and done.report is not None and left_of(PERSON, tmp_path) == []


def test_a_property_leaves_all_of_them_to_people(catalog: Catalog, tmp_path: Path) -> None:
    table = waiting(catalog)
    table.set_properties({"maintenance.finish-erasures": "false"})
    assert steps(catalog, 1.1) == [] and left_of(PERSON, tmp_path)


def test_rows_that_were_added_since_stop_the_service_and_go_by_a_resumption_that_begins_to_wait_anew(
    catalog: Catalog, tmp_path: Path
) -> None:
    table = waiting(catalog)
    table.append(rows(4, city=PERSON))
    old = open_erasures(table.metadata, table.metadata_location, table.storage)[0].files()
    [(_, outcome, result)] = steps(catalog, 1.1)
    assert outcome == "failed" and "They were added since. Nothing was deleted" in result
    assert all(Path(each.removeprefix("file:")).exists() for each in old)
    before = dt.datetime.now(dt.timezone.utc)
    resumed = resume_forget(table)
    assert resumed is not None and resumed.due is not None and resumed.due > before + dt.timedelta(hours=23.9)
    assert steps(catalog, 0.9) == [] and left_of(PERSON, tmp_path)
    assert [step[1] for step in steps(catalog, 1.1)] == ["done"]
    assert left_of(PERSON, tmp_path) == [] and ids(table.refresh()) == [2, 3]


@pytest.mark.parametrize(("version", "granularity"), [(2, "file"), (2, "partition"), (3, "file")])
def test_deletes_that_another_engine_committed_across_it_are_told_and_keep_them(
    tmp_path: Path, version: int, granularity: str
) -> None:
    table = create(tmp_path, version, schema=SCHEMA, **{"write.delete.granularity": granularity})
    table.append(rows(1, 2, 3))
    table.append(rows(4, 5, city=PERSON))
    old, other = (next(each for each in live(table) if each.record_count == count) for count in (3, 2))
    deletes = deletes_of_others(table, [old, other] if granularity == "partition" else [old])
    table.forget("id = 2", dry_run=False)
    with table.refresh().transaction() as transaction:
        transaction.add(RowDelta(added=deletes))
    with pytest.raises(CommitConflictError, match=r"1 delete files name data files that it had replaced, such as .*"):
        resume_forget(table, now=True)
    assert Path(old.file_path.removeprefix("file:")).exists()
    assert ids(table.refresh())[:2] == [1, 3]  # the row that was meant is there

    table.delete("id = 1")
    if granularity == "partition":
        table.maintenance.rewrite_position_delete_files(options={"rewrite-all": "true"})
    else:
        table.maintenance.remove_dangling_deletes()
    done = resume_forget(table.refresh(), now=True)
    assert done is not None and done.report is not None
    assert ids(table.refresh())[0] == 3 and not Path(old.file_path.removeprefix("file:")).exists()


def deletes_of_others(table: Table, files: list[DataFile]) -> tuple[DataFile, ...]:
    """What a merge-on-read writer makes that deletes the first row of these files."""
    import numpy as np

    first = np.array([0], dtype=np.int64)
    if table.format_version >= 3:
        location = f"{table.location()}/data/others.puffin"
        pairs = [(each, first) for each in files]
        return tuple(write_deletion_vectors(table.storage, location, pairs, table.properties))
    deleted = [DeletedPositions(each, first) for each in files]
    return (PositionDeleteWriter.of(table.metadata, table.storage, lambda location: None).write(deleted),)
