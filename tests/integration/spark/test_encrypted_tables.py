"""Spark reads and changes encrypted tables: its tasks read and write Parquet files, others are left to Python."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from hms_iceberg import load_catalog
from hms_iceberg.encryption.file_keys import FileKey
from hms_iceberg.migration.migration_plan import MigrationOptions
from hms_iceberg.migration.rewrite import rewrite
from hms_iceberg.spark import extend
from hms_iceberg.spark.migration.hive_reader import SparkCopier
from hms_iceberg.variant import variants_to_json
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


def is_read_by_python(spark: SparkSession, name: str) -> bool:
    return "read by Python" in spark.sql(f"select * from {name}")._jdf.queryExecution().executedPlan().toString()


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
    assert is_read_by_python(spark, name) == (file_format == "avro")
    assert beginnings(table) <= {b"PARE", b"AGS1"}
    options = "map('rewrite-all', 'true')"
    spark.sql(f"call keyed.system.rewrite_data_files(table => '{own}', options => {options})").collect()
    assert sorted(rows_of(spark, f"select id, text from {name}")) == sorted(expected.items())
    assert rows_of(spark, f"select count(*) from {name} version as of {table.history()[0].snapshot_id}") == [(200,)]
    assert beginnings(table.refresh()) <= {b"PARE", b"AGS1"}
    assert not table.maintenance.check().findings
    before = {each.key_id for each in table.metadata.encryption_keys}
    [(rotated,)] = spark.sql(f"call keyed.system.rotate_keys(table => '{own}')").collect()
    assert rotated == len(table.refresh().snapshots()) > 4
    assert {each.key_id for each in table.metadata.encryption_keys} != before
    assert sorted(rows_of(spark, f"select id, text from {name}")) == sorted(expected.items())


def test_a_table_is_created_from_a_query_and_overwritten(spark: SparkSession, keyed: Catalog) -> None:
    spark.sql(f"create table keyed.locked.made using iceberg tblproperties ({SETTINGS}) as select id from range(5)")
    spark.sql("insert overwrite keyed.locked.made select id from range(3)")
    spark.range(3, 6).writeTo("keyed.locked.made").append()
    table = keyed.load_table("locked.made")
    assert rows(table) == [(n,) for n in range(6)]
    assert rows_of(spark, "select sum(id), count(*) from keyed.locked.made") == [(15, 6)]
    assert beginnings(table) == {b"PARE", b"AGS1"}


_TOLD = """
import html, json, logging, re, sys, urllib.error, urllib.parse, urllib.request
from tests.support.spark_session import extended_session

logging.basicConfig(level="DEBUG")

class Metastore:
    uri, warehouse = sys.argv[1:3]

keys, folder, told, shown = sys.argv[3:]
events = {"enabled": "true", "dir": folder, "compress": "false"}
catalog = {"uri": Metastore.uri, "encryption.kms-type": "keystore", "kms.keystore.path": keys}
settings = {f"spark.sql.catalog.keyed.{name}": value for name, value in catalog.items()}
settings |= {"spark.sql.catalog.keyed": "org.apache.iceberg.spark.SparkCatalog"}
settings |= {f"spark.eventLog.{name}": value for name, value in events.items()}
settings |= {"spark.ui.enabled": "true", "spark.ui.port": "0"}
spark = extended_session(Metastore, **settings)
spark.sparkContext.setLogLevel("DEBUG")
if spark.version < "4":  # whose Parquet shows footers there, with their keys
    log4j = spark._jvm.org.apache.logging.log4j
    log4j.core.config.Configurator.setLevel("org.apache.parquet.format.converter", log4j.Level.INFO)
with open(told, "w", encoding="utf-8") as file:
    for statement in sys.stdin.read().split(";"):
        frame = spark.sql(statement)
        frame.collect()
        file.write(frame._jdf.queryExecution().toString() + frame._jdf.queryExecution().debug().toString())
        file.write("\\n".join(row[0] for row in spark.sql(f"explain extended {statement}").collect()))

# All that a page of the UI leads to.
def pages(start, seen):
    left = [start]
    while left:
        path = html.unescape(left.pop()).split("#")[0]
        if path in seen or not path.startswith("/") or re.search("kill|static|threadDump|heap|[sS]ort|[pP]age", path):
            continue
        try:
            with urllib.request.urlopen(base + urllib.parse.quote(path, safe="/?&=%:"), timeout=60) as answer:
                seen[path] = answer.read().decode(errors="replace")
        except urllib.error.HTTPError as error:
            seen[path] = error.read().decode(errors="replace")
        left += [link.removeprefix(base) for link in re.findall('href="([^"]+)"', seen[path])]
    return seen

base = spark.sparkContext.uiWebUrl
seen = pages("/SQL/", {})
api = f"/api/v1/applications/{spark.sparkContext.applicationId}"
for path in ("/jobs", "/stages?details=true", "/sql?details=true&planDescription=true", "/environment", "/executors",
             "/storage/rdd"):
    pages(api + path, seen)
with open(shown, "w", encoding="utf-8") as file:
    json.dump(seen, file)
spark.stop()
"""
_STATEMENTS = """
    insert into keyed.locked.told select id, concat('t', id) from range(100);
    update keyed.locked.told set text = 'changed' where id < 10;
    update keyed.locked.copied set text = 'changed' where id < 10;
    select * from keyed.locked.told where id < 20;
    select count(*), max(text) from keyed.locked.copied
