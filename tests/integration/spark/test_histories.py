"""MERGE in Spark beside writers in Python and compaction: what comes out is a serial order of what was acknowledged."""

from __future__ import annotations

import re
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from tests.support.histories import Change, changes_of, check_files, check_history
from tests.support.history_writers import Job, Writers, notes_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hms_iceberg.catalog import Catalog
    from hms_iceberg.hms.embedded import EmbeddedMetastore
    from hms_iceberg.table import Table

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SCHEMA = pa.schema([pa.field(name, pa.int64()) for name in ("writer", "number", "value")])
IN_PYTHON, IN_SPARK, CHANGES, MERGES = 2, 2, 8, 5
MAY_FAIL = ("CommitConflictError",)
MERGE = """
    merge into {name} t using (select {target}L as writer) s on t.writer = s.writer
    when matched then update set value = {number}
    when not matched then insert (writer, number, value) values ({target}, {number}, 0)
"""


class Merging(threading.Thread):
    """A writer in a session of its own."""

    def __init__(self, spark: SparkSession, name: str, writer: int) -> None:
        super().__init__()
        self._spark, self._name, self._writer = spark.newSession(), name, writer
        self.changes: list[Change] = []

    def run(self) -> None:
        for number in range(MERGES):
            target = (self._writer + number) % (IN_PYTHON + IN_SPARK)
            change = Change("merge", self._writer, number, target, time.monotonic())
            self.changes.append(change)
            self._spark.conf.set("spark.sql.iceberg.snapshot-property.change", change.mark)
            try:
                self._spark.sql(MERGE.format(name=self._name, target=target, number=number))
                change.outcome = "made"
            except Exception as error:
                kind = re.search(r"(\w+Error): ", str(error))
                change.outcome, change.detail = "failed" if kind else "broken", f"{kind[1] if kind else ''}: {error}"
            change.ended = time.monotonic()


def compact(table: Table, stop: threading.Event, done: list[Any]) -> None:
    from hms_iceberg.errors import CommitRefusedError

    while not stop.wait(0.5):
        try:
            done.append(table.maintenance.rewrite_data_files(options={"rewrite-all": "true"}))
        except CommitRefusedError:
            continue


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_merges_appends_and_compactions_are_in_a_serial_order(
    spark: SparkSession, metastore: EmbeddedMetastore, catalog: Catalog, namespace: str, tmp_path: Path, mode: str
) -> None:
    name = f"{namespace}.t"
    properties = {
        **{f"write.{kind}.mode": mode for kind in ("delete", "update", "merge")},
        "commit.retry.num-retries": "30",
        "commit.retry.min-wait-ms": "10",
        "write.metadata.previous-versions-max": "1000",
    }
    table = catalog.create_table(name, SCHEMA, properties=properties)
    merging = [Merging(spark, name, IN_PYTHON + number) for number in range(IN_SPARK)]
    notes = [tmp_path / f"{number}.jsonl" for number in range(IN_PYTHON)]
    stop, compactions = threading.Event(), []  # type: ignore[var-annotated]
    compacting = threading.Thread(target=compact, args=(catalog.load_table(name), stop, compactions))
    with Writers() as writers:
        start = time.monotonic() + 0.3
        for number, note in enumerate(notes):
            writers.start(Job(metastore.uri, {}, name, number, IN_PYTHON + IN_SPARK, number, CHANGES, start, str(note)))
        for thread in (*merging, compacting):
            thread.start()
        writers.wait()
        for thread in merging:
            thread.join()
    stop.set()
    compacting.join()
    changes = [change for note in notes for change in changes_of(notes_of(note))]
    changes += [change for thread in merging for change in thread.changes]
    check_history(table.refresh(), changes, MAY_FAIL)
    check_files(table, changes)
    assert any(change.kind == "merge" and change.outcome == "made" for change in changes)
    assert compactions
