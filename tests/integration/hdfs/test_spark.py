"""Spark SQL on a real HDFS: Spark writes Parquet with its own client, we the rest; Hive tables of Spark, migrated."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from hms_iceberg import load_catalog
from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.catalog import Catalog
from hms_iceberg.errors import MigrationError, StorageError
from hms_iceberg.hms.embedded import EmbeddedMetastore
from hms_iceberg.migration import migrate, rollback
from tests.support.hdfs_cluster.cluster import HdfsCluster
from tests.support.store_tables import ids, new_table

pytestmark = pytest.mark.spark

_SPARK = """
import json, sys
from tests.support.spark_session import INTERPRETED, quiet_builder
from hms_iceberg.spark import configure

class Metastore:
    uri, warehouse = sys.argv[1:3]

builder = quiet_builder(Metastore, **INTERPRETED)
builder = builder.config("spark.sql.catalog.ice", "org.apache.iceberg.spark.SparkCatalog")
builder = builder.config("spark.sql.catalog.ice.uri", Metastore.uri).config("spark.sql.catalog.ice.type", "hive")
builder = builder.config("spark.sql.catalog.folders.type", "hadoop")
builder = builder.config("spark.sql.catalog.folders", "org.apache.iceberg.spark.SparkCatalog")
builder = builder.config("spark.sql.catalog.folders.warehouse", sys.argv[3] + "/folders")
builder = builder.config("spark.hadoop.hive.exec.dynamic.partition.mode", "nonstrict")
for name, value in json.loads(sys.argv[4]).items():
    builder = builder.config(f"spark.hadoop.{name}", value)
spark = configure(builder).getOrCreate()
for line in sys.stdin:
    try:
        answer = [list(row) for row in spark.sql(line).collect()]
    except Exception as error:
        answer = str(error)
    print(json.dumps(answer), flush=True)
"""
MERGED = [[1, "a"], [2, "new"], [3, "merged"]]
HIVE = ("parquet", "orc")


@dataclass(frozen=True)
class Spark:
    """An extended session in a process of its own, whose only word of the cluster is what Hadoop's settings say."""

    process: subprocess.Popen[str]

    def sql(self, statement: str) -> list[list[object]]:
        """The rows of a statement."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(" ".join(statement.split()) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        assert isinstance(answer, list), answer
        return answer


@pytest.fixture(scope="module")
def session(metastore: EmbeddedMetastore, cluster: HdfsCluster) -> Iterator[Spark]:
    own = {key: value for key, value in os.environ.items() if key not in ("HADOOP_CONF_DIR", "HADOOP_USER_NAME")}
    arguments = [metastore.uri, metastore.warehouse, f"{cluster.nameservice}/spark", json.dumps(cluster.settings)]
    command = [sys.executable, "-c", _SPARK, *arguments]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=own)
    with process:
        yield Spark(process)
        assert process.stdin is not None
        process.stdin.close()


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("web.p", "parquet"),
        pytest.param("web.o", "orc", marks=pytest.mark.whole),
        ("ice.web.a", "avro"),
        ("folders.web.f", "orc"),
    ],
)
def test_tables_of_every_format_and_catalog_are_created_changed_and_read(
    session: Spark, catalog: Catalog, cluster: HdfsCluster, name: str, form: str
) -> None:
    if name.startswith("folders."):
        folders = {"type": "hadoop", "warehouse": f"{cluster.nameservice}/spark/folders", **cluster.settings}
        load_catalog("folders", **folders).create_namespace("web")
    properties = f"tblproperties ('write.format.default' = '{form}')"
    session.sql(f"create table {name} (id bigint, page string) using iceberg {properties}")
    session.sql(f"insert into {name} values (1, 'a'), (2, 'b')")
    session.sql(
        f"merge into {name} t using (select 2L as id union all select 3L) s on t.id = s.id "
        "when matched then update set page = 'new' when not matched then insert (id, page) values (s.id, 'merged')"
    )
    assert session.sql(f"select id, page from {name} order by id") == MERGED
    [[files]] = session.sql(f"select count(*) from {name}.files where file_path like '{cluster.nameservice}/%.{form}'")
    assert files
    if not name.startswith("folders."):
        found = catalog.load_table(name.removeprefix("ice.")).scan().to_arrow().sort_by("id")
        assert [list(row.values()) for row in found.to_pylist()] == MERGED


def test_a_table_of_python_is_changed_by_spark_and_read_by_python(session: Spark, catalog: Catalog) -> None:
    table = new_table(catalog)
    name = ".".join(table.name())
    assert session.sql(f"select id, page from {name} order by id") == [[1, "/1"], [2, "/2"]]
    session.sql(f"insert into {name} values (7, '/7'), (8, null)")
    session.sql(f"update {name} set page = '/new' where id = 1")
    session.sql(f"merge into {name} t using (select 8L as id) s on t.id = s.id when matched then delete")
    orc = "tblproperties ('write.format.default' = 'orc')"
    session.sql(f"create table {name}_orc using iceberg {orc} as table {name}")
    rows = [[1, "/new"], [2, "/2"], [7, "/7"]]
    assert session.sql(f"select id, page from {name}_orc order by id") == rows
    for each in (name, f"{name}_orc"):
        found = catalog.load_table(each).scan().to_arrow().sort_by("id").to_pylist()
        assert [list(row.values()) for row in found] == rows


@pytest.mark.parametrize("form", HIVE)
def test_a_hive_table_is_migrated_and_taken_back_and_no_file_of_it_moves(
    session: Spark, metastore: EmbeddedMetastore, catalog: Catalog, storage: ArrowStorage, form: str
) -> None:
    name = f"hive_{form}"
    session.sql(f"create table web.{name} (id bigint, page string) partitioned by (day string) stored as {form}")
    session.sql(f"insert into web.{name} values (1, 'a', 'mon'), (2, 'b', 'tue'), (3, null, 'tue')")
    before = session.sql(f"select * from web.{name} order by id")
    root = f"{metastore.warehouse}/web.db/{name}"
    files = sorted((info.location, info.size) for info in storage.list(root))
    assert len(files) == 3  # one says that the job is done

    assert migrate(catalog, ("web", name)).records == 3
    assert session.sql(f"select * from web.{name} order by id") == before
    session.sql(f"insert into web.{name} values (4, 'd', 'wed')")
    table = catalog.load_table(f"web.{name}")
    assert ids(table) == [1, 2, 3, 4]
    with pytest.raises(MigrationError):
        rollback(catalog, ("web", name))
    rollback(catalog, ("web", name), discard_changes=True)

    session.sql(f"refresh table web.{name}")
    assert session.sql(f"select * from web.{name} order by id") == before
    left = sorted((info.location, info.size) for info in storage.list(root))
    assert [each for each in left if "/data/day=wed/" not in each[0]] == files  # what was discarded stays as files


def test_a_migration_in_safe_mode_leaves_the_hive_table_as_it_was(
    session: Spark, catalog: Catalog, cluster: HdfsCluster
) -> None:
    session.sql("create table web.kept (id bigint) stored as parquet")
    session.sql("insert into web.kept values (1), (2)")
    cluster.dfsadmin("-safemode", "enter")
    try:
        with pytest.raises((StorageError, MigrationError), match="safe mode"):
            migrate(catalog, ("web", "kept"))
    finally:
        cluster.dfsadmin("-safemode", "leave")
    assert session.sql("select id from web.kept order by id") == [[1], [2]]
    assert migrate(catalog, ("web", "kept")).records == 2
