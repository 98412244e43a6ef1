"""HDFS is harmed at each step of a change of a table: what is told is true, no row is lost, and no file stays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.catalog import Catalog
from hms_iceberg.errors import CommitStateUnknownError, IcebergError, StorageError
from hms_iceberg.maintenance import check_table
from hms_iceberg.migration import migrate, rollback
from hms_iceberg.table import Table
from tests.support.failing_steps import STORAGE
from tests.support.hdfs_cluster.cluster import HdfsCluster
from tests.support.hive_warehouse import HiveWarehouse, Rows
from tests.support.spread import ALL
from tests.support.store_tables import ids, new_table, rows

pytestmark = pytest.mark.slow

CHANGES: dict[str, tuple[Callable[[Table], object], list[int]]] = {
    "append": (lambda table: table.append(rows(3, 4)), [1, 2, 3, 4]),
    "delete": (lambda table: table.delete("id = 1"), [2]),
    "rewrite": (lambda table: table.maintenance.rewrite_data_files(options={"rewrite-all": "true"}), [1, 2]),
}
EVERY = 1 if ALL else 12


@contextmanager
def harmed(storage: Any, step: int, harm: Callable[[], None]) -> Iterator[list[str]]:
    """Just before the call of this number, from 0, something happens to the cluster. The calls are noted."""
    calls: list[str] = []

    def noted(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any, **options: Any) -> Any:
            calls.append(name)
            if len(calls) == step + 1:
                harm()
            return call(*arguments, **options)

        return run

    for name in STORAGE:
        setattr(storage, name, noted(name, getattr(storage, name)))
    try:
        yield calls
    finally:
        for name in STORAGE:
            delattr(storage, name)


@pytest.fixture
def restored(cluster: HdfsCluster) -> Iterator[None]:
    yield
    cluster.activate(0)


@pytest.mark.parametrize(
    "harm",
    [
        "the other NameNode takes over",
        pytest.param("the DataNode is started again", marks=pytest.mark.whole),
        "safe mode",
    ],
)
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_in_whose_middle_the_cluster_is_harmed_is_told_truly(
    catalog: Catalog, cluster: HdfsCluster, restored: None, change: str, harm: str
) -> None:
    run, after = CHANGES[change]
    harms: dict[str, Callable[[], None]] = {
        "the other NameNode takes over": lambda: cluster.activate(1),
        "the DataNode is started again": lambda: cluster.command("restart-datanode"),
        "safe mode": lambda: cluster.dfsadmin("-safemode", "enter"),
    }
    step, calls, outcomes = (list(CHANGES).index(change)) % EVERY, [""] * 100, set()
    while step < len(calls):
        table = new_table(catalog)
        storage: Any = table.storage
        with harmed(storage, step, harms[harm]) as calls:
            try:
                run(table)
                outcomes.add("made")
                found = [after]
            except CommitStateUnknownError:
                outcomes.add("unknown")
                found = [[1, 2], after]
            except IcebergError:
                outcomes.add("refused")
                found = [[1, 2]]
        if harm == "the other NameNode takes over":
            cluster.activate(0)
        elif harm == "safe mode":
            cluster.dfsadmin("-safemode", "leave")
        table = catalog.load_table(table.name())
        assert ids(table) in found, (step, calls[step - 1 : step + 1])
        assert check_table(table, record_counts=True).findings == ()
        if harm != "safe mode":  # in which nothing can be deleted
            late = datetime.now(timezone.utc) + timedelta(seconds=1)
            left = table.maintenance.remove_orphan_files(older_than=late, nobody_writes=True, dry_run=True)
            assert left.locations == (), (step, calls[step - 1 : step + 1])
        before = ids(table)
        table.append(rows(9))
        assert ids(table) == [*before, 9]
        step += EVERY
    # In safe mode each of the steps that were tried may come before the last file is written.
    assert "made" in outcomes or harm == "safe mode"
    assert harm != "the other NameNode takes over" or outcomes == {"made"}


@pytest.mark.whole
def test_a_migration_and_its_way_back_are_done_though_the_other_namenode_takes_over(
    catalog: Catalog, cluster: HdfsCluster, restored: None
) -> None:
    storage: Any = catalog.storage
    hive = HiveWarehouse(catalog, "web")
    names = (f"hive_{number}" for number in range(1000))

    def steps(change: Callable[[str], None], prepare: Callable[[str], None], check: Callable[[str], None]) -> None:
        step, calls = 0, [""] * 100
        while step < len(calls):
            name = next(names)
            hive.create(name, "id bigint, page string", "day string")
            hive.add_partition(name, ["mon"], rows(1, 2), rows(3))
            prepare(name)
            with harmed(storage, step, lambda: cluster.activate(1)) as calls:
                change(name)
            cluster.activate(0)
            check(name)
            step += EVERY

    def migrated(name: str) -> None:
        table = catalog.load_table(f"web.{name}")
        assert ids(table) == [1, 2, 3]
        assert check_table(table, record_counts=True).findings == ()

    def taken_back(name: str) -> None:
        assert hive.rows(name) == before[name]
        left = storage.list(hive.rows(name).table.sd.location)
        assert sorted(info.location.rpartition("/")[2] for info in left) == ["000000_0", "000001_0"]

    before: dict[str, Rows] = {}

    def prepared(name: str) -> None:
        before[name] = hive.rows(name)
        migrate(catalog, ("web", name))

    steps(lambda name: check_that(migrate(catalog, ("web", name)).records == 3), lambda name: None, migrated)
    steps(lambda name: rollback(catalog, ("web", name)), prepared, taken_back)


def check_that(condition: bool) -> None:
    assert condition


def test_what_a_full_quota_refuses_leaves_the_table_and_its_files_as_they_were(
    catalog: Catalog, cluster: HdfsCluster, storage: ArrowStorage
) -> None:
    def files() -> list[str]:
        return sorted(info.location for info in storage.list(table.location()))

    table = new_table(catalog)
    cluster.dfsadmin("-setQuota", str(len(files()) + 20), table.location().removeprefix(cluster.nameservice))
    with pytest.raises(StorageError, match="quota"):  # noqa: PT012
        for number in range(10, 30):
            before, kept = ids(table), files()
            table.append(rows(number))
    assert (ids(table), files()) == (before, kept)
    table = catalog.load_table(table.name())
    for run, _ in CHANGES.values():
        with suppress(StorageError):  # a small change may still fit
            run(table)
            before, kept = ids(table), files()
        assert (ids(table), files()) == (before, kept)
