"""Jobs on a real YARN, in client mode and in cluster mode, whose executors have this package only from an archive."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from hms_iceberg.catalog import Catalog
from hms_iceberg.hms.embedded import EmbeddedMetastore
from tests.support.hdfs_cluster.cluster import HdfsCluster
from tests.support.maven import UnavailableError
from tests.support.packed_environment import packed_environment
from tests.support.yarn_cluster.cluster import YarnCluster

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.whole]

USER = "alice"
_JOB = '''
import json, os, sys
from pyspark.sql import SparkSession
from hms_iceberg.spark import extend

name, answers = sys.argv[1:]
spark = extend(SparkSession.builder.enableHiveSupport().getOrCreate())


def sql(statement):
    return [list(row) for row in spark.sql(statement).collect()]


def where_it_runs(_):
    import hms_iceberg
    return [[sys.executable, hms_iceberg.__file__, os.path.expanduser("~")]]


sql(f"create table {name} (id bigint, page string) using iceberg")
sql(f"insert into {name} values (1, 'a'), (2, 'b')")
sql(f"insert into {name} values (3, 'c'), (4, null)")
sql(f"""merge into {name} t using (select 2L as id union all select 5L) s on t.id = s.id
        when matched then update set page = 'new' when not matched then insert (id, page) values (s.id, 'merged')""")
sql(f"create table {name}_orc using iceberg tblproperties ('write.format.default' = 'orc') as table {name}")
sql(f"insert into {name}_orc values (6, 'orc')")
told = {
    "filtered": sql(f"select id, page from {name} where id > 2 order by id"),
    "orc": sql(f"select id, page from {name}_orc where id > 2 order by id"),
    "formats": sql(f"select distinct file_format from {name}_orc.files"),
    "rewritten": sql(f"call system.rewrite_data_files('{name}', options => map('rewrite-all', 'true'))"),
    "files": sql(f"select count(*) from {name}.files"),
}
spark.conf.set("spark.sql.iceberg.data-planning-mode", "distributed")
told["rows"] = sql(f"select id, page from {name} order by id")
[told["driver"]] = where_it_runs(())
[told["executor"]] = spark.sparkContext.range(1, numSlices=1).mapPartitions(where_it_runs).collect()
with open(answers, "w") as file:
    json.dump(told, file)
spark.stop()
'''
ROWS = [[1, "a"], [2, "new"], [3, "c"], [4, None], [5, "merged"]]


@pytest.fixture(scope="module")
def yarn(tmp_path_factory: pytest.TempPathFactory, cluster: HdfsCluster) -> Iterator[YarnCluster]:
    """A real YARN."""
    try:
        with YarnCluster(tmp_path_factory.mktemp("yarn"), cluster) as running:
            for home in (f"/user/{USER}", "/tmp"):
                cluster.command("mkdirs", home)
                cluster.command("setowner", home, USER)
            yield running
    except UnavailableError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packed environment; it is beside, unpacked, for drivers on this machine."""
    return packed_environment(tmp_path_factory.mktemp("environment"), "hdfs")


@pytest.mark.parametrize("mode", ["cluster", "client"])
def test_a_job_works_with_the_package_of_its_archive(
    mode: str, yarn: YarnCluster, cluster: HdfsCluster, archive: Path, metastore: EmbeddedMetastore,
    catalog: Catalog, tmp_path: Path,
) -> None:  # fmt: skip
    import pyspark
    from hdfs_native import Client

    home = Path(pyspark.__file__).parent
    (tmp_path / "job.py").write_text(_JOB)
    answers = tmp_path / "answers.json"
    quick = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    settings = {
        "spark.pyspark.python": "./env/bin/python",
        "spark.hadoop.hive.metastore.uris": metastore.uri,
        "spark.sql.warehouse.dir": metastore.warehouse,
        "spark.yarn.jars": f"local:{home}/jars/*",  # not sent, as they are on this machine
        "spark.yarn.maxAppAttempts": "1",
        "spark.executor.instances": "1",
        "spark.executor.memory": "1g",
        "spark.driver.memory": "1g",
        "spark.executor.extraJavaOptions": quick,
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
    }
    if mode == "client":
        settings |= {"spark.pyspark.driver.python": str(archive.parent / "env/bin/python")}
        settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    else:
        settings |= {"spark.driver.extraJavaOptions": quick}
    catalog.create_namespace(mode, {"location": f"{cluster.nameservice}/user/{USER}/{mode}"})
    cluster.command("setowner", f"/user/{USER}/{mode}", USER)
    name = f"{mode}.visits"
    command = [
        *(str(home / "bin" / "spark-submit"), "--master", "yarn", "--deploy-mode", mode),
        *("--archives", f"{archive}#env"),
        *(word for item in settings.items() for word in ("--conf", "=".join(item))),
        *(str(tmp_path / "job.py"), name, str(answers)),
    ]
    unset = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "PYTHONPATH", "SPARK_HOME", "HADOOP_CONF_DIR")
    own = {key: value for key, value in os.environ.items() if key not in unset}
    own |= {"YARN_CONF_DIR": str(yarn.conf), "HADOOP_USER_NAME": USER}
    ran = subprocess.run(command, env=own, cwd=tmp_path, capture_output=True, text=True, timeout=540, check=False)
    assert ran.returncode == 0, f"{ran.stderr[-4000:]}\n{yarn.log}"
    told = json.loads(answers.read_text())

    assert told["filtered"] == ROWS[2:]
    assert told["orc"] == [*ROWS[2:], [6, "orc"]]
    assert told["formats"] == [["ORC"]]
    assert told["files"] == [[1]]
    assert told["rows"] == ROWS
    assert rows_of(catalog, name) == ROWS
    assert rows_of(catalog, f"{name}_orc") == [*ROWS, [6, "orc"]]
    files = Client(cluster.address).list_status(f"/user/{USER}/{mode}", recursive=True)
    assert {file.owner for file in files} == {USER}, [(file.path, file.owner) for file in files]
    containers = [told["executor"]] + ([told["driver"]] if mode == "cluster" else [])
    for python, package, own_home in containers:
        assert python.endswith("/env/bin/python") and python.startswith(str(yarn.folder))
        assert package.startswith(python.removesuffix("bin/python")), "the package is the archive's"
        assert own_home == "/dev/null"


def rows_of(catalog: Catalog, name: str) -> list[list[object]]:
    """A whole table as Python reads it."""
    found = catalog.load_table(name).scan().to_arrow().sort_by("id")
    return [list(row.values()) for row in found.to_pylist()]
