"""Spark and Python commit to one table at the same time, and a Python writer is killed: one serial history of both."""

from __future__ import annotations

import json
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
from tests.support.hdfs_path import local_path
from tests.support.histories import Change, changes_of, check_files, check_history
from tests.support.history_writers import Job, Writers, notes_of
from tests.support.row_tables import data_files_on_disk
from tests.support.spark_tables import check_files as count_rows_of_files

pytestmark = pytest.mark.slow

SCHEMA = pa.schema([pa.field(name, pa.int64()) for name in ("writer", "number", "value")])
PYTHON_WRITERS, PYTHON_CHANGES, SPARK_CHANGES = 2, 8, 4
ROW_CHANGES = ("append", "delete", "update", "overwrite", "property")


@pytest.fixture(scope="module")
def writers() -> Iterator[Writers]:
    with Writers() as writers:
        yield writers


@pytest.mark.parametrize(
    "lock",
    [
        pytest.param("true", id="lock"),
        pytest.param(
            "false",
            id="compare-and-swap",
            marks=pytest.mark.since_spark("4.0", "its jars hold a metastore that compares"),
        ),
    ],
)
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
        folder = local_path(table.location()) / "data"
        assert not [file for file in folder.rglob("*") if file.is_file()]
    else:
        spark.sql(insert)
        rows = table.refresh().scan().to_arrow().sort_by("id").to_pydict()
        assert rows == ({"id": [1, 2]} if change == "append" else {"id": [1], "more": [None]})


MEANWHILE: dict[str, list[tuple[str, ...]]] = {
    "dropped": [("delete_column", "b")],
    "renamed": [("rename_column", "b", "b2")],
    "another in its place": [("rename_column", "b", "b2"), ("add_column", "b", "string")],
    "moved": [("move_first", "b")],
    "renamed for a while": [("rename_column", "b", "b2"), ("rename_column", "b2", "b")],
    "one that no row has dropped": [("delete_column", "z")],
}
"""What others do to the columns id, b and z while rows of id, b and c are made."""
LOSING = list(MEANWHILE)[:3]


@pytest.mark.parametrize("case", list(MEANWHILE))
def test_rows_with_more_columns_keep_their_values_or_are_refused_whatever_became_of_the_columns_meanwhile(
    spark: SparkSession, metastore: EmbeddedMetastore, catalog: Catalog, namespace: str, case: str
) -> None:
    name, uri, warehouse = f"{namespace}.t", metastore.uri, metastore.warehouse
    columns = pa.schema([("id", pa.int64()), ("b", pa.string()), ("z", pa.int64())])
    table = catalog.create_table(name, columns, properties={"write.spark.accept-any-schema": "true"})
    table.append(pa.table({"id": [1], "b": ["old"], "z": [7]}, schema=columns))

    def evolved(value: int, steps: str) -> int:
        import json

        from hms_iceberg.catalog import load_catalog

        for method, *arguments in json.loads(steps):
            with (
                load_catalog("other", type="hive", uri=uri, warehouse=warehouse)
                .load_table(name)
                .update_schema() as update
            ):
                getattr(update, method)(*arguments)
        return value

    spark.udf.register("evolved", evolved, "long")
    spark.sql("select evolved(1, '[]')").collect()  # a worker with everything imported
    rows = spark.sql(
        f"select evolved(id, '{json.dumps(MEANWHILE[case])}') as id, 'new' as b, 3.5D as c from range(2, 3)"
    )
    write = rows.writeTo(name).option("merge-schema", "true")
    if case in LOSING:
        with pytest.raises(Exception, match=f"CommitConflictError: Cannot commit to table {name}"):
            write.append()
    else:
        write.append()
    table.refresh()
    spark.sql(f"refresh table {name}")
    found = sorted((row.asDict() for row in spark.table(name).collect()), key=lambda row: row["id"])
    assert found == sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["id"])
    old, new = {"id": 1, "b": "old", "z": 7, "c": None}, {"id": 2, "b": "new", "z": None, "c": 3.5}
    expected = {
        "dropped": [{"id": 1, "z": 7}],
        "renamed": [{"id": 1, "b2": "old", "z": 7}],
        "another in its place": [{"id": 1, "b2": "old", "z": 7, "b": None}],
        "one that no row has dropped": [{k: v for k, v in row.items() if k != "z"} for row in (old, new)],
    }
    assert found == expected.get(case, [old, new])
    count_rows_of_files(table, len(found))
    named = {task.file.file_path for task in table.scan().plan_files()}
    assert data_files_on_disk(table) == named


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
