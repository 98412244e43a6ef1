"""A warehouse on S3: storage, commits, scans, what fails there, and Spark by `s3a`."""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

from hms_iceberg import load_catalog
from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.catalog import Catalog
from hms_iceberg.cli.main import main
from hms_iceberg.errors import CorruptDataFileError, StorageError
from hms_iceberg.hms.embedded import EmbeddedMetastore
from hms_iceberg.table import Table
from tests.support import spread
from tests.support.failing_store import Failure
from tests.support.guides import lines_of
from tests.support.s3_store import BUCKET, S3Store, s3_store, s3a_jars
from tests.support.spark_store import changed_by_spark
from tests.support.spelled_places import ACTIONS, tried
from tests.support.storage_contract import StorageContract
from tests.support.store_tables import SCHEMA, catalog_of, ids, metastore_in, new_table, rows

SEED, WORLDS = map(int, os.environ.get("HMS_ICEBERG_PLACES", f"{spread.SEED % 10**9}:1").split(":"))
RETRY_ONCE = {"s3.retry.num-retries": "1"}


@pytest.fixture(scope="module")
def running_store() -> Iterator[S3Store]:
    with s3_store() as store:
        yield store


@pytest.fixture
def store(running_store: S3Store) -> Iterator[S3Store]:
    """The store, which fails in nothing."""
    yield running_store
    running_store.failures.clear()


@pytest.fixture(scope="module")
def metastore(running_store: S3Store) -> Iterator[EmbeddedMetastore]:
    with metastore_in(f"s3a://{BUCKET}/hive", s3a_jars, running_store.hadoop) as server:
        yield server


@pytest.fixture(scope="module")
def catalog(metastore: EmbeddedMetastore, running_store: S3Store) -> Iterator[Catalog]:
    with catalog_of(metastore, running_store.properties) as catalog:
        yield catalog


@pytest.fixture
def table(catalog: Catalog) -> Table:
    return new_table(catalog)


class TestS3Storage(StorageContract):
    @pytest.fixture
    def place(self, store: S3Store) -> tuple[ArrowStorage, str]:
        return ArrowStorage(store.properties), f"s3://{BUCKET}/{uuid.uuid4()}"


def test_tables_are_created_changed_read_and_purged(catalog: Catalog, store: S3Store) -> None:
    table = catalog.create_table("web.visits", SCHEMA, properties={"format-version": "3"})
    assert table.location() == f"s3a://{BUCKET}/hive/web.db/visits"
    table.append(rows(1, 2, 3))
    table.delete("id = 2")
    with table.update_schema() as schema:
        schema.add_column("seconds", "double")
    table.append(pa.table({"id": [4], "page": ["/4"], "seconds": [0.5]}))
    table.upsert(pa.table({"id": [4], "page": ["/new"], "seconds": [None]}), join_cols=["id"])
    found = catalog.load_table("web.visits").scan().to_arrow().sort_by("id").to_pydict()
    assert found == {"id": [1, 3, 4], "page": ["/1", "/3", "/new"], "seconds": [None, None, None]}
    table.maintenance.expire_snapshots().older_than(2**62).retain_last(1).commit()
    assert ids(table) == [1, 3, 4]
    catalog.purge_table("web.visits")
    assert list(ArrowStorage(store.properties).list(table.location())) == []


def test_the_cookbook_s_lines_scan_a_table_of_a_store_that_is_not_aws(
    catalog: Catalog, store: S3Store, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    catalog.create_table("web.visits", SCHEMA).append(rows(1, 2))
    here = {"thrift://metastore:9083": catalog.properties["uri"], "http://minio:9000": store.endpoint}

    for program, *words in lines_of("docs/COOKBOOK.md", "S3, Azure, Google and HDFS"):
        if program == "export":
            name, _, value = words[0].partition("=")
            monkeypatch.setenv(name, here[value])
        else:
            assert main(words) == 0

    assert re.findall(r"/[12]$", capfd.readouterr().out, re.M) == ["/1", "/2"]
    catalog.purge_table("web.visits")


def test_appends_side_by_side_are_all_kept(catalog: Catalog, table: Table) -> None:
    name = table.name()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda each: catalog.load_table(name).append(rows(each)), range(10, 22)))
    assert ids(table) == [1, 2, *range(10, 22)]


