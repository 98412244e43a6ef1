"""Faults around a commit on the real metastore: concurrent processes, killed ones, a metastore that dies."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pyarrow as pa
import pytest

from hms_iceberg.catalog import Catalog, load_catalog
from hms_iceberg.errors import (
    CommitStateUnknownError,
    CorruptMetadataError,
    ExpressionParseError,
    MetastoreUnavailableError,
    MissingFileError,
    NullValueError,
    SchemaMismatchError,
    TypeMismatchError,
    UnknownColumnError,
)
from hms_iceberg.hms.embedded import EmbeddedMetastore
from hms_iceberg.table import Table
from hms_iceberg.transaction.workspace import read_version
from tests.support.hdfs_path import local_path
from tests.support.tables import check_snapshot

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("who", pa.string())])
RETRIES = {"commit.retry.num-retries": "20", "commit.retry.min-wait-ms": "20"}

CHILD = """
    import os, signal, sys
    import pyarrow as pa
    from hms_iceberg.catalog import load_catalog
    from hms_iceberg.hms.commit.lease import HiveLease

    uri, name, who, count, lock, point = sys.argv[1:7]
    catalog = load_catalog("child", type="hive", uri=uri, **{"iceberg.engine.hive.lock-enabled": lock})
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("who", pa.string())])

    def die():
        os.kill(os.getpid(), signal.SIGKILL)

    def dying(owner, method, when):
        original = getattr(owner, method)

        def call(*arguments, **options):
            if method == "alter_table" and arguments[1] not in name:
                return original(*arguments, **options)  # of the scratch row that tells what the server can do
            if when == "before":
                die()
            original(*arguments, **options)
            die()

        setattr(owner, method, call)

    table = catalog.load_table(name)
    if point in ("before manifest", "before metadata"):
        create = table.storage.create

        def counted(location, data):
            if ("-m0.avro" if point == "before manifest" else ".metadata.json") in location:
                die()
            create(location, data)

        table.storage.create = counted
    elif point == "before swap":
        dying(HiveLease, "swap", "before")
    elif point == "under the lock":
        dying(catalog.metastore.client, "alter_table", "before")
    elif point == "after the alter":
        dying(catalog.metastore.client, "alter_table", "after")
    for number in range(int(count)):
        table.append(pa.table({"id": [number], "who": [who]}, schema=schema))
    print("done", flush=True)
