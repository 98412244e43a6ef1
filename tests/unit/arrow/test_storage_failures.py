"""Only damage is called damage: what the storage fails at is an error of the storage, in every format."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from hms_iceberg.arrow.deletes.puffin import read_deletion_vector
from hms_iceberg.arrow.formats.content_files import open_reader
from hms_iceberg.arrow.metrics.footer_metrics import read_footer
from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.errors import CorruptDataFileError, CorruptFileError, MissingFileError, StorageError
from hms_iceberg.scan.manifests.cache import cache_of
from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.storage import Storage
from hms_iceberg.table.table import Table
from hms_iceberg.transaction.workspace import read_version
from tests.support.failing_storage import FailingStorage, ObjectStore, object_store
from tests.support.row_tables import create

FORMATS = ("parquet", "orc", "avro")
ROWS = pa.table({"id": pa.array(range(40_000), pa.int64()), "city": [f"town {n % 999}" for n in range(40_000)]})
FAILURES = (
    TimeoutError("no answer within 60 s"),
    PermissionError("403 Forbidden"),
    MemoryError("malloc of size 64 failed"),
    ConnectionResetError(errno.ECONNRESET, "Connection reset by peer"),
    OSError(errno.EIO, "Input/output error"),
)
GONE = FileNotFoundError(errno.ENOENT, "No such file or directory")


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Table]:
    made = {}
    for name in FORMATS:
        table = create(tmp_path_factory.mktemp(name), 3, "merge-on-read", **{"write.format.default": name})
        table.append(ROWS)
        table.delete("id < 100")
        made[name] = table
    return made


def data_file(table: Table) -> DataFile:
    (task,) = table.scan().plan_files()
    return task.file


def read(storage: Storage, location: str, name: str) -> int:
    reader = open_reader(storage, location, name)
    try:
        return sum(
            batch.num_rows
            for rows in reader.ranges()
            for _, batch in reader.read(rows, [0, 1, 2], 1000, use_threads=False)
        )
    finally:
        reader.close()


@pytest.mark.parametrize("failure", [*FAILURES, GONE], ids=lambda failure: type(failure).__name__)
@pytest.mark.parametrize("name", FORMATS)
def test_a_read_that_fails_in_any_format_is_no_damage(tables: dict[str, Table], name: str, failure: OSError) -> None:
    storage = FailingStorage()
    location = data_file(tables[name]).file_path
    assert read(storage, location, name) == ROWS.num_rows
    storage.error, needed = failure, storage.reads
    for storage.good_reads in range(needed):
        storage.reads = 0
        with pytest.raises(StorageError) as raised:
            read(storage, location, name)
        assert isinstance(raised.value, MissingFileError) == (failure is GONE)
        assert location in str(raised.value) and str(failure) in str(raised.value)


@pytest.mark.parametrize("failure", [*FAILURES, GONE], ids=lambda failure: type(failure).__name__)
def test_footers_and_deletion_vectors_that_cannot_be_read_are_not_damaged(
    tables: dict[str, Table], failure: OSError
) -> None:
    storage = FailingStorage()
    storage.error = failure
    (task,) = tables["parquet"].scan().plan_files()
    (deletes,) = task.delete_files
    kind = MissingFileError if failure is GONE else StorageError
    with pytest.raises(kind, match="parquet"):
        read_footer(storage, task.file.file_path)
    with pytest.raises(kind, match="puffin"):
        read_deletion_vector(storage, deletes)


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: type(failure).__name__)
def test_metadata_and_manifests_that_cannot_be_read_are_not_damaged(tables: dict[str, Table], failure: OSError) -> None:
    table = tables["parquet"]
    storage = FailingStorage()
    broken = Table(table.identifier, read_version(table.metadata_location, storage), table.metastore, storage)
    storage.error = failure
    cache_of(None).clear()
    for attempt in (lambda: list(broken.scan().plan_files()), lambda: read_version(table.metadata_location, storage)):
        with pytest.raises(type(failure)) as raised:
            attempt()
        assert not isinstance(raised.value, CorruptFileError)


@pytest.fixture
def store(tables: dict[str, Table], tmp_path: Path) -> Iterator[ObjectStore]:
    for name, table in tables.items():
        (tmp_path / f"data.{name}").write_bytes(Path(data_file(table).file_path).read_bytes())
    with object_store(tmp_path) as served:
        yield served


@pytest.mark.parametrize("name", FORMATS)
def test_what_an_object_store_refuses_is_no_damage(store: ObjectStore, name: str) -> None:
    storage, location = ArrowStorage(store.properties), f"s3://bucket/data.{name}"
    assert read(storage, location, name) == ROWS.num_rows
    store.failure = (403, "AccessDenied")
    with pytest.raises(StorageError, match="ACCESS_DENIED"):
        read(storage, location, name)
    store.failure = (404, "NoSuchKey")
    with pytest.raises(MissingFileError, match="disappeared"):
        read(storage, location, name)
    store.failure = None
    whole = (store.folder / f"data.{name}").read_bytes()
    (store.folder / f"data.{name}").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(CorruptDataFileError, match=location):
        read(storage, location, name)


def test_an_object_that_is_no_vector_is_still_damage(tables: dict[str, Table]) -> None:
    (task,) = tables["parquet"].scan().plan_files()
    (deletes,) = task.delete_files
    assert deletes.content_offset is not None
    with pytest.raises(CorruptDataFileError, match="the deletion vector"):
        read_deletion_vector(FailingStorage(), replace(deletes, content_offset=deletes.content_offset - 1))
