"""Random tables, maintained by us and by Apache Iceberg on equal copies: the same files go, and no row of any branch.

`HMS_ICEBERG_DIFFERENTIAL=SEED:TABLES` says how many tables there are, and where the seeds begin.
"""

from __future__ import annotations

import datetime as dt
import os
import random
from collections.abc import Callable
from typing import Any

import pytest

from hms_iceberg.catalog import Catalog
from hms_iceberg.maintenance import (
    check_table,
    expire_snapshots,
    remove_orphan_files,
    rewrite_data_files,
    rewrite_manifests,
)
from hms_iceberg.metastore import MetadataVersion
from hms_iceberg.table import Table
from tests.support.interruptions import InterruptingStorage, Killed
from tests.support.maintained_tables import MaintainedTable

pytestmark = [pytest.mark.interop, pytest.mark.slow]

SEED, TABLES = map(int, os.environ.get("HMS_ICEBERG_DIFFERENTIAL", "4:2").split(":"))
FOREVER = 2**62


class Action:
    """What we do, and the procedure of Apache Iceberg that does the same.

    Args:
        ours: does it.
        java: the call, but for the table.
    """

    def __init__(self, ours: Callable[[Table], Any], java: str) -> None:
        self.ours = ours
        self.java = java


def actions(table: Table, seed: int) -> dict[str, Action]:
    """Actions with random choices."""
    rng = random.Random(seed)
    when = rng.choice([*(each.timestamp_ms + 1 for each in table.snapshots()), 4_000_000_000_000])
    keep = rng.randint(1, 4)
    clean = rng.choice((True, False))
    time = dt.datetime.fromtimestamp(when / 1000, dt.timezone.utc).strftime("%Y-%m-%d %H:%M:%S.%f")
    return {
        "orphans": Action(remove_orphan_files, "remove_orphan_files('{}')"),
        "expire": Action(
            lambda each: expire_snapshots(each, older_than=when, retain_last=keep, clean_expired_metadata=clean),
            f"expire_snapshots(table => '{{}}', older_than => timestamp '{time}', retain_last => {keep},"
            f" clean_expired_metadata => {str(clean).lower()})",
        ),
        "compact": Action(
            lambda each: rewrite_data_files(each, options={"rewrite-all": "true"}),
            "rewrite_data_files(table => '{}', options => map('rewrite-all', 'true'))",
        ),
        "manifests": Action(rewrite_manifests, "rewrite_manifests('{}')"),
    }


LAST = Action(
    lambda table: expire_snapshots(table, older_than=FOREVER, retain_last=1),
    "expire_snapshots(table => '{}', older_than => timestamp '2099-01-01', retain_last => 1)",
)


@pytest.fixture(scope="module", params=range(SEED, SEED + TABLES))
def case(request: pytest.FixtureRequest, catalog: Catalog, iceberg_java: Any) -> MaintainedTable:
    namespace = f"maintained_{request.param}"
    catalog.create_namespace(namespace)
    return MaintainedTable(catalog, namespace, iceberg_java.sql, request.param)


def gone(case: MaintainedTable, *steps: Callable[[], Any]) -> set[str]:
    """The files that went in some steps, of those that were there."""
    before = case.files()
    for step in steps:
        step()
    return before - case.files()


def by_java(case: MaintainedTable, iceberg_java: Any, action: Action) -> None:
    iceberg_java.sql(f"call ice.system.{action.java.format(case.name)}")


def kept_rows(rows: dict[str, list[str]], case: MaintainedTable) -> dict[str, list[str]]:
    """The rows of the branches and tags that are left."""
    return {name: rows[name] for name in case.load().refs()}


@pytest.mark.parametrize("name", ["orphans", "expire", "compact", "manifests"])
def test_the_same_files_go_as_by_java_and_no_row(case: MaintainedTable, iceberg_java: Any, name: str) -> None:
    case.restore()
    rows, data = case.rows(), case.data_files()
    action = actions(case.load(), SEED)[name]
    then = [] if name in ("orphans", "expire") else [LAST]
    ours = gone(case, *(lambda each=each: each.ours(case.load()) for each in [action, *then]))
    assert case.rows() == kept_rows(rows, case), str(case)
    assert case.java_rows() == kept_rows(rows, case), str(case)
    assert check_table(case.load(), values=True).findings == (), str(case)
    assert case.lost() == set(), str(case)
    case.restore()
    theirs = gone(case, *(lambda each=each: by_java(case, iceberg_java, each) for each in [action, *then]))
    assert case.rows() == kept_rows(rows, case), str(case)
    if then:  # which delete files a commit drops that delete nothing any more is the writer's choice
        assert ours & data == theirs & data, str(case)
        return
    half = case.half if name == "orphans" else set()
    assert ours - half == theirs - case.others, str(case)
    assert half <= ours


@pytest.mark.parametrize("name", ["orphans", "expire", "compact"])
def test_a_kill_at_any_step_loses_nothing_and_another_run_ends_as_one_alone(case: MaintainedTable, name: str) -> None:
    rng = random.Random(SEED)
    action = actions(case.load(), SEED)[name]
    case.restore()
    rows, counting = case.rows(), InterruptingStorage()
    alone = gone(case, lambda: action.ours(opened(case, counting)))
    for step in rng.sample(range(counting.steps), min(3, counting.steps)):
        case.restore()
        before = case.files()
        with pytest.raises(Killed):
            action.ours(opened(case, InterruptingStorage(step, kill)))
        assert case.rows() == kept_rows(rows, case), str(case)
        assert check_table(case.load(), record_counts=True).findings == (), str(case)
        action.ours(case.load())
        remove_orphan_files(case.load())
        assert case.rows() == kept_rows(rows, case), str(case)
        assert alone <= before - case.files(), str(case)
        assert case.lost() == set(), str(case)


def test_a_running_writer_commits_after_maintenance(case: MaintainedTable) -> None:
    case.restore()
    rows = case.rows()
    table = case.load()
    transaction = table.transaction()
    transaction.append(case._data(3))
    for name in ("orphans", "expire", "compact"):
        actions(case.load(), SEED)[name].ours(case.load())
    transaction.commit_transaction()
    after = case.rows()
    assert len(after["main"]) == len(rows["main"]) + 3 and set(after["main"]) > set(rows["main"])
    assert check_table(case.load(), record_counts=True).findings == (), str(case)


def kill() -> None:
    raise Killed


def opened(case: MaintainedTable, storage: InterruptingStorage) -> Table:
    """The table as a process of its own holds it."""
    table = case.load()
    version = MetadataVersion(table.metadata_location, table.metadata)
    return Table(table.identifier, version, table.metastore, storage, catalog=table.catalog)
