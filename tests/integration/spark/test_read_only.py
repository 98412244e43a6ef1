"""Spark on a warehouse that its user may only read: queries work, and changes say which right they need."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from hms_iceberg.catalog import Catalog
from hms_iceberg.hms.embedded import EmbeddedMetastore
from tests.support.rights import AS_USER, without_right_to_write

pytestmark = [pytest.mark.spark, pytest.mark.slow]

RUN = """
import json, sys
from tests.support.spark_session import INTERPRETED, extended_session

class Metastore:
    uri, warehouse = sys.argv[1:]

spark = extended_session(Metastore, **INTERPRETED)
answers = []
for statement in json.load(sys.stdin):
    try:
        answers.append([[*map(list, spark.sql(statement).collect())], ""])
    except Exception as error:
        answers.append([None, str(error)])
json.dump(answers, sys.stdout)
"""
READING = ("select id from {}.t order by id", "select count(*) from {}.t.files")
WRITING = (
    "insert into {}.t values (9, 'z')",
    "delete from {}.t where id = 1",
    "create table {}.made (id bigint) using iceberg",
    "create table {}.made using iceberg as select 1L as id",
    "alter table {}.t set tblproperties ('a' = 'b')",
    "drop table {}.t purge",
)


@pytest.fixture
def readable(catalog: Catalog, namespace: str) -> Iterator[Path]:
    """A namespace with a table, in folders that nobody may write to."""
    rows = pa.table({"id": [1, 2], "page": ["/", None]})
    table = catalog.create_table(f"{namespace}.t", rows.schema)
    table.append(rows)
    folder = Path(table.location().removeprefix("file:")).parent
    with without_right_to_write(folder):
        yield folder


def test_who_may_only_read_queries_and_is_told_which_right_a_statement_needs(
    metastore: EmbeddedMetastore, catalog: Catalog, namespace: str, readable: Path
) -> None:
    before = sorted(readable.rglob("*"))
    statements = [each.format(namespace) for each in READING + WRITING]

    command = [*AS_USER, sys.executable, "-c", RUN, metastore.uri, metastore.warehouse]
    done = subprocess.run(command, input=json.dumps(statements), capture_output=True, text=True, env=dict(os.environ))
    assert done.returncode == 0, done.stderr[-3000:]
    answers = json.loads(done.stdout.splitlines()[-1])

    assert answers[: len(READING)] == [[[[1], [2]], ""], [[[1]], ""]]
    for statement, (rows, told) in zip(statements[len(READING) :], answers[len(READING) :], strict=True):
        assert rows is None and "StorageDeniedError: Cannot " in told, (statement, told)
        assert f"{namespace}.db/" in told and "Grant that right" in told, (statement, told)
    assert sorted(readable.rglob("*")) == before
    assert catalog.list_tables(namespace) == [(namespace, "t")]
    assert catalog.load_table(f"{namespace}.t").scan().count() == 2
