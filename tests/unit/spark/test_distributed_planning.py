"""A plan whose manifests are read in shares is the plan of the whole."""

from __future__ import annotations

import pickle
from pathlib import Path

import pyarrow as pa
import pytest

from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.catalog import Catalog
from hms_iceberg.errors import ConfigurationError
from hms_iceberg.expressions.text.parser import parse
from hms_iceberg.expressions.tree import AlwaysFalse, AlwaysTrue, BooleanExpression
from hms_iceberg.scan.planner import plan_scan
from hms_iceberg.scan.tasks import ScanPlan, ScanRequest
from hms_iceberg.spark.reading.distributed_planning import MODES, Executors, PlanningJob, plan_with_executors
from hms_iceberg.table import Table
from tests.support.memory_metastore import InMemoryMetastore

EVERYTHING = dict.fromkeys(MODES.values(), "distributed")
FILTERS = ("n >= 105 and n < 303", "part = 'b'", "part is null and n > 200", "n > 1000", "price is nan")


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """Nine appends, position deletes of some of their files, an equality delete, and a tenth append."""
    catalog = Catalog("memory", InMemoryMetastore(), ArrowStorage({}), {"warehouse": str(tmp_path)})
    catalog.create_namespace("db", {"location": str(tmp_path / "db.db")})
    schema = pa.schema([("n", pa.int64()), ("part", pa.string()), ("price", pa.float64())])
    table = catalog.create_table("db.t", schema)
    with table.update_spec() as spec:
        spec.add_identity("part")
    table.refresh()

    def append(start: int) -> None:
        numbers = range(start, start + 6)
        prices = [float("nan") if n % 10 == 4 else n / 8 for n in numbers]
        parts = [["a", "b", None][n % 3] for n in numbers]
        table.append(pa.table({"n": list(numbers), "part": parts, "price": prices}, schema=schema))

    for start in range(0, 900, 100):
        append(start)
    with table.new_row_delta() as delta:
        delta.delete_positions({path: [0] for path in table.inspect.files()["file_path"].to_pylist()[::2]})
    table.refresh()
    with table.new_row_delta() as delta:
        delta.delete_equal(pa.table({"n": [105, 301], "part": ["a", "b"]}), ["n"])
    append(900)
    return table


def distributed(
    table: Table, row_filter: BooleanExpression, modes: dict[str, str], slots: int, whole_files: bool = False
) -> tuple[ScanPlan, int]:
    """The plan, and how many jobs it took, whose tasks run here."""
    request = ScanRequest(table.metadata, row_filter=row_filter, whole_files=whole_files)
    answers: list[list[bytes]] = []
    while True:
        found = plan_with_executors(request, table.storage, Executors(slots, modes, answers))
        if not isinstance(found, PlanningJob):
            return found, len(answers)
        function, _ = pickle.loads(found.command)
        batches = (pa.record_batch({"task": pa.array([task], pa.binary())}) for task in found.tasks)
        answers.append([each.column(0)[0].as_py() for each in function(batches)])


def tasks(plan: ScanPlan) -> list[tuple[str, list[str], str]]:
    return sorted(
        (task.file.file_path, sorted(each.file_path for each in task.delete_files), str(task.residual))
        for task in plan.tasks()
    )


@pytest.mark.parametrize("slots", [1, 3, 50])
def test_a_plan_made_in_shares_is_that_of_the_whole(table: Table, slots: int) -> None:
    for row_filter in (AlwaysTrue(), *map(parse, FILTERS)):
        whole = plan_scan(ScanRequest(table.metadata, row_filter=row_filter), table.storage)
        plan, _ = distributed(table, row_filter, EVERYTHING, slots)
        assert tasks(plan) == tasks(whole)
        counts = ("manifests_total", "manifests_kept", "delete_manifests_total", "files_total", "files_kept")
        assert [getattr(plan.metrics, each) for each in counts] == [getattr(whole.metrics, each) for each in counts]
    assert distributed(table, AlwaysTrue(), EVERYTHING, slots)[1] == 2


def test_a_plan_of_whole_files_has_all_of_their_rows_and_all_of_their_deletes(table: Table) -> None:
    everything = plan_scan(ScanRequest(table.metadata), table.storage)
    for row_filter in (*map(parse, FILTERS), parse("n = 102"), parse("n = 304")):
        filtered = plan_scan(ScanRequest(table.metadata, row_filter=row_filter), table.storage)
        paths = set(filtered.files["file_path"])
        request = ScanRequest(table.metadata, row_filter=row_filter, whole_files=True)
        whole = plan_scan(request, table.storage)
        assert tasks(whole) == [each for each in tasks(everything) if each[0] in paths]
        assert tasks(distributed(table, row_filter, EVERYTHING, 3, whole_files=True)[0]) == tasks(whole)
    # The equality delete of 301 has no row that the last filter wants.
    assert len(whole.delete_files) == len(filtered.delete_files) + 1


def test_nothing_is_distributed_that_need_not_be(table: Table) -> None:
    data, deletes = MODES.values()
    assert distributed(table, AlwaysTrue(), {}, 50)[1] == 0, "of itself only if manifests are large"
    assert distributed(table, AlwaysTrue(), EVERYTHING, 0)[1] == 0, "there are no executors"
    assert distributed(table, AlwaysFalse(), EVERYTHING, 2)[1] == 0, "no manifest is read"
    assert distributed(table, AlwaysTrue(), {data: "distributed", deletes: "local"}, 2)[1] == 1
    with pytest.raises(ConfigurationError, match="is 'remote', expected auto, local or distributed"):
        distributed(table, AlwaysTrue(), {data: "remote"}, 2)
