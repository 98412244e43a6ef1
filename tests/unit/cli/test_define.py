"""`create`, `rename`, `drop` and `properties`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hms_iceberg.catalog import Catalog
from hms_iceberg.table import Table


def test_a_namespace_is_created_and_dropped(run: Any, lake: Catalog) -> None:
    assert run("create", "namespace", "web").out == "Created namespace: web\n"
    assert lake.namespace_exists("web")
    assert run("create", "namespace", "web").code == 1
    assert run("drop", "namespace", "web").out == "Dropped namespace: web\n"
    assert not lake.namespace_exists("web")


def test_a_table_is_created_from_columns_and_partition_terms(run: Any, lake: Catalog) -> None:
    said = run(
        *("create", "table", "db.v", "--column", "id:long!", "--column", "at:timestamptz"),
        *("--column", "price:decimal(9, 2)", "--partition-by", "days(at)", "--partition-by", "bucket(16, id)"),
        *("--table-property", "format-version=3", "--output", "json"),
    )
    table = lake.load_table("db.v")
    assert said.json["metadata_location"] == table.metadata_location
    assert [str(each) for each in table.schema().fields] == [
        "1: id: required long",
        "2: at: optional timestamptz",
        "3: price: optional decimal(9,2)",
    ]
    assert [str(each) for each in table.spec().fields] == ["1000: at_day: day(2)", "1001: id_bucket_16: bucket[16](1)"]
    assert table.format_version == 3


def test_a_table_takes_the_columns_of_a_file(run: Any, lake: Catalog, tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1], "name": ["a"]}), tmp_path / "rows.parquet")
    (tmp_path / "rows.csv").write_text("id,name\n1,a\n")
    (tmp_path / "rows.jsonl").write_text('{"id": 1, "name": "a"}\n')

    for ending in ("parquet", "csv", "jsonl"):
        assert run("create", "table", f"db.{ending}", "--like", f"rows.{ending}").code == 0
        fields = lake.load_table(f"db.{ending}").schema().fields
        assert [(each.name, str(each.field_type)) for each in fields] == [("id", "long"), ("name", "string")]


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ([], 2, "either by --column or by --like"),
        (["--column", "id"], 2, "expected NAME:TYPE"),
        (["--column", "id:number"], 1, "number"),
        (["--column", "id:long", "--partition-by", "half(id)"], 1, "no partition term"),
        (["--column", "id:long", "--partition-by", "day(id)"], 1, "day"),
        (["--column", "id:long", "--partition-by", "day(at)"], 1, "at"),
    ],
)
def test_a_definition_that_makes_no_sense_creates_nothing(
    words: list[str], code: int, message: str, run: Any, lake: Catalog
) -> None:
    said = run("create", "table", "db.v", *words)

    assert said.code == code
    assert message in said.err
    assert not lake.table_exists("db.v")


def test_a_table_in_a_folder_is_dropped_only_with_its_files(run: Any, lake: Catalog, table: Table) -> None:
    assert run("drop", "table", "db.t").code == 1
    assert lake.table_exists("db.t")
    assert run("drop", "table", "db.t", "--purge").out == "Dropped table: db.t (its files too)\n"
    assert not lake.table_exists("db.t")


def test_a_table_in_a_folder_cannot_be_renamed(run: Any, table: Table) -> None:
    said = run("rename", "db.t", "db.u")
    assert said.code == 1
    assert "db.t" in said.err


def test_properties_of_a_table_are_set_shown_and_removed(run: Any, table: Table) -> None:
    assert run("properties", "set", "table", "db.t", "owner", "ops=1").out == "Set owner=ops=1 on db.t\n"
    assert run("properties", "get", "table", "db.t", "owner").out == "ops=1\n"
    assert run("properties", "get", "table", "db.t", "--output", "json").json["owner"] == "ops=1"
    assert run("properties", "remove", "table", "db.t", "owner").out == "Property owner removed from db.t\n"

    for words in (["get"], ["remove"]):
        said = run("properties", *words, "table", "db.t", "owner")
        assert said.code == 1
        assert "Table db.t has no property owner" in said.err


def test_properties_of_a_namespace_are_shown(run: Any) -> None:
    assert run("properties", "get", "namespace", "db", "location").out == "lake/db\n"
    assert run("properties", "set", "namespace", "db", "owner", "ops").code == 1  # a folder has none
    assert run("properties", "remove", "namespace", "db", "owner").code == 1
