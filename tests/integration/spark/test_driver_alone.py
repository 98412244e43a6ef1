"""A standalone cluster whose executors lack this package: they read and write tables of all formats without it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.spark_cluster import StandaloneCluster

if TYPE_CHECKING:
    from hms_iceberg.catalog import Catalog
    from hms_iceberg.hms.embedded import EmbeddedMetastore

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.whole]

_DRIVER = """
import json, sys
from tests.support.spark_session import extended_session

class Metastore:
    uri, warehouse = sys.argv[1:3]

master, python, t = sys.argv[3:]
spark = extended_session(Metastore, spark_master=master, spark_executor_memory="600m", spark_pyspark_python=python)

def told(statement):
    try:
        return [list(row) for row in spark.sql(statement).collect()]
    except Exception as error:
        return str(error)

told(f"create table {t} (id bigint, page string) using iceberg tblproperties ('write.delete.mode' = 'merge-on-read')")
answers = {
    "insert": told(f"insert into {t} values (1, 'a'), (2, 'b'), (3, 'c')"),
    "merge": told(f"merge into {t} t using (select 2L as id union all select 5L) s on t.id = s.id "
                  "when matched then update set page = 'new' when not matched then insert (id, page) values (5, 'e')"),
    "delete": told(f"delete from {t} where id = 3"),
    "filtered": told(f"select page from {t} where id > 1 order by id"),
    "rewrite": told(f"call system.rewrite_data_files('{t}', options => map('rewrite-all', 'true'))"),
}
answers["planned"] = told(f"select count(page), max(id) from {t}")
for kind in ("orc", "avro"):
    answers[f"read {kind}"] = told(f"select id, text from {t}_{kind} order by id")
    answers[f"write {kind}"] = [
        told(f"insert into {t}_{kind} values (4, 'd'), (5, 'e')"),
        told(f"update {t}_{kind} set text = 'new' where id = 3"),
        told(f"merge into {t}_{kind} t using (select 4L as id union all select 6L) s on t.id = s.id "
             "when matched then update set text = 'merged' when not matched then insert (id, text) values (6, 'f')"),
        told(f"create table {t}_{kind}_copy using iceberg tblproperties ('write.format.default' = '{kind}') as "
             f"select * from {t}_{kind}"),
    ]
print(json.dumps(answers))
"""


def test_executors_without_the_package_read_and_write_all_formats(
    metastore: EmbeddedMetastore, catalog: Catalog, namespace: str, tmp_path: Path
) -> None:
    import pyarrow as pa

    rows = pa.table({"id": [1, 2, 3], "text": ["a", None, "c"]})
    for kind in ("orc", "avro"):
        properties = {"write.format.default": kind, "write.delete.mode": "merge-on-read", "format-version": "2"}
        properties |= {"write.update.mode": "merge-on-read"}
        table = catalog.create_table(f"{namespace}.t_{kind}", rows.schema, properties=properties)
        table.append(rows)
        table.delete("id = 1")
    bare = f"{sys.base_prefix}/bin/python3.{sys.version_info.minor}"
    with StandaloneCluster(tmp_path, ["127.0.0.1"]) as cluster:
        arguments = [metastore.uri, metastore.warehouse, cluster.address, bare, f"{namespace}.t"]
        command = [sys.executable, "-W", "ignore", "-c", _DRIVER, *arguments]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=540, check=False)
    assert ran.returncode == 0, ran.stderr[-3000:]
    told = json.loads(ran.stdout)

    assert told["insert"] == told["merge"] == told["delete"] == []
    assert told["filtered"] == [["new"], ["e"]]
    assert told["rewrite"][0][1] == 1
    assert told["planned"] == [[3, 5]]
    rows = catalog.load_table(f"{namespace}.t").scan().to_arrow().sort_by("id").to_pylist()
    assert [list(row.values()) for row in rows] == [[1, "a"], [2, "new"], [5, "e"]]
    assert told["read orc"] == told["read avro"] == [[2, None], [3, "c"]]
    for kind in ("orc", "avro"):
        assert told[f"write {kind}"] == [[]] * 4
        for name in (f"{namespace}.t_{kind}", f"{namespace}.t_{kind}_copy"):
            table = catalog.load_table(name)
            assert table.scan().to_arrow().sort_by("id").to_pylist() == [
                {"id": n, "text": text} for n, text in ((2, None), (3, "new"), (4, "merged"), (5, "e"), (6, "f"))
            ]
            assert set(table.inspect.data_files()["file_format"].to_pylist()) == {kind.upper()}
