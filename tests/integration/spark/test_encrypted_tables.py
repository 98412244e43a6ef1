"""Spark reads and changes encrypted tables: its tasks read Parquet files, all others and writing are left to Python."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from hms_iceberg import load_catalog
from hms_iceberg.migration.migration_plan import MigrationOptions
from hms_iceberg.migration.rewrite import rewrite
from hms_iceberg.spark import extend
from hms_iceberg.spark.migration.hive_reader import SparkCopier
from tests.support.spark_tables import rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hms_iceberg.catalog import Catalog
    from hms_iceberg.table import Table

pytestmark = pytest.mark.spark

TABLE_KEY = bytes(range(16))
KEYS = ("encryption.kms-type", "kms.keystore.path")
SETTINGS = "'format-version' = '3', 'encryption.key-id' = 'one'"


@pytest.fixture(scope="module")
def keyed(metastore: Any, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    """A catalog with keys, which the session has as `keyed`."""
    keys = tmp_path_factory.mktemp("keys") / "keys.json"
    keys.write_text(json.dumps({"one": base64.b64encode(TABLE_KEY).decode()}))
    keys.chmod(0o600)
    settings = {"encryption.kms-type": "keystore", "kms.keystore.path": str(keys)}
    settings |= {"uri": metastore.uri, "warehouse": str(metastore.warehouse)}
    extend(spark, catalogs={"keyed": settings})
    catalog = load_catalog("keyed", type="hive", **settings)
    catalog.create_namespace_if_not_exists("locked")
    return catalog


def beginnings(table: Table) -> set[bytes]:
    folder = Path(table.location().removeprefix("file:"))
    return {each.read_bytes()[:4] for each in folder.rglob("*") if each.suffix in (".parquet", ".avro", ".puffin")}


def rows(table: Table) -> list[tuple[Any, ...]]:
    return sorted(tuple(each.values()) for each in table.scan().to_arrow().to_pylist())


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
@pytest.mark.parametrize("file_format", ["parquet", "avro"])
def test_statements_on_an_encrypted_table_leave_encrypted_files(
    spark: SparkSession, keyed: Catalog, file_format: str, mode: str
) -> None:
    own = f"locked.{file_format}_{mode[:4]}"
    name = f"keyed.{own}"
    modes = ", ".join(f"'write.{each}.mode' = '{mode}'" for each in ("delete", "update", "merge"))
    form = f"'write.format.default' = '{file_format}'"
    spark.sql(
        f"create table {name} (id bigint, text string, d double, l array<int>, s struct<x: int not null>) "
        f"using iceberg partitioned by (bucket(2, id)) tblproperties ({SETTINGS}, {modes}, {form})"
    )
    spark.sql(
        f"insert into {name} select id, if(id % 3 = 0, null, concat('t', id)), if(id = 4, double('nan'), id / 2), "
        "array(int(id), null), if(id % 5 = 0, null, named_struct('x', int(id))) from range(200)"
    )
    spark.sql(f"delete from {name} where id in (1, 7)").collect()
    spark.sql(f"update {name} set text = 'changed' where id between 10 and 12").collect()
    spark.sql(
        f"merge into {name} t using (select id, 'merged' as text from range(195, 205)) s on t.id = s.id "
        "when matched then update set text = s.text when not matched then insert (id, text) values (s.id, s.text)"
    ).collect()
    table = keyed.load_table(own)
    found = rows_of(spark, f"select id, text from {name}")
    expected = {n: None if n % 3 == 0 else f"t{n}" for n in range(200) if n not in (1, 7)}
    expected |= dict.fromkeys(range(10, 13), "changed") | dict.fromkeys(range(195, 205), "merged")
    assert sorted(found) == sorted(expected.items())
    structs = {n: None if n % 5 == 0 or n >= 200 else {"x": n} for n in expected}
    assert [(row[0], row[-1]) for row in rows(table)] == sorted(structs.items())
    assert [row[:2] for row in rows(table)] == sorted(expected.items())
    assert rows_of(spark, f"select id from {name} where id > 100 and text = 'changed'") == []
    assert rows_of(spark, f"select count(*) from {name}.files where content = 0")[0][0] > 0
    assert beginnings(table) <= {b"PARE", b"AGS1"}
    options = "map('rewrite-all', 'true')"
    spark.sql(f"call keyed.system.rewrite_data_files(table => '{own}', options => {options})").collect()
    assert sorted(rows_of(spark, f"select id, text from {name}")) == sorted(expected.items())
    assert rows_of(spark, f"select count(*) from {name} version as of {table.history()[0].snapshot_id}") == [(200,)]
    assert beginnings(table.refresh()) <= {b"PARE", b"AGS1"}
    assert not table.maintenance.check().findings


def test_a_table_is_created_from_a_query_and_overwritten(spark: SparkSession, keyed: Catalog) -> None:
    spark.sql(f"create table keyed.locked.made using iceberg tblproperties ({SETTINGS}) as select id from range(5)")
    spark.sql("insert overwrite keyed.locked.made select id from range(3)")
    spark.range(3, 6).writeTo("keyed.locked.made").append()
    table = keyed.load_table("locked.made")
    assert rows(table) == [(n,) for n in range(6)]
    assert rows_of(spark, "select sum(id), count(*) from keyed.locked.made") == [(15, 6)]
    assert beginnings(table) == {b"PARE", b"AGS1"}


def test_no_key_is_in_a_plan(spark: SparkSession, keyed: Catalog) -> None:
    table = keyed.create_table(
        "locked.planned",
        pa.schema([("id", pa.int64())]),
        properties={"format-version": "3", "encryption.key-id": "one"},
    )
    table.append(pa.table({"id": [1, 2]}))
    [task] = table.scan().plan_files()
    key = task.file.key_metadata
    assert key is not None
    frame = spark.sql("select * from keyed.locked.planned where id > 1")
    assert frame.collect() == [(2,)]
    told = [
        frame._jdf.queryExecution().toString(),
        frame._jdf.queryExecution().executedPlan().treeString(),
        str(spark.sparkContext.getConf().getAll()),
        *(row[0] for row in spark.sql("explain extended select * from keyed.locked.planned").collect()),
    ]
    for secret in (key, key[2:18], TABLE_KEY):
        for text in told:
            assert secret.hex() not in text.lower().replace(" ", "")
            assert base64.b64encode(secret).decode().rstrip("=")[:-1] not in text
            assert secret.decode("latin-1") not in text


STATEMENTS = ["select * from {}", "insert into {} values (3)", "delete from {} where id = 1", "select * from {}.files"]


@pytest.mark.parametrize("statement", STATEMENTS)
def test_without_its_key_a_table_is_neither_read_nor_changed(
    spark: SparkSession, keyed: Catalog, statement: str
) -> None:
    if not keyed.table_exists("locked.t"):
        properties = {"format-version": "3", "encryption.key-id": "one", "write.delete.mode": "merge-on-read"}
        keyed.create_table("locked.t", pa.schema([("id", pa.int64())]), properties=properties).append(
            pa.table({"id": [1, 2]})
        )
    with pytest.raises(Exception, match=r"KeyUnavailableError.*has no key service"):
        spark.sql(statement.replace("{}", "locked.t")).collect()
    assert rows(keyed.load_table("locked.t")) == [(1,), (2,)]
    assert beginnings(keyed.load_table("locked.t")) == {b"PARE", b"AGS1"}


CHANGES = ["set tblproperties ('encryption.key-id' = 'two')", "unset tblproperties ('encryption.key-id')"]


@pytest.mark.parametrize("change", CHANGES)
def test_its_key_cannot_be_changed(spark: SparkSession, keyed: Catalog, change: str) -> None:
    spark.sql(f"create table if not exists keyed.locked.kept (id bigint) using iceberg tblproperties ({SETTINGS})")
    with pytest.raises(Exception, match=r"Cannot change encryption\.key-id"):
        spark.sql(f"alter table keyed.locked.kept {change}")


@pytest.mark.parametrize("prefix", ["", "keyed."])
def test_a_metadata_file_that_somebody_changed_is_not_believed(
    spark: SparkSession, keyed: Catalog, prefix: str
) -> None:
    name = f"locked.changed_{len(prefix)}"
    table = keyed.create_table(
        name, pa.schema([("id", pa.int64())]), properties={"format-version": "3", "encryption.key-id": "one"}
    )
    table.append(pa.table({"id": [1]}))
    path = Path(table.metadata_location.removeprefix("file:"))
    content = path.read_bytes()
    path.write_bytes(content.replace(b'"encryption.key-id":"one"', b'"another":"one"'))
    for statement in ("select * from {}", "insert into {} values (2)"):
        with pytest.raises(Exception, match=r"TamperedFileError.*not the one that was committed"):
            spark.sql(statement.replace("{}", prefix + name)).collect()
    path.write_bytes(content)
    assert beginnings(table) == {b"PARE", b"AGS1"}


def test_tables_of_the_session_s_own_catalog_have_its_key_service(spark: SparkSession, keyed: Catalog) -> None:
    session = extend(spark.newSession(), {each: keyed.properties[each] for each in KEYS})
    session.sql(f"create table locked.own (id bigint) using iceberg tblproperties ({SETTINGS})")
    session.sql("insert into locked.own values (1), (2), (3)")
    session.sql("delete from locked.own where id = 2").collect()
    assert rows_of(session, "select id from locked.own") == [(1,), (3,)]
    assert rows(keyed.load_table("locked.own")) == [(1,), (3,)]


def test_a_hive_table_is_migrated_into_an_encrypted_one_by_a_copy(spark: SparkSession, keyed: Catalog) -> None:
    session = extend(spark.newSession(), {each: keyed.properties[each] for each in KEYS})
    session.sql("create table locked.hive (id bigint, text string) stored as parquet")
    session.sql("insert into locked.hive select id, concat('t', id) from range(10)")
    options = MigrationOptions(properties={"format-version": "3", "encryption.key-id": "one"})
    rewrite(keyed, "locked.hive", options, rows=SparkCopier(session))
    table = keyed.load_table("locked.hive")
    assert rows(table) == [(n, f"t{n}") for n in range(10)]
    assert beginnings(table) == {b"PARE", b"AGS1"}
    assert rows_of(session, "select count(*), max(text) from locked.hive") == [(10, "t9")]


def test_parquet_files_without_deletes_are_read_by_spark_in_splits(spark: SparkSession, keyed: Catalog) -> None:
    properties = {"format-version": "3", "encryption.key-id": "one", "encryption.data-key-length": "32"}
    properties |= {"write.parquet.row-group-limit": "1000", "read.split.target-size": "20000"}
    schema = pa.schema([("id", pa.int64()), ("text", pa.string()), ("real", pa.float64())])
    table = keyed.create_table("locked.split", schema, properties=properties)
    ids = range(10_000)
    table.append(
        pa.table({"id": ids, "text": [None if n % 7 == 0 else f"t{n % 50}" for n in ids], "real": [n / 3 for n in ids]})
    )
    frame = spark.sql("select * from keyed.locked.split")
    assert "Python" not in frame._jdf.queryExecution().executedPlan().toString()
    expected = [tuple(each.values()) for each in table.scan().to_arrow().to_pylist()]
    assert sorted(rows_of(spark, "select * from keyed.locked.split")) == sorted(expected)
    filtered = "select id from keyed.locked.split where text = 't3' and id > 9000 and real < 3200"
    assert sorted(rows_of(spark, filtered)) == [
        (n,) for n in ids if n % 7 and n % 50 == 3 and n > 9000 and n / 3 < 3200
    ]
    assert rows_of(spark, "select count(*), max(text) from keyed.locked.split") == [(10_000, "t9")]


def test_a_data_file_that_somebody_changed_is_told(spark: SparkSession, keyed: Catalog) -> None:
    properties = {"format-version": "3", "encryption.key-id": "one"}
    table = keyed.create_table("locked.bits", pa.schema([("id", pa.int64())]), properties=properties)
    table.append(pa.table({"id": range(1000)}))
    [task] = table.scan().plan_files()
    path = Path(task.file.file_path.removeprefix("file:"))
    content = path.read_bytes()
    for place in (100, len(content) - 40):
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        with pytest.raises(Exception, match="TamperedFileError: Cannot decrypt"):
            spark.sql("select * from keyed.locked.bits").collect()
    path.write_bytes(content)
    assert rows_of(spark, "select sum(id) from keyed.locked.bits") == [(499_500,)]
