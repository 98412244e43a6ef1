"""The guides' examples run as they stand."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hms_iceberg import load_catalog
from hms_iceberg.cli.main import main
from hms_iceberg.errors import ConfigurationError
from hms_iceberg.view import ViewVersion
from tests.support.guides import block, blocks, lines_of


@pytest.fixture
def databases(spark: Any) -> Iterator[None]:
    """The guides' databases; they go with all that is in them, however the test ends."""
    names = ("web", "sales")
    for name in names:
        spark.sql(f"create database {name}")
    yield
    for name in names:
        spark.sql(f"drop database {name} cascade")


def test_the_guides_catalog_example_runs_as_it_stands(metastore: Any, catalog: Any) -> None:
    example = block("table", "Python", "python").code
    names: dict[str, Any] = {}

    exec(compile(example.replace("thrift://metastore:9083", metastore.uri), "guide", "exec"), names)

    visits = catalog.load_table("web.visits")
    assert visits.scan().to_arrow().sort_by("id").to_pydict() == {
        "id": [1, 3, 4],
        "page": ["/", "/", "/"],
        "seconds": [None, None, 1.5],
    }
    assert visits.scan(snapshot_id=names["before"]).count() == 3
    assert names["visits"].inspect.snapshots().num_rows == 3
    assert catalog.load_view("web.buyers").current_version().dialects == ["spark"]
    catalog.drop_view("web.buyers")
    catalog.drop_table("web.visits", purge_requested=True)
    catalog.drop_namespace("web")


def test_the_guide_s_transaction_on_several_tables_runs_as_it_stands(metastore: Any, catalog: Any) -> None:
    example = block("catalog", "Several tables, one commit", "python").code
    catalog.create_namespace("bank")
    for name, columns in (("accounts", {"id": [1], "balance": [100]}), ("entries", {"account": [2], "amount": [5]})):
        rows = pa.table({key: pa.array(values, pa.int64()) for key, values in columns.items()})
        catalog.create_table(f"bank.{name}", rows.schema).append(rows)
    names: dict[str, Any] = {}

    exec(compile(example.replace("thrift://metastore:9083", metastore.uri), "guide", "exec"), names)

    assert names["accounts"].scan().to_arrow()["balance"].to_pylist() == [70]
    assert sorted(names["entries"].scan().to_arrow()["amount"].to_pylist()) == [-30, 5]
    for name in ("accounts", "entries"):
        catalog.drop_table(f"bank.{name}", purge_requested=True)
    catalog.drop_namespace("bank")