"""


def shown(secret: bytes) -> list[bytes]:
    """How a key may stand in a text: as it is, in digits, as numbers of Java and Python, and within base64."""
    signed = [each - 256 if each > 127 else each for each in secret]
    texts = [secret.hex(), secret.hex().upper(), *(sep.join(map(str, signed)) for sep in (", ", ","))]
    texts += [", ".join(map(str, secret)), repr(secret)[2:-1]]
    texts += [base64.b64encode(bytes(before) + secret).decode()[before + 1 : -4] for before in range(3)]
    return [secret, *(text.encode() for text in texts)]


def test_no_key_is_in_a_plan_a_log_an_event_or_a_page_of_the_ui(metastore: Any, keyed: Catalog, tmp_path: Path) -> None:
    for name, mode in (("told", "merge-on-read"), ("copied", "copy-on-write")):
        properties = {"format-version": "3", "encryption.key-id": "one", "write.update.mode": mode}
        schema = pa.schema([("id", pa.int64()), ("text", pa.string())])
        keyed.create_table(f"locked.{name}", schema, properties=properties).append(
            pa.table({"id": range(40), "text": ["a"] * 40})
        )
    events = tmp_path / "events"
    events.mkdir()
    arguments = [metastore.uri, str(metastore.warehouse), keyed.properties["kms.keystore.path"], events.as_uri()]
    arguments += [str(tmp_path / each) for each in ("plans", "pages")]
    command = [sys.executable, "-W", "ignore", "-c", _TOLD, *arguments]
    with open(tmp_path / "log", "wb") as log:
        subprocess.run(command, input=_STATEMENTS, stdout=log, stderr=log, text=True, timeout=300, check=True)
    secrets = [TABLE_KEY]
    for name in ("told", "copied"):
        table = keyed.load_table(f"locked.{name}")
        found = table.inspect.all_files()["key_metadata"].to_pylist()
        found += [each.key_metadata for snapshot in table.snapshots() for each in snapshot.manifests(table.io)]
        secrets += [FileKey.decode(each, name).key for each in found]
    assert len(set(secrets)) > 12
    written = [each for each in tmp_path.rglob("*") if each.is_file()]
    assert b"DEBUG" in (tmp_path / "log").read_bytes()
    assert any(b"SparkListenerSQLExecutionStart" in each.read_bytes() for each in written)
    pages = json.loads((tmp_path / "pages").read_text())
    assert len([path for path in pages if path.startswith("/SQL/execution/")]) >= 5
    assert any("Iceberg" in text for path, text in pages.items() if path.startswith("/api/v1") and "/sql" in path)
    for text in [each.read_bytes() for each in written]:
        assert [secret.hex() for secret in set(secrets) for form in shown(secret) if form in text] == []


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
    assert not is_read_by_python(spark, "keyed.locked.split")
    expected = [tuple(each.values()) for each in table.scan().to_arrow().to_pylist()]
    assert sorted(rows_of(spark, "select * from keyed.locked.split")) == sorted(expected)
    filtered = "select id from keyed.locked.split where text = 't3' and id > 9000 and real < 3200"
    assert sorted(rows_of(spark, filtered)) == [
        (n,) for n in ids if n % 7 and n % 50 == 3 and n > 9000 and n / 3 < 3200
    ]
    assert rows_of(spark, "select count(*), max(text) from keyed.locked.split") == [(10_000, "t9")]


def test_a_file_that_somebody_changed_is_told(spark: SparkSession, keyed: Catalog) -> None:
    modes = "'write.delete.mode' = 'merge-on-read'"
    spark.sql(f"create table keyed.locked.bits (id bigint) using iceberg tblproperties ({SETTINGS}, {modes})")
    spark.sql("insert into keyed.locked.bits select /*+ coalesce(1) */ id from range(1000)")
    spark.sql("delete from keyed.locked.bits where id = 999").collect()
    [task] = keyed.load_table("locked.bits").scan().plan_files()
    for file in (*task.delete_files, task.file):  # a vector that was read once is known
        path = Path(file.file_path.removeprefix("file:"))
        content = path.read_bytes()
        changed = [content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :] for at in (len(content) // 2, -40)]
        for data in (*changed, *([content[:-40]] if file is not task.file else [])):
            path.write_bytes(data)
            with pytest.raises(Exception, match="TamperedFileError: Cannot decrypt"):
                spark.sql("select * from keyed.locked.bits").collect()
        path.write_bytes(content)
    assert rows_of(spark, "select sum(id) from keyed.locked.bits") == [(498_501,)]


@pytest.mark.since_spark("4.0", "the type variant")
def test_variants_are_written_by_spark_alone(spark: SparkSession, keyed: Catalog) -> None:
    spark.sql(f"create table keyed.locked.variants (id bigint, v variant) using iceberg tblproperties ({SETTINGS})")
    spark.sql("insert into keyed.locked.variants select id, parse_json(concat('{\"n\": ', id, '}')) from range(3)")
    spark.sql("delete from keyed.locked.variants where variant_get(v, '$.n', 'int') = 1").collect()
    assert sorted(rows_of(spark, "select id, to_json(v) from keyed.locked.variants")) == [
        (0, '{"n":0}'),
        (2, '{"n":2}'),
    ]
    found = keyed.load_table("locked.variants").scan().to_arrow().sort_by("id")
    assert variants_to_json(found["v"]).to_pylist() == ['{"n":0}', '{"n":2}']
    assert beginnings(keyed.load_table("locked.variants")) == {b"PARE", b"AGS1"}
