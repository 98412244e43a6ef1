"""A standalone cluster whose executors lack this package: Parquet needs it on the driver only, errors tell the rest."""

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
spark.conf.set("spark.sql.iceberg.data-planning-mode", "distributed")
answers["planned"] = told(f"select count(page), max(id) from {t}")
answers["write orc"] = told(f"insert into {t}_orc values (2)")
answers["read orc"] = told(f"select id from {t}_orc")
print(json.dumps(answers))
"""


def test_executors_need_the_package_only_for_orc_and_avro(
    metastore: EmbeddedMetastore, catalog: Catalog, namespace: str, tmp_path: Path
) -> None:
    import pyarrow as pa

    orc = {"write.format.default": "orc"}
    table = catalog.create_table(f"{namespace}.t_orc", pa.schema([("id", pa.int64())]), properties=orc)
    table.append(pa.table({"id": [1]}))
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
    for what in ("write orc", "read orc"):
        assert "MissingDependencyError: Python" in told[what]
        assert bare in told[what] and "set spark.pyspark.python to a Python that has it" in told[what]
    assert catalog.load_table(f"{namespace}.t_orc").scan().to_arrow().to_pydict() == {"id": [1]}
