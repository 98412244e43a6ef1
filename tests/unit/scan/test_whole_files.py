"""What a plan for a statement that replaces files or changes rows has beside that of a query."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.catalog import Catalog
from hms_iceberg.expressions.text.parser import parse
from hms_iceberg.scan.planner import plan_scan
from hms_iceberg.scan.tasks import ScanPlan, ScanRequest
from hms_iceberg.table import Table
from tests.support.memory_metastore import InMemoryMetastore

FILTERS = ("n >= 105 and n < 303", "part = 'b'", "part is null and n > 200", "n > 1000", "price is nan", "n = 304")


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


def tasks(plan: ScanPlan) -> list[tuple[str, list[str], str]]:
    return sorted(
        (task.file.file_path, sorted(each.file_path for each in task.delete_files), str(task.residual))
        for task in plan.tasks()
    )


@pytest.mark.parametrize("text", FILTERS)
def test_a_plan_of_whole_files_has_all_of_their_rows_and_all_of_their_deletes(table: Table, text: str) -> None:
    everything = plan_scan(ScanRequest(table.metadata), table.storage)
    filtered = plan_scan(ScanRequest(table.metadata, row_filter=parse(text)), table.storage)
    paths = set(filtered.files["file_path"])
    whole = plan_scan(ScanRequest(table.metadata, row_filter=parse(text), whole_files=True), table.storage)
    assert tasks(whole) == [each for each in tasks(everything) if each[0] in paths]
    if text == "n = 304":  # the equality delete of 301 has no row that the filter wants
        assert len(whole.delete_files) == len(filtered.delete_files) + 1
