"""Statements that are cancelled in the middle of a write: the table is as it was, and no file is left behind."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from tests.support.spark_statements import SLOWLY

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hms_iceberg.catalog import Catalog
    from hms_iceberg.table import Table

pytestmark = pytest.mark.spark

ROWS = 4000
STATEMENTS = {
    "inserted": f"insert into {{t}} select {SLOWLY.format('id', 200_000)}, id from range(0, {ROWS}, 1, 2)",
    "updated_mor": f"update {{t}} set v = {SLOWLY.format('v', 200_000)} + 1 where id >= 0",
}
"""By the names of tables: statements that write for some time."""


def make(catalog: Catalog, name: str) -> Table:
    mode = "merge-on-read" if name.endswith("_mor") else "copy-on-write"
    properties = {"write.update.mode": mode, "write.update.distribution-mode": "none"}  # written row after row
    table = catalog.create_table(name, pa.schema([("id", pa.int64()), ("v", pa.int64())]), properties=properties)
    table.append(pa.table({"id": range(ROWS), "v": range(ROWS)}))
    return table


def data_files(table: Table) -> set[str]:
    """All files in the folder of the data, but for checksums."""
    folder = Path(table.location().removeprefix("file:")) / "data"
    return {str(path) for path in folder.rglob("*") if path.is_file() and not path.name.startswith(".")}


@pytest.mark.parametrize("name", list(STATEMENTS))
def test_a_cancelled_statement_changes_nothing_and_leaves_no_file(
    spark: SparkSession, catalog: Catalog, namespace: str, name: str
) -> None:
    table = make(catalog, f"{namespace}.{name}")
    before = data_files(table)

    def cancel() -> None:
        until = time.monotonic() + 60
        while data_files(table) == before and time.monotonic() < until:
            time.sleep(0.02)
        spark.sparkContext.cancelAllJobs()

    thread = threading.Thread(target=cancel)
    thread.start()
    with pytest.raises(Exception, match="cancelled"):
        spark.sql(STATEMENTS[name].format(t=f"{namespace}.{name}"))
    thread.join()
    until = time.monotonic() + 60
    while data_files(table) != before and time.monotonic() < until:  # tasks end a little later than their job
        time.sleep(0.1)
    assert data_files(table) == before
    assert len(table.refresh().snapshots()) == 1
