"""HDFS by libhdfs, from a Hadoop installation: what Arrow wants of it (ARROW_LIBHDFS_DIR or HADOOP_HOME, JAVA_HOME and
CLASSPATH) has to be set."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from hms_iceberg import load_catalog
from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.catalog import Catalog
from hms_iceberg.errors import MissingFileError, UnsupportedError
from hms_iceberg.hms.embedded import EmbeddedMetastore
from hms_iceberg.migration import migrate, rollback
from hms_iceberg.table.file_system import FileSystemTables
from tests.support.hdfs_cluster.cluster import HdfsCluster
from tests.support.hive_warehouse import HiveWarehouse
from tests.support.storage_contract import StorageContract
from tests.support.store_tables import SCHEMA, ids, new_table, rows

pytestmark = pytest.mark.whole  # there is a JVM in this process then

INSTALLED = bool(os.environ.get("ARROW_LIBHDFS_DIR") or os.environ.get("HADOOP_HOME"))


@pytest.fixture(scope="module")
def properties(cluster: HdfsCluster) -> Iterator[dict[str, str]]:
    """Those of a catalog that uses libhdfs."""
    if not INSTALLED:
        pytest.skip("needs libhdfs: set ARROW_LIBHDFS_DIR, JAVA_HOME and CLASSPATH")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLASSPATH", f"{cluster.folder / 'conf'}:{os.environ['CLASSPATH']}")
        yield {**cluster.settings, "hdfs.client": "libhdfs"}


@pytest.fixture
def hadoops(metastore: EmbeddedMetastore, catalog: Catalog, properties: dict[str, str]) -> Iterator[Catalog]:
    """The catalog, by libhdfs."""
    with load_catalog("libhdfs", uri=metastore.uri, **properties) as found:
        yield found


class TestLibhdfsStorage(StorageContract):
    @pytest.fixture
    def place(self, properties: dict[str, str], folder: str) -> tuple[ArrowStorage, str]:
        return ArrowStorage(properties), folder


def test_of_an_absent_file_no_java_is_written_out(
    properties: dict[str, str], folder: str, capfd: pytest.CaptureFixture[str]
) -> None:
    storage = ArrowStorage(properties)
    for call in (storage.read, storage.open_input, storage.length):
        with pytest.raises(MissingFileError):
            call(f"{folder}/absent")
    storage.delete(f"{folder}/absent")
    assert not storage.exists(f"{folder}/absent")
    assert "\tat " not in capfd.readouterr().err


def test_tables_are_changed_compacted_and_purged(hadoops: Catalog, storage: ArrowStorage) -> None:
    table = new_table(hadoops)
    table.append(rows(3))
    table.delete("id = 1")
    table.maintenance.rewrite_data_files(options={"rewrite-all": "true"})
    assert ids(table) == [2, 3]
    hadoops.purge_table(table.name())
    assert list(storage.list(table.location())) == []


def test_tables_that_are_folders_are_not_written_as_nothing_is_created_exclusively(
    properties: dict[str, str], folder: str
) -> None:
    with pytest.raises(UnsupportedError, match="not exclusive on hdfs"):
        FileSystemTables(properties).create(SCHEMA, f"{folder}/t")


def test_a_migration_and_its_way_back_write_no_java_out(
    hadoops: Catalog, storage: ArrowStorage, capfd: pytest.CaptureFixture[str]
) -> None:
    hive = HiveWarehouse(hadoops, "web")
    root = hive.create("by_libhdfs", "id bigint, page string", "day string").table.sd.location
    hive.add_partition("by_libhdfs", ["mon"], rows(1, 2), rows(3))
    before = hive.rows("by_libhdfs"), {info.location for info in storage.list(root)}
    capfd.readouterr()
    assert migrate(hadoops, ("web", "by_libhdfs")).records == 3
    assert ids(hadoops.load_table("web.by_libhdfs")) == [1, 2, 3]
    rollback(hadoops, ("web", "by_libhdfs"))
    assert (hive.rows("by_libhdfs"), {info.location for info in storage.list(root)}) == before
    assert "\tat " not in capfd.readouterr().err
