"""A warehouse on Google Cloud Storage: storage, commits, scans, and what fails there."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from hms_iceberg import load_catalog
from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.catalog import Catalog
from hms_iceberg.errors import CorruptDataFileError, StorageError
from hms_iceberg.hms.embedded import EmbeddedMetastore
from hms_iceberg.table import Table
from tests.support.failing_store import Failure
from tests.support.gcs_store import BUCKET, GcsStore, gcs_jars, gcs_store
from tests.support.maven import UnavailableError
from tests.support.storage_contract import StorageContract
from tests.support.store_tables import SCHEMA, catalog_of, ids, metastore_in, new_table, rows


@pytest.fixture(scope="module")
def running_store() -> Iterator[GcsStore]:
    try:
        with gcs_store() as store:
            yield store
    except UnavailableError as error:
        pytest.skip(str(error))  # the server is of the extra `test`, and of Linux


@pytest.fixture
def store(running_store: GcsStore) -> Iterator[GcsStore]:
    """The store, which fails in nothing."""
    running_store.fail()
    yield running_store
    running_store.fail()


@pytest.fixture(scope="module")
def metastore(running_store: GcsStore) -> Iterator[EmbeddedMetastore]:
    with metastore_in(f"gs://{BUCKET}/hive", gcs_jars, running_store.hadoop) as server:
        yield server


@pytest.fixture(scope="module")
def catalog(metastore: EmbeddedMetastore, running_store: GcsStore) -> Iterator[Catalog]:
    with catalog_of(metastore, running_store.properties) as catalog:
        yield catalog


@pytest.fixture
def table(catalog: Catalog) -> Table:
    return new_table(catalog)


class TestGcsStorage(StorageContract):
    @pytest.fixture
    def place(self, store: GcsStore) -> tuple[ArrowStorage, str]:
        return ArrowStorage(store.properties), f"gs://{BUCKET}/{uuid.uuid4()}"


def test_a_file_of_metadata_is_read_by_one_request(store: GcsStore) -> None:
    storage, location = ArrowStorage(store.properties), f"gs://{BUCKET}/{uuid.uuid4()}/large.avro"
    content = uuid.uuid4().bytes * 200_000
    storage.create(location, content)
    store.fail(Failure("GET", "large", None))  # which is served, and counted
    assert storage.read(location) == content
    assert store.met() == [1]


def test_tables_are_created_changed_side_by_side_read_and_purged(catalog: Catalog, store: GcsStore) -> None:
    table = catalog.create_table("web.visits", SCHEMA, properties={"format-version": "3"})
    assert table.location() == f"gs://{BUCKET}/hive/web.db/visits"
    table.append(rows(1, 2, 3))
    table.delete("id = 2")
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda each: catalog.load_table("web.visits").append(rows(each)), range(10, 18)))
    assert ids(table) == [1, 3, *range(10, 18)]
    table.maintenance.expire_snapshots().older_than(2**62).retain_last(1).commit()
    assert ids(table) == [1, 3, *range(10, 18)]
    catalog.purge_table("web.visits")
    assert list(ArrowStorage(store.properties).list(table.location())) == []


@pytest.mark.parametrize("path", [r"\.parquet", r"\.avro", r"\.metadata\.json"])
def test_without_the_right_to_write_nothing_changes(store: GcsStore, table: Table, path: str) -> None:
    store.fail(Failure("POST", path, 403))
    with pytest.raises(StorageError, match=r"(?i)told to fail|403|denied"):
        table.append(rows(3))
    assert store.met()[0]
    store.fail()
    assert ids(table) == [1, 2]
    table.append(rows(3))
    assert ids(table) == [1, 2, 3]


@pytest.mark.parametrize("path", [r"\.parquet", r"\.avro"])
def test_without_the_right_to_read_the_file_is_not_called_damaged(store: GcsStore, table: Table, path: str) -> None:
    store.fail(Failure("GET", path, 403))
    reader = load_catalog("other", uri=table.catalog.properties["uri"], **store.properties)
    with reader, pytest.raises(StorageError) as caught:
        reader.load_table(table.name()).scan().to_arrow()
    assert not isinstance(caught.value, CorruptDataFileError)


@pytest.mark.whole  # as S3
def test_a_store_that_is_busy_for_a_moment_is_asked_again(store: GcsStore, table: Table) -> None:
    store.fail(
        Failure("POST", r"\.(parquet|avro|json)", 503, times=2),
        Failure("GET", r"\.(parquet|avro|json)", 503, times=2),
        Failure("GET", r"\.parquet", None, times=2, seconds=0.5),
    )
    table.append(rows(3))
    assert ids(table) == [1, 2, 3]
    assert store.met() == [2, 2, 2]
