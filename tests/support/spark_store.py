"""A Spark that changes a table on a store, with the store's settings for Hadoop."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from hms_iceberg.catalog import Catalog
from hms_iceberg.hms.embedded import EmbeddedMetastore
from hms_iceberg.table import Table

_SPARK = """
import json, sys
from tests.support.spark_session import INTERPRETED, quiet_builder
from hms_iceberg.spark import configure

class Metastore:
    uri, warehouse = sys.argv[1:3]

builder = quiet_builder(Metastore, spark_jars=sys.argv[3], **INTERPRETED)
for name, value in json.loads(sys.argv[4]).items():
    builder = builder.config(f"spark.hadoop.{name}", value)
spark = configure(builder).getOrCreate()
table = sys.argv[5]
before = spark.sql(f"select id, page from {table} order by id").collect()
spark.sql(f"insert into {table} values (7, '/7'), (8, null)")
spark.sql(f"update {table} set page = '/new' where id = 1")
spark.sql(f"merge into {table} t using (select 8L as id) s on t.id = s.id when matched then delete")
spark.sql(f"create table {table}_orc using iceberg tblproperties ('write.format.default' = 'orc') as table {table}")
after = spark.sql(f"select id, page from {table}_orc order by id").collect()

def error_of(statement):
    try:
        spark.sql(statement).collect()
    except Exception as error:
        return str(error)

errors = {statement: error_of(statement) for statement in sys.argv[6:]}
print(json.dumps([[[list(row) for row in rows] for rows in (before, after)], errors]))
"""


def changed_by_spark(
    metastore: EmbeddedMetastore,
    catalog: Catalog,
    table: Table,
    jars: Sequence[Path],
    hadoop: Mapping[str, str],
    statements: Sequence[str] = (),
) -> dict[str, str | None]:
    """Lets Spark read a table of the rows 1 and 2, change it, and copy it as ORC; and reads what came of it.

    Args:
        metastore: the metastore.
        catalog: a catalog of it.
        table: the table.
        jars: what Spark needs for the store.
        hadoop: settings of Hadoop.
        statements: what Spark tries after that.

    Returns:
        The error of each statement; None of one that passes.
    """
    name = ".".join(table.name())
    own = [metastore.uri, metastore.warehouse, ",".join(map(str, jars)), json.dumps(dict(hadoop)), name, *statements]
    command = [sys.executable, "-c", _SPARK, *own]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert ran.returncode == 0, ran.stderr[-3000:]
    (before, after), errors = json.loads(ran.stdout.splitlines()[-1])
    assert before == [[1, "/1"], [2, "/2"]]
    assert after == [[1, "/new"], [2, "/2"], [7, "/7"]]
    assert sorted(table.refresh().scan().to_arrow()["id"].to_pylist()) == [1, 2, 7]
    assert catalog.load_table(f"{name}_orc").scan().count() == 3
    return dict(errors)