"""


def child(
    metastore: EmbeddedMetastore, table: Table, who: str, count: int = 1, lock: str = "true", point: str = ""
) -> subprocess.Popen[str]:
    """Another process that appends `count` rows one by one, and dies at `point` of the first."""
    arguments = [metastore.uri, ".".join(table.identifier), who, str(count), lock, point]
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(CHILD), *arguments],
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finished(process: subprocess.Popen[str]) -> int:
    """Waits for a process and returns its exit code; what it complained of is shown where that is not zero."""
    output, errors = process.communicate(timeout=120)
    assert process.returncode in (0, -signal.SIGKILL), output + errors
    return process.returncode


@pytest.fixture
def table(catalog: Catalog, namespace: str) -> Table:
    return catalog.create_table((namespace, "events"), SCHEMA, properties=RETRIES)


def check(table: Table) -> None:
    """Every snapshot says what its manifests hold."""
    for snapshot in table.snapshots():
        check_snapshot(table.metadata, snapshot, table.storage)  # type: ignore[arg-type]


def rows(*ids: int, who: str = "me") -> pa.Table:
    return pa.table({"id": list(ids), "who": [who] * len(ids)}, schema=SCHEMA)


@pytest.mark.parametrize("lock", ["true", "false"], ids=["lock", "compare-and-swap"])
def test_processes_that_append_at_once_lose_nothing(metastore: EmbeddedMetastore, table: Table, lock: str) -> None:
    processes = [child(metastore, table, f"writer {number}", count=5, lock=lock) for number in range(3)]
    assert [finished(process) for process in processes] == [0, 0, 0]
    found = table.refresh().scan().to_arrow().to_pylist()
    expected = [{"id": number, "who": f"writer {writer}"} for writer in range(3) for number in range(5)]
    assert sorted(found, key=lambda row: (row["who"], row["id"])) == expected
    assert len(table.snapshots()) == 15
    check(table)


@pytest.mark.slow
@pytest.mark.parametrize("lock", ["true", "false"], ids=["lock", "compare-and-swap"])
@pytest.mark.parametrize(
    ("point", "made"),
    [
        ("before manifest", False),
        ("before metadata", False),
        ("before swap", False),
        ("under the lock", False),
        ("after the alter", True),
    ],
)
def test_a_process_killed_in_mid_append_leaves_a_table_that_is_read_and_written(
    metastore: EmbeddedMetastore, table: Table, point: str, made: bool, lock: str
) -> None:
    table.append(rows(1))
    assert finished(child(metastore, table, "killed", lock=lock, point=point)) == -signal.SIGKILL
    expected = ["killed", "me"] if made else ["me"]
    assert sorted(table.refresh().scan().to_arrow()["who"].to_pylist()) == expected
    table.append(rows(2))
    assert sorted(table.scan().to_arrow()["who"].to_pylist()) == [*expected, "me"]
    check(table)


def test_a_metastore_that_dies_in_the_middle_of_the_swap_leaves_a_whole_table_and_is_a_typed_error_while_it_is_down(
    tmp_path: Path,
) -> None:
    data, warehouse = tmp_path / "data", tmp_path / "warehouse"
    with EmbeddedMetastore(data_dir=data, warehouse=warehouse) as server:
        catalog = load_catalog("dying", type="hive", uri=server.uri, **{"hive.metastore.connect.retries": "1"})
        catalog.create_namespace("db")
        status_check = {"commit.status-check.num-retries": "1", "commit.status-check.min-wait-ms": "1"}
        table = catalog.create_table("db.events", SCHEMA, properties=status_check)
        table.append(rows(1))
        alter = catalog.metastore.client.alter_table  # type: ignore[attr-defined]

        def made_and_then_gone(*arguments: object, **options: object) -> None:
            alter(*arguments, **options)
            server.stop()
            raise CommitStateUnknownError("The answer was lost.")

        catalog.metastore.client.alter_table = made_and_then_gone  # type: ignore[attr-defined]
        with pytest.raises((CommitStateUnknownError, MetastoreUnavailableError)) as caught:
            table.append(rows(2))
        assert isinstance(caught.value, CommitStateUnknownError)

        catalog.metastore.client.alter_table = alter  # type: ignore[attr-defined]
        files = {file.location for file in table.storage.list(table.location())}
        with pytest.raises((MetastoreUnavailableError, CommitStateUnknownError)) as caught:
            table.append(rows(9))
        assert "thrift://" in str(caught.value) or "127.0.0.1" in str(caught.value)
        if not isinstance(caught.value, CommitStateUnknownError):
            assert {file.location for file in table.storage.list(table.location())} == files, "it leaves no file"
        with pytest.raises(MetastoreUnavailableError):
            catalog.load_table("db.events")
        assert table.scan().count() == 1, "what was loaded can still be read"
        catalog.close()
    with EmbeddedMetastore(data_dir=data, warehouse=warehouse) as server:
        catalog = load_catalog("again", type="hive", uri=server.uri)
        table = catalog.load_table("db.events")
        assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 2], "it was made, and no file of it is gone"
        table.append(rows(3))
        assert table.scan().count() == 3
        catalog.close()


@pytest.mark.parametrize(
    ("data", "kind", "words"),
    [
        (pa.table({"id": ["a"], "who": ["x"]}), TypeMismatchError, ["id", "long", "string"]),
        (pa.table({"id": pa.array([None], pa.int64()), "who": ["x"]}), NullValueError, ["id"]),
        (pa.table({"id": [1], "stranger": ["x"]}), SchemaMismatchError, ["stranger"]),
        (pa.table({"who": ["x"]}), SchemaMismatchError, ["id"]),
    ],
    ids=["wrong type", "null in a required column", "unknown column", "missing required column"],
)
def test_rows_that_do_not_fit_are_refused_before_anything_is_written(
    table: Table, data: pa.Table, kind: type[Exception], words: list[str]
) -> None:
    with pytest.raises(kind) as caught:
        table.append(data)
    assert all(word in str(caught.value) for word in [*words, "events"])
    assert len(list(table.storage.list(table.location()))) == 1, "the metadata file of the new table"
    table.append(rows(1))
    assert table.scan().count() == 1


def test_rows_that_do_not_fit_in_the_middle_of_a_stream_leave_no_file(table: Table) -> None:
    good = rows(*range(1000)).to_batches()
    bad = pa.record_batch({"id": pa.array([None], pa.int64()), "who": ["x"]})
    reader = pa.RecordBatchReader.from_batches(bad.schema, [*(batch.cast(bad.schema) for batch in good), bad])
    with pytest.raises(NullValueError):
        table.append(reader)
    assert len(list(table.storage.list(table.location()))) == 1


@pytest.mark.parametrize(
    ("row_filter", "kind"),
    [("id >", ExpressionParseError), ("absent = 1", UnknownColumnError), ("id = 'abc'", TypeMismatchError)],
)
def test_a_bad_filter_is_a_typed_error(table: Table, row_filter: str, kind: type[Exception]) -> None:
    table.append(rows(1))
    with pytest.raises(kind):
        table.scan(row_filter).to_arrow()


def test_a_corrupt_or_missing_metadata_file_is_named(catalog: Catalog, namespace: str, table: Table) -> None:
    path = local_path(table.metadata_location)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(CorruptMetadataError, match=path.name):
        catalog.load_table((namespace, "events"))
    path.unlink()
    with pytest.raises(MissingFileError, match=path.name):
        catalog.load_table((namespace, "events"))
    assert catalog.table_exists((namespace, "events"))
    catalog.drop_table((namespace, "events"))
    assert not catalog.table_exists((namespace, "events"))


def test_a_metadata_file_of_a_later_format_version_is_refused(table: Table) -> None:
    path = local_path(table.metadata_location)
    path.write_bytes(path.read_bytes().replace(b'"format-version":2', b'"format-version":9'))
    with pytest.raises(Exception, match=r"version 9"):
        read_version(table.metadata_location, table.storage)
