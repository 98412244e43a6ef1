"""Spark and Python commit to one table at the same time, and a Python writer is killed: one serial history of both."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from hms_iceberg.catalog import Catalog
from hms_iceberg.hms.embedded import EmbeddedMetastore
from tests.support.histories import Change, changes_of, check_files, check_history
from tests.support.history_writers import Job, Writers, notes_of

pytestmark = pytest.mark.slow

SCHEMA = pa.schema([pa.field(name, pa.int64()) for name in ("writer", "number", "value")])
PYTHON_WRITERS, PYTHON_CHANGES, SPARK_CHANGES = 2, 8, 4
ROW_CHANGES = ("append", "delete", "update", "overwrite", "property")


@pytest.fixture(scope="module")
def writers() -> Iterator[Writers]:
    with Writers() as writers:
        yield writers


@pytest.mark.parametrize("lock", ["true", "false"], ids=["lock", "compare-and-swap"])
def test_a_killed_python_writer_and_a_spark_writer_lose_nothing_of_each_other(
    spark: SparkSession,
    metastore: EmbeddedMetastore,
    catalog: Catalog,
    namespace: str,
    writers: Writers,
    tmp_path: Path,
    lock: str,
) -> None:
    name = f"{namespace}.t"
    retries = {"commit.retry.num-retries": "30", "commit.retry.min-wait-ms": "10"}
    kept = {"write.metadata.previous-versions-max": "1000", "engine.hive.lock-enabled": lock}
    table = catalog.create_table(name, SCHEMA, properties={**retries, **kept})
    notes = [tmp_path / f"{number}.jsonl" for number in range(PYTHON_WRITERS)]
    pids = [
        writers.start(
            Job(metastore.uri, {}, name, number, PYTHON_WRITERS, number, PYTHON_CHANGES, 0.0, str(note), ROW_CHANGES)
        )
        for number, note in enumerate(notes)
    ]
    killer = threading.Thread(target=kill, args=(pids[0], notes[0]))
    killer.start()
    by_spark = [append_by_spark(spark, name, number) for number in range(SPARK_CHANGES)]
    killer.join()
    writers.wait()
    by_spark.append(append_by_spark(spark, name, SPARK_CHANGES))  # after the death, if nobody was before
    by_python = [changes_of(notes_of(note)) for note in notes]
    assert by_python[0][-1].outcome == "killed"
    assert len(by_python[1]) == PYTHON_CHANGES
    changes = [*by_spark, *by_python[0], *by_python[1]]
    check_history(table.refresh(), changes, ("CommitConflictError",))
    check_files(table, changes)
    assert spark.table(name).count() == table.scan().count()


@pytest.mark.parametrize("change", ["append", "column", "drop", "anew"])
def test_an_insert_goes_by_what_others_did_to_its_table_while_its_rows_were_made(
    spark: SparkSession, metastore: EmbeddedMetastore, catalog: Catalog, namespace: str, change: str
) -> None:
    name, uri, warehouse = f"{namespace}.t", metastore.uri, metastore.warehouse
    table = catalog.create_table(name, pa.schema([("id", pa.int64())]))

    def changed(value: int, what: str) -> int:
        from hms_iceberg.catalog import load_catalog

        other = load_catalog("other", type="hive", uri=uri, warehouse=warehouse)
        if what == "append":
            other.load_table(name).append(pa.table({"id": [value + 1]}))
        elif what == "column":
            other.load_table(name).update_schema().add_column("more", "string").commit()
        elif what in ("drop", "anew"):
            schema = other.load_table(name).schema()
            other.drop_table(name)
            if what == "anew":
                other.create_table(name, schema)
        return value

    spark.udf.register("changed", changed, "long")
    spark.sql("select changed(1, 'nothing')").collect()  # a worker with everything imported
    insert = f"insert into {name} select changed(id, '{change}') from range(1, 2, 1, 1)"
    if change in ("drop", "anew"):
        with pytest.raises(Exception, match="NoSuchTableError" if change == "drop" else "CommitConflictError"):
            spark.sql(insert)
        folder = Path(table.location().removeprefix("file:")) / "data"
        assert not [file for file in folder.rglob("*") if file.is_file()]
    else:
        spark.sql(insert)
        rows = table.refresh().scan().to_arrow().sort_by("id").to_pydict()
        assert rows == ({"id": [1, 2]} if change == "append" else {"id": [1], "more": [None]})


def append_by_spark(spark: SparkSession, name: str, number: int) -> Change:
    """One row of writer 9, which no Python writer touches."""
    change = Change("append", 9, number, 9, time.monotonic())
    row = spark.sql(f"select 9L as writer, {number}L as number, 0L as value")
    row.writeTo(name).option("snapshot-property.change", change.mark).append()
    change.outcome, change.ended = "made", time.monotonic()
    return change


def kill(pid: int, notes: Path) -> None:
    """Kills a writer a moment after it has begun its fourth change."""
    deadline = time.monotonic() + 60
    while len(changes_of(notes_of(notes))) < 4 and time.monotonic() < deadline:
        time.sleep(0.005)
    time.sleep(0.03)
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