@pytest.mark.parametrize("path", [r"/data/.*\.parquet", r"\.avro", r"\.metadata\.json"])
def test_without_the_right_to_write_nothing_changes(store: S3Store, table: Table, path: str) -> None:
    store.failures.append(Failure("PUT", path, 403))
    with pytest.raises(StorageError, match=r"(?i)access|403|forbidden"):
        table.append(rows(3))
    assert store.failures.pop().met
    assert ids(table) == [1, 2]
    table.append(rows(3))
    assert ids(table) == [1, 2, 3]


@pytest.mark.parametrize("path", [r"/data/.*\.parquet", r"\.avro"])
def test_without_the_right_to_read_the_file_is_not_called_damaged(store: S3Store, table: Table, path: str) -> None:
    for method in ("GET", "HEAD"):
        store.failures.append(Failure(method, path, 403))
    reader = load_catalog("other", uri=table.catalog.properties["uri"], **store.properties)
    with reader, pytest.raises(StorageError) as caught:
        reader.load_table(table.name()).scan().to_arrow()
    assert not isinstance(caught.value, CorruptDataFileError)


def test_a_store_that_is_busy_for_a_moment_is_asked_again(store: S3Store, table: Table) -> None:
    store.failures.append(Failure("PUT", r"\.(parquet|avro|json)$", 503, times=3))
    store.failures.append(Failure("GET", r"\.(parquet|avro|json)$", 500, times=3))
    store.failures.append(Failure("GET", r"\.parquet$", None, times=2, seconds=0.5))
    table.append(rows(3))
    assert ids(table) == [1, 2, 3]
    assert [each.met for each in store.failures] == [3, 3, 2]
    store.failures[:] = [Failure("PUT", r"\.parquet$", 503)]
    impatient = load_catalog("other", uri=table.catalog.properties["uri"], **store.properties, **RETRY_ONCE)
    with impatient, pytest.raises(StorageError, match=r"(?i)slow"):
        impatient.load_table(table.name()).append(rows(4))
    assert store.failures[0].met == 2


@pytest.mark.spark
def test_spark_reads_and_writes_by_s3a_and_changes_nothing_without_the_right_to(
    metastore: EmbeddedMetastore, catalog: Catalog, table: Table, store: S3Store
) -> None:
    closed = catalog.create_table("web.closed", SCHEMA, properties={"format-version": "3"})
    closed.append(rows(1, 2))
    for method in ("PUT", "POST", "DELETE"):
        store.failures.append(Failure(method, "/web.db/closed", 403))
    files = sorted(info.location for info in ArrowStorage(store.properties).list(closed.location()))
    writes = [
        "insert into web.closed values (3, 'c')",
        "delete from web.closed where id = 1",
        "update web.closed set page = 'x' where id = 1",
        "alter table web.closed add column seconds double",
        "create table web.closed_too (id bigint) using iceberg",
        "create table web.closed_copy using iceberg as select * from web.closed",
    ]
    reads = ["select * from web.closed", "describe extended web.closed"]
    errors = changed_by_spark(metastore, catalog, table, s3a_jars(), store.hadoop, [*writes, *reads])
    denied = r"(?is)web\.db/closed.*(denied|forbidden)|denied.*web\.db/closed"
    assert all(re.search(denied, errors[statement] or "") for statement in writes), errors
    assert [errors[statement] for statement in reads] == [None, None]
    store.failures.clear()
    assert sorted(info.location for info in ArrowStorage(store.properties).list(closed.location())) == files
    assert ids(closed) == [1, 2]
    assert {name for _, name in catalog.list_tables("web")}.isdisjoint({"closed_too", "closed_copy"})


@pytest.mark.parametrize("action", ACTIONS)
def test_nothing_of_others_goes_however_objects_are_spelled(store: S3Store, action: str) -> None:
    for seed in range(SEED, SEED + WORLDS):
        tried(f"{BUCKET}/{uuid.uuid4()}", ArrowStorage(store.properties), seed, action, local=False)
