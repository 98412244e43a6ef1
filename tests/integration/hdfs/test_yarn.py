"""Jobs on a real YARN, in client mode and in cluster mode, whose executors have this package only from an archive."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hms_iceberg import load_catalog
from hms_iceberg.catalog import Catalog
from hms_iceberg.hms.embedded import EmbeddedMetastore
from tests.support.hdfs_cluster.cluster import HdfsCluster
from tests.support.hive_server.releases import HIVE_4_0
from tests.support.hive_server.server import HiveServer
from tests.support.kdc import REALM, Kdc
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


def submitted(
    mode: str, yarn: YarnCluster, archive: Path, name: str, more: dict[str, str], own: dict[str, str], folder: Path,
    java_options: str = "",
) -> dict[str, Any]:  # fmt: skip
    """What the job tells of a new table of that name, and of its copy as ORC."""
    import pyspark

    home = Path(pyspark.__file__).parent
    (folder / "job.py").write_text(_JOB)
    answers = folder / "answers.json"
    quick = f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC {java_options}"
    settings = {
        **more,
        "spark.pyspark.python": "./env/bin/python",
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
    command = [
        *(str(home / "bin" / "spark-submit"), "--master", "yarn", "--deploy-mode", mode),
        *("--archives", f"{archive}#env"),
        *(word for item in settings.items() for word in ("--conf", "=".join(item))),
        *(str(folder / "job.py"), name, str(answers)),
    ]
    unset = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "PYTHONPATH", "SPARK_HOME", "HADOOP_CONF_DIR")
    variables = {key: value for key, value in os.environ.items() if key not in unset}
    variables |= {"YARN_CONF_DIR": str(yarn.conf), **own}
    ran = subprocess.run(command, env=variables, cwd=folder, capture_output=True, text=True, timeout=540, check=False)
    assert ran.returncode == 0, f"{ran.stderr[-4000:]}\n{yarn.log}"
    told: dict[str, Any] = json.loads(answers.read_text())
    assert told["filtered"] == ROWS[2:]
    assert told["orc"] == [*ROWS[2:], [6, "orc"]]
    assert told["formats"] == [["ORC"]]
    assert told["files"] == [[1]]
    assert told["rows"] == ROWS
    containers = [told["executor"]] + ([told["driver"]] if mode == "cluster" else [])
    for python, package, own_home in containers:
        assert python.endswith("/env/bin/python") and python.startswith(str(yarn.folder))
        assert package.startswith(python.removesuffix("bin/python")), "the package is the archive's"
        assert own_home == "/dev/null"
    return told


@pytest.mark.parametrize("mode", ["cluster", "client"])
def test_a_job_works_with_the_package_of_its_archive(
    mode: str, yarn: YarnCluster, cluster: HdfsCluster, archive: Path, metastore: EmbeddedMetastore,
    catalog: Catalog, tmp_path: Path,
) -> None:  # fmt: skip
    from hdfs_native import Client

    catalog.create_namespace(mode, {"location": f"{cluster.nameservice}/user/{USER}/{mode}"})
    cluster.command("setowner", f"/user/{USER}/{mode}", USER)
    name = f"{mode}.visits"
    more = {
        "spark.hadoop.hive.metastore.uris": metastore.uri,
        "spark.sql.warehouse.dir": metastore.warehouse,
    }
    submitted(mode, yarn, archive, name, more, {"HADOOP_USER_NAME": USER}, tmp_path)
    assert rows_of(catalog, name) == ROWS
    assert rows_of(catalog, f"{name}_orc") == [*ROWS, [6, "orc"]]
    files = Client(cluster.address).list_status(f"/user/{USER}/{mode}", recursive=True)
    assert {file.owner for file in files} == {USER}, [(file.path, file.owner) for file in files]


def test_a_job_of_a_secured_cluster_has_tokens_for_metastore_and_hdfs_and_no_ticket(
    secured: HdfsCluster, realm: Kdc, archive: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    for package in ("puresasl", "kerberos"):
        pytest.importorskip(package, reason="needs pip install 'hms_iceberg[kerberos]'")
    principal, cache = "metastore/localhost", tmp_path / "tickets"
    keytab = realm.keytab(USER)
    realm.ticket(USER, keytab, cache)
    monkeypatch.setenv("KRB5_CONFIG", str(realm.krb5_conf))
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{cache}")
    monkeypatch.delenv("HADOOP_USER_NAME")
    sasl = {"hive.metastore.sasl.enabled": "true", "hive.metastore.kerberos.principal": f"{principal}@{REALM}"}
    of_server = {
        **secured.settings,
        "metastore.sasl.enabled": "true",
        "metastore.kerberos.keytab.file": str(realm.keytab(principal)),
        "metastore.kerberos.principal": f"{principal}@{REALM}",
        "hadoop.rpc.protection": "privacy,authentication",  # with a token, clients of Python cannot encrypt
        "metastore.warehouse.dir": f"{secured.nameservice}/user/{USER}",
    }
    opened = "--add-exports=java.security.jgss/sun.security.krb5=ALL-UNNAMED"
    java = f"-Djava.security.krb5.conf={realm.krb5_conf} {opened}"
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", java)  # of every process here but the containers
    for folder in (f"/user/{USER}", "/tmp"):
        secured.command("mkdirs", folder)
        secured.command("setowner", folder, USER)
    try:
        with (
            HiveServer(HIVE_4_0, tmp_path_factory.mktemp("metastore"), of_server, tuple(java.split())) as metastore,
            YarnCluster(tmp_path_factory.mktemp("secured-yarn"), secured, realm) as yarn,
            load_catalog("secured", uri=metastore.uri, **secured.settings, **sasl) as catalog,
        ):
            catalog.create_namespace("secured", {"location": f"{secured.nameservice}/user/{USER}/secured"})
            more = {f"spark.hadoop.{key}": value for key, value in sasl.items()}
            more |= {
                "spark.hadoop.hive.metastore.uris": metastore.uri,
                "spark.sql.warehouse.dir": f"{secured.nameservice}/user/{USER}",
                "spark.sql.catalogImplementation": "hive",
            }
            submitted("cluster", yarn, archive, "secured.visits", more, {}, tmp_path, java)
            assert rows_of(catalog, "secured.visits") == ROWS
            assert rows_of(catalog, "secured.visits_orc") == [*ROWS, [6, "orc"]]
    except UnavailableError as error:
        pytest.skip(str(error))


def rows_of(catalog: Catalog, name: str) -> list[list[object]]:
    """A whole table as Python reads it."""
    found = catalog.load_table(name).scan().to_arrow().sort_by("id")
    return [list(row.values()) for row in found.to_pylist()]
