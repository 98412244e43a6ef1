"""Spark neither reads nor changes encrypted tables, and says so; above all it writes no plain files into them."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from hms_iceberg import load_catalog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hms_iceberg.table import Table

pytestmark = pytest.mark.spark

PROPERTIES = {"format-version": "3", "encryption.key-id": "one"}
SETTINGS = ", ".join(f"'{name}' = '{value}'" for name, value in PROPERTIES.items())
STATEMENTS = [
    "select * from {}",
    "select count(*) from {}",
    "select * from {}.files",
    "select * from {} version as of 'main'",
    "insert into {} values (3, 'c')",
    "insert overwrite {} values (3, 'c')",
    "delete from {} where id = 1",
    "delete from {}",
    "update {} set name = 'x'",
    "merge into {} t using (select 1L as id) s on t.id = s.id when matched then delete",
    "truncate table {}",
    "alter table {} set tblproperties ('encryption.key-id' = 'two')",
    "alter table {} unset tblproperties ('encryption.key-id')",
    f"create table {{}}_2 using iceberg tblproperties ({SETTINGS}) as select 1L as id",
    "create or replace table {} using iceberg as select 1L as id",
    "call system.rewrite_data_files('{}')",
    "call system.compute_table_stats('{}')",
]


@pytest.fixture(scope="module")
def encrypted(metastore: Any, tmp_path_factory: pytest.TempPathFactory) -> Table:
    keys = tmp_path_factory.mktemp("keys") / "keys.json"
    keys.write_text(json.dumps({name: base64.b64encode(bytes(16)).decode() for name in ("one", "two")}))
    keys.chmod(0o600)
    settings = {"encryption.kms-type": "keystore", "kms.keystore.path": str(keys)}
    catalog = load_catalog("keyed", type="hive", uri=metastore.uri, warehouse=metastore.warehouse, **settings)
    catalog.create_namespace_if_not_exists("locked")
    rows = pa.table({"id": pa.array([1, 2], pa.int64()), "name": ["a", "b"]})
    table = catalog.create_table("locked.t", rows.schema, properties=PROPERTIES)
    table.append(rows)
    return table


@pytest.mark.parametrize("statement", STATEMENTS)
def test_spark_refuses_an_encrypted_table(spark: SparkSession, encrypted: Table, statement: str) -> None:
    folder = Path(encrypted.location().removeprefix("file:")).parent
    before = {each: each.stat().st_size for each in folder.rglob("*.*")}
    with pytest.raises(Exception, match=r"encrypted|encryption\.key-id"):
        spark.sql(statement.replace("{}", "locked.t")).collect()
    assert {each: each.stat().st_size for each in folder.rglob("*.*")} == before
    assert encrypted.refresh().scan().count() == 2