def test_the_guide_s_encrypted_table_is_written_and_read_as_it_stands(
    metastore: Any, catalog: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    example = block("encryption", "Use it", "python").code
    names: dict[str, Any] = {}
    monkeypatch.chdir(tmp_path)
    catalog.create_namespace("web")

    exec(compile(example.replace("thrift://metastore:9083", metastore.uri), "guide", "exec"), names)

    assert names["salaries"].scan().to_arrow().to_pylist() == [{"who": "Ada", "salary": 100}]
    [task] = names["salaries"].scan().plan_files()
    assert Path(task.file.file_path.removeprefix("file:")).read_bytes()[:4] == b"PARE"
    catalog.drop_table("web.salaries")
    catalog.drop_namespace("web")


def test_the_guides_everyday_commands_run_as_they_stand(
    metastore: Any, catalog: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = lines_of("cli", "Everyday commands")
    commands = [words[1:] for words in lines if words[0] == "hms-iceberg"]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYICEBERG_CATALOG__DEFAULT__URI", metastore.uri)
    rows = pa.table({"id": pa.array([1, 2], pa.int64()), "page": ["/", "/buy"]})
    catalog.create_namespace("web")
    catalog.create_table("web.visits", rows.schema)
    (tmp_path / "monday.csv").write_text("id,page\n3,/\n")
    pq.write_table(rows, tmp_path / "tuesday.parquet")

    assert len(commands) == len(lines) - 1
    for words in commands:
        assert main(words) == 0, words

    assert sorted(pq.read_table(tmp_path / "rows.parquet")["id"].to_pylist()) == [1, 3]
    assert list(catalog.load_table("web.visits").refs()) == ["main", "year-end"]
    catalog.drop_table("web.visits", purge_requested=True)
    catalog.drop_namespace("web")


@pytest.mark.spark
def test_the_guides_sql_runs_as_it_stands(spark: Any, catalog: Any, namespace: str) -> None:
    example = block("spark", "Spark SQL", "sql").code
    columns = "id bigint, page string, ts timestamp"
    for name, ids in (("hive_visits", (1, 2)), ("news", (2, 3))):
        spark.sql(f"create table {namespace}.{name} ({columns}) using parquet")
        values = ", ".join(f"({each}, '/{name}', timestamp'2026-01-31 12:00:00')" for each in ids)
        spark.sql(f"insert into {namespace}.{name} values {values}, ({ids[0] + 10}, null, null)")

    for statement in filter(str.strip, example.replace("db.", f"{namespace}.").split(";")):
        spark.sql(statement).collect()

    table = catalog.load_table(f"{namespace}.visits")
    rows = table.scan().to_arrow().sort_by("id")
    assert rows["id"].to_pylist() == [1, 2, 3]
    assert rows["page"].to_pylist() == ["/hive_visits", "/news", "/news"]
    assert [str(field.transform) for field in table.spec().fields] == ["day", "bucket[16]"]
    assert "audit" in table.refs()


@pytest.mark.spark
def test_the_guides_session_reads_iceberg_and_hive_tables_side_by_side_and_in_time(
    spark: Any, metastore: Any, catalog: Any, namespace: str
) -> None:
    example = block("spark", "Spark SQL", "py").code
    spark.sql(f"create table {namespace}.iceberg_flights using iceberg as select 'AA' as carrier")
    spark.sql(f"create table {namespace}.hive_airlines using parquet as select 'AA' as carrier, 'American' as name")
    snapshot = catalog.load_table(f"{namespace}.iceberg_flights").current_snapshot()
    at = datetime.fromtimestamp(snapshot.timestamp_ms // 1000 + 1, timezone.utc)
    for text, here in (
        ("thrift://metastore:9083", metastore.uri),
        (" db.", f" {namespace}."),
        ("4231363255180114125", str(snapshot.snapshot_id)),
        ("2026-01-31 12:00:00", f"{at:%Y-%m-%d %H:%M:%S}"),
    ):
        assert text in example
        example = example.replace(text, here)
    setup, query, rest = example.partition("spark.sql(")
    names: dict[str, Any] = {}

    exec(compile(setup, "guide", "exec"), names)
    answers = [eval(line, names).collect() for line in (query + rest).splitlines()]

    assert [len(answer) for answer in answers] == [1] * 4
    assert [tuple(row) for row in (answers[0][0], answers[2][0])] == [("American", 1), ("AA",)]


@pytest.mark.spark
@pytest.mark.usefixtures("databases")
def test_the_guides_migrations_and_its_maintenance_run_in_their_order(
    spark: Any, metastore: Any, catalog: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYICEBERG_CATALOG__DEFAULT__URI", metastore.uri)
    spark.sql("create table web.clicks using parquet partitioned by (day) as select 1L as id, date'2026-01-31' as day")
    spark.sql("create table web.tmp_clicks using parquet as select 1L as id")
    spark.sql("create table sales.fact_orders stored as textfile as select 1L as id")

    once, service = lines_of("maintenance", "Maintain")
    for words in (*lines_of("migration", "Migrate Hive tables"), once):
        here = [word.replace("thrift://metastore:9083", metastore.uri) for word in words[1:]]
        assert main([*here, "--once"] if "--follow" in here else here) == 0, words

    here = [word.replace("thrift://metastore:9083", metastore.uri) for word in service[1:]]
    with subprocess.Popen([sys.executable, "-m", "hms_iceberg", *here], stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert any(" looked at" in line for line in running.stdout)
        running.terminate()
        assert running.wait(60) == 0
    assert [catalog.load_table(name).scan().count() for name in ("web.clicks", "sales.fact_orders")] == [1, 1]
    assert not catalog.table_exists("web.tmp_clicks")


@pytest.mark.spark
@pytest.mark.usefixtures("databases")
def test_the_front_page_s_recipes_run_in_their_order(
    spark: Any, metastore: Any, catalog: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYICEBERG_CATALOG__DEFAULT__URI", metastore.uri)
    spark.sql("create table web.clicks using parquet as select 1L as id")

    for recipe in (block("front", "Spark SQL", "python"), block("front", "Python", "python")):
        code = recipe.code.replace("thrift://metastore:9083", metastore.uri)
        exec(compile(code, f"recipe of {recipe.section}", "exec"), {})
    assert sorted(catalog.load_table("web.visits").scan().to_arrow()["id"].to_pylist()) == [1, 3]
    for words in (*lines_of("front", "Migrate"), *lines_of("front", "Maintain")):
        if words[0] == "hms-iceberg":
            assert main(words[1:]) == 0, words
    assert spark.table("web.clicks").count() == 1
    assert not catalog.table_exists("web.clicks")


def test_the_cookbook_s_python_runs_in_its_order(catalog: Any, namespace: str) -> None:
    table = catalog.create_table(f"{namespace}.visits", pa.schema([("id", pa.int64()), ("page", pa.string())]))
    table.append(pa.table({"id": pa.array([1, 2], pa.int64()), "page": ["/", "/buy"]}))
    reports = block("docs/COOKBOOK.md", "Metrics and reports", "python").section
    sections = (
        block("docs/COOKBOOK.md", "Upgrade a table to format version 3", "python"),
        block("docs/COOKBOOK.md", "Time travel", "python"),
        block("docs/COOKBOOK.md", "Merge", "python"),
        block("docs/COOKBOOK.md", "Threads and processes", "python"),
        block("docs/COOKBOOK.md", "A commit that failed", "python"),
        *(each for each in blocks("docs/COOKBOOK.md") if each.section == reports),
    )
    now = (datetime.now(timezone.utc) + timedelta(minutes=1)).isoformat(timespec="seconds")

    names: dict[str, Any] = {"table": table}
    for section in sections:
        exec(compile(section.code.replace("2026-01-31T12:00:00+00:00", now), section.section, "exec"), names)

    rows = table.scan().to_arrow().sort_by("id").to_pydict()
    assert rows == {"id": [2, 2, 9, 9], "page": ["/new", "/new", "/nine", "/nine"]}
    assert table.scan().use_ref("year-end").to_arrow().sort_by("id")["page"].to_pylist() == ["/", "/buy"]


def test_the_cookbook_s_logging_tells_of_commits(catalog: Any, namespace: str) -> None:
    code = block("docs/COOKBOOK.md", "Logging", "python").code
    script = f"""{code}
import pyarrow as pa
from hms_iceberg import load_catalog

with load_catalog("here", uri={catalog.properties["uri"]!r}) as catalog:
    catalog.create_table("{namespace}.logged", pa.schema([("id", pa.int64())])).append(pa.table({{"id": [1]}}))
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert "INFO:hms_iceberg" in ran.stderr


@pytest.mark.spark
def test_the_cookbook_s_merge_runs_as_it_stands(spark: Any, namespace: str) -> None:
    statement = block("docs/COOKBOOK.md", "Merge", "sql").code.replace("web.", f"{namespace}.")
    spark.sql(f"create table {namespace}.visits using iceberg as select 1 as id, 'a' as page union all select 2, 'b'")
    spark.sql(f"create table {namespace}.news as select 1 as id, cast(null as string) as page union all select 3, 'c'")

    spark.sql(statement)

    assert sorted(map(tuple, spark.table(f"{namespace}.visits").collect())) == [(2, "b"), (3, "c")]


def test_a_restored_warehouse_is_whole(
    metastore: Any, catalog: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The recipe of a backup and that of a restore, around the loss of a namespace and its files."""
    namespace = "kept"
    catalog.create_namespace(namespace, {"location": f"{tmp_path}/warehouse"})
    monkeypatch.chdir(tmp_path)
    for variable, value in (("DEFAULT_CATALOG", "prod"), ("CATALOG__PROD__URI", metastore.uri)):
        monkeypatch.setenv(f"PYICEBERG_{variable}", value)
    table = catalog.create_table(f"{namespace}.t", pa.schema([("id", pa.int64())]))
    for number in range(3):
        table.append(pa.table({"id": [number]}))
    table.delete("id = 1")
    before = table.scan().to_arrow().sort_by("id"), table.history(), table.properties
    ids = ViewVersion.of_sql({"spark": f"select id from {namespace}.t"}, (namespace,))
    catalog.create_view(f"{namespace}.v", table.schema(), ids)

    exec(compile(block("docs/OPERATIONS.md", "Back up", "python").code, "guide", "exec"), {})
    shutil.copytree(tmp_path / "warehouse", tmp_path / "copy")
    table.append(pa.table({"id": [99]}))  # after the backup
    catalog.drop_view(f"{namespace}.v")
    catalog.drop_table(f"{namespace}.t")
    catalog.drop_namespace(namespace)
    shutil.rmtree(tmp_path / "warehouse", ignore_errors=True)
    shutil.copytree(tmp_path / "copy", tmp_path / "warehouse")
    rows = json.loads((tmp_path / "rows.json").read_text())  # of the tables of other tests, nothing is lost
    ours = {kind: {name: at for name, at in each.items() if name.startswith(namespace)} for kind, each in rows.items()}
    (tmp_path / "rows.json").write_text(json.dumps(ours))
    exec(compile(block("docs/OPERATIONS.md", "Restore", "python").code, "guide", "exec"), {})

    restored = catalog.load_table(f"{namespace}.t")
    assert (restored.scan().to_arrow().sort_by("id"), restored.history(), restored.properties) == before
    assert catalog.load_view(f"{namespace}.v").current_version() == ids
    (check,) = (words[1:] for words in lines_of("docs/OPERATIONS.md", "Restore"))
    ours_only = [f"{namespace}.*" if word == "*" else word for word in check]
    assert main(ours_only) == 0
    next(path for path in (tmp_path / "warehouse").rglob("*.parquet")).unlink()
    assert main(ours_only) == 1


def test_a_folder_or_an_embedded_metastore_takes_the_place_of_catalogs_that_are_not_here(
    metastore: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(compile(block("docs/FROM-PYICEBERG.md", "Catalogs", "python").code, "guide", "exec"), names)
    exec(compile(block("docs/FROM-PYICEBERG.md", "Catalogs", "py").code, "guide", "exec"), names)

    assert names["visits"].scan().to_arrow()["id"].to_pylist() == [1, 2]
    for kind in ("sql", "in-memory", "glue", "dynamodb", "bigquery"):
        with pytest.raises(ConfigurationError, match="or type 'hadoop' with a warehouse"):
            load_catalog("other", type=kind)


_KILLED_WRITER = """
import os, sys
from hms_iceberg.hms.connection.client import HmsClient
from hms_iceberg.hms.connection.client_settings import ClientSettings
from hms_iceberg.hms.locking.lock_settings import LockSettings
from hms_iceberg.hms.locking.table_lock import TableLock
lock = TableLock(HmsClient(ClientSettings.from_properties({"uri": sys.argv[1]})), "web", "visits", LockSettings())
lock.acquire()
print(lock.lock_id, flush=True)
os._exit(1)
"""


@pytest.mark.spark
@pytest.mark.usefixtures("databases")
def test_the_cookbook_s_commands_run_in_their_order(
    spark: Any,
    metastore: Any,
    catalog: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    page = "docs/COOKBOOK.md"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    settings = block(page, "Connect", "yaml").code.replace("thrift://metastore:9083", metastore.uri)
    (tmp_path / ".pyiceberg.yaml").write_text(re.sub(r"\n    (warehouse|s3\.region): .*", "", settings))
    for database, table in (("web", "clicks"), ("sales", "orders")):
        spark.sql(f"create table {database}.{table} using parquet as select 1L as id")
    visits = catalog.create_table("web.visits", pa.schema([("id", pa.int64())]))
    visits.append(pa.table({"id": [1]}))
    visits.manage_snapshots().create_tag(visits.current_snapshot().snapshot_id, "year-end").commit()
    visits.append(pa.table({"id": [2]}))

    assert main(lines_of(page, "Connect")[0][1:]) in (0, 1)  # the machine may lack something that the doctor looks for
    for section in ("Migrate 500 tables safely", "Roll back a table"):
        for words in lines_of(page, section):
            assert main(words[1:]) == 0, words
    locked = subprocess.run([sys.executable, "-c", _KILLED_WRITER, metastore.uri], capture_output=True, text=True)
    number = locked.stdout.strip()
    for words in lines_of(page, "A stuck lock"):
        assert main([number if each == "17" else each for each in words[1:]]) == 0, words

    assert f"Released: exclusive lock {number}" in capfd.readouterr().out
    assert catalog.load_table("sales.orders").scan().count() == 1
    assert catalog.load_table("web.visits").scan().to_arrow()["id"].to_pylist() == [1]
    assert (tmp_path / "state.html").exists()
