"""Whatever happens to a maintenance action, or beside it: no row is lost or doubled, and the next run finishes it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from hms_iceberg.errors import CommitConflictError, CommitFailedError
from hms_iceberg.maintenance import (
    check_table,
    compute_partition_stats,
    compute_table_stats,
    convert_equality_deletes,
    expire_snapshots,
    remove_dangling_deletes,
    remove_orphan_files,
    rewrite_data_files,
    rewrite_position_delete_files,
    rewrite_table_path,
)
from hms_iceberg.maintenance.rewrite.rewrite_deletes import dangling_deletes
from hms_iceberg.spec.manifests.manifest_values import ManifestContent
from hms_iceberg.table import Table
from hms_iceberg.transaction.workspace import read_version
from hms_iceberg.updates.machinery.manifest_files import manifest_list_of
from tests.support.hdfs_path import copy_files, local_path, remove_folder
from tests.support.interruptions import CHANGES, Disrepair, InterruptingStorage, Killed
from tests.support.memory_metastore import InMemoryMetastore
from tests.support.spread import ALL, SEED

SOME = {"min-input-files": 2, "max-concurrent-file-group-rewrites": 1}


class Action:
    """An action, and what it has left to do."""

    def __init__(self, run: Callable[[Table], Any], left: Callable[[Disrepair, Table], int]) -> None:
        self.run = run
        self.left = left


def _rewrite_manifests(table: Table) -> None:
    table.rewrite_manifests().commit()


def _data_manifests(case: Disrepair, table: Table) -> int:
    manifests = manifest_list_of(table.current_snapshot(), table.storage)
    return sum(manifest.content is ManifestContent.DATA for manifest in manifests) - 1


def _rewrite_path(table: Table) -> None:
    rewrite_table_path(table, table.location(), f"{table.location()}_moved")


def _rows_not_moved(case: Disrepair, table: Table) -> int:
    """How many rows the copy lacks, or has too many, that the newest file list makes."""
    target = local_path(f"{table.location()}_moved")
    remove_folder(target)
    lists = (local_path(table.location()) / "metadata").glob("copy-table-staging-*/file-list")
    lines = max(lists, key=lambda path: path.stat().st_mtime_ns).read_text().splitlines()
    copies = dict(line.split(",") for line in lines)
    copy_files((local_path(origin), local_path(place)) for origin, place in copies.items())
    newest = target / "metadata" / local_path(table.metadata_location).name
    moved = Table(table.identifier, read_version(str(newest), table.storage), InMemoryMetastore(), table.storage)
    rows, copied = Counter(case.found()), Counter(map(repr, moved.scan().to_arrow().to_pylist()))
    return ((rows - copied) + (copied - rows)).total()


ACTIONS = {
    "compact": Action(
        lambda table: rewrite_data_files(table, strategy="sort", sort_order="amount desc", options=SOME),
        lambda case, table: len(rewrite_data_files(table, options=SOME, dry_run=True).plan.groups),
    ),
    "convert": Action(
        convert_equality_deletes, lambda case, table: len(convert_equality_deletes(table, dry_run=True).groups)
    ),
    "position deletes": Action(
        lambda table: rewrite_position_delete_files(table, options=SOME),
        lambda case, table: len(rewrite_position_delete_files(table, options=SOME, dry_run=True).groups),
    ),
    "dangling deletes": Action(
        remove_dangling_deletes, lambda case, table: len(dangling_deletes(table.metadata, table.storage))
    ),
    "manifests": Action(_rewrite_manifests, _data_manifests),
    "expire": Action(
        lambda table: expire_snapshots(table, older_than=2**62), lambda case, table: len(table.snapshots()) - 1
    ),
    "orphans": Action(
        lambda table: remove_orphan_files(table, older_than=2**62, nobody_writes=True),
        lambda case, table: int(case.stray.exists()),
    ),
    "table path": Action(_rewrite_path, _rows_not_moved),
    "table statistics": Action(compute_table_stats, lambda case, table: int(not table.metadata.statistics)),
    "partition statistics": Action(
        compute_partition_stats, lambda case, table: int(not table.metadata.partition_statistics)
    ),
}


@pytest.fixture(scope="module")
def cases(new_folder: Callable[[str], Path]) -> dict[int, Disrepair]:
    return {version: Disrepair(new_folder(f"v{version}"), version) for version in (2, 3)}


def kill() -> None:
    raise Killed


def steps_of(action: Action, case: Disrepair) -> int:
    case.restore()
    storage = InterruptingStorage()
    action.run(case.opened(storage))
    assert storage.steps > 0
    return storage.steps


def finish(action: Action, case: Disrepair) -> None:
    """The next run, after which there is nothing left to do, and nobody lost anything."""
    action.run(case.opened())
    assert action.left(case, case.opened()) == 0
    assert case.found() == case.expected()
    assert check_table(case.opened()).findings == ()


@pytest.mark.parametrize("name", ACTIONS)
def test_a_kill_at_any_step_loses_nothing_and_the_next_run_finishes(cases: dict[int, Disrepair], name: str) -> None:
    action = ACTIONS[name]
    steps = {version: steps_of(action, case) for version, case in cases.items()}
    # Every second step, the others after another commit; a table's path is rewritten in many steps of few kinds.
    first, every = (0, 7) if name == "table path" else (0, 1) if ALL else (SEED % 2, 2)
    for number, step in enumerate(range(first, max(steps.values()), every)):
        version = 2 + number % 2 if step < min(steps.values()) else max(steps, key=lambda each: steps[each])
        case = cases[version]
        case.restore()
        with pytest.raises(Killed):
            action.run(case.opened(InterruptingStorage(step, kill)))
        assert case.found() == case.expected()
        if number % 3 == 0:
            # What the dead left is an orphan, and nothing but orphans go.
            remove_orphan_files(case.opened(), older_than=2**62, nobody_writes=True)
            finish(action, case)


# These take nothing away: that they are done whatever comes is shown once.
_ADDS = ("table path", "table statistics", "partition statistics")
BESIDE = [(name, change) for name in ACTIONS for change in CHANGES if name not in _ADDS or change == "append"]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "change"), BESIDE)
def test_what_others_do_meanwhile_stays_and_the_next_run_finishes(
    cases: dict[int, Disrepair], name: str, change: str
) -> None:
    action = ACTIONS[name]
    for version in (2, 3) if ALL else (2 + BESIDE.index((name, change)) % 2,):
        case = cases[version]
        step = 0 if version == 2 else steps_of(action, case) // 2
        case.restore()
        storage = InterruptingStorage(step, lambda case=case: CHANGES[change](case, case.opened()))
        with suppress(CommitConflictError, CommitFailedError):
            action.run(case.opened(storage))
        assert case.found() == case.expected()
        finish(action, case)
