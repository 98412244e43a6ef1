"""Jobs on a real YARN, in client mode and in cluster mode, whose executors have this package only from an archive; and
with Kerberos."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from hms_iceberg import load_catalog
from hms_iceberg.catalog import Catalog
from hms_iceberg.hms.embedded import EmbeddedMetastore
from tests.support.hdfs_cluster.cluster import HdfsCluster
from tests.support.hive_server import secured as server
from tests.support.hive_server.releases import HIVE_3_1
from tests.support.hive_server.secured import PRINCIPAL, SASL
from tests.support.hive_server.server import HiveServer
from tests.support.kdc import Kdc
from tests.support.maven import UnavailableError
from tests.support.packed_environment import packed_environment
from tests.support.yarn_cluster.cluster import YarnCluster

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.whole]

USER = "alice"
_JOB = '''
import json, os, sys
from pyspark.sql import SparkSession
from hms_iceberg.spark import extend

name, answers, catalog = sys.argv[1:]
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
told["rows"] = sql(f"select id, page from {name} order by id")


def by_tokens(_):
    from hms_iceberg import load_catalog
    from hms_iceberg.hadoop_tokens import tokens_of_process
    kinds = [kind for kind in ("HDFS_DELEGATION_TOKEN", "HIVE_DELEGATION_TOKEN") if tokens_of_process(kind)]
    if kinds == ["HDFS_DELEGATION_TOKEN"]:  # Spark gets none for the metastore in client mode
        return [[kinds, os.environ.get("KRB5CCNAME"), None]]
    with load_catalog("workers", **json.loads(catalog)) as found:
        return [[kinds, os.environ.get("KRB5CCNAME"), found.load_table(name).scan().count()]]


[told["worker"]] = spark.sparkContext.range(1, numSlices=1).mapPartitions(by_tokens).collect()
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
    yield from running(tmp_path_factory.mktemp("yarn"), cluster)


@pytest.fixture(scope="module")
def secured_yarn(tmp_path_factory: pytest.TempPathFactory, secured: HdfsCluster) -> Iterator[YarnCluster]:
    """A real YARN that wants Kerberos."""
    yield from running(tmp_path_factory.mktemp("secured-yarn"), secured)


def running(folder: Path, cluster: HdfsCluster) -> Iterator[YarnCluster]:
    try:
        with YarnCluster(folder, cluster) as yarn:
            for home in (f"/user/{USER}", "/tmp"):
                cluster.command("mkdirs", home)
                cluster.command("setowner", home, USER)
            yield yarn
    except UnavailableError as error:
        pytest.skip(str(error))  # no Java, or jars that are in no cache and Maven cannot fetch here


@pytest.fixture(scope="module")
def secured_metastore(
    secured: HdfsCluster, realm: Kdc, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[HiveServer]:
    """A metastore that wants Kerberos, of a release that knows all calls of Spark's own client."""
    pytest.importorskip("kerberos", reason="needs pip install 'hms_iceberg[kerberos]'")
    try:
        with server.secured_metastore(HIVE_3_1, tmp_path_factory.mktemp("metastore"), secured, realm) as running:
            yield running
    except UnavailableError as error:
        pytest.skip(str(error))  # no Java, or jars that are in no cache and Maven cannot fetch here


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packed environment; it is beside, unpacked, for drivers on this machine."""
    kerberos = ("kerberos",) if find_spec("kerberos") is not None else ()
    return packed_environment(tmp_path_factory.mktemp("environment"), "hdfs", *kerberos)


def submit(
    mode: str, yarn: YarnCluster, archive: Path, folder: Path, name: str, settings: dict[str, str],
    properties: dict[str, str], variables: dict[str, str], java: Sequence[str] = (),
) -> dict[str, Any]:  # fmt: skip
    """Runs the job; what it told."""
    import pyspark

    home = Path(pyspark.__file__).parent
    (folder / "job.py").write_text(_JOB)
    answers = folder / "answers.json"
    options = " ".join(("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", *java))
    settings = {
        "spark.pyspark.python": "./env/bin/python",
        "spark.yarn.jars": f"local:{home}/jars/*",  # not sent, as they are on this machine
        "spark.yarn.maxAppAttempts": "1",
        "spark.executor.instances": "1",
        "spark.executor.memory": "1g",
        "spark.driver.memory": "1g",
        "spark.executor.extraJavaOptions": options,
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        **settings,
    }
    if mode == "client":
        settings |= {"spark.pyspark.driver.python": str(archive.parent / "env/bin/python")}
        settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    else:
        settings |= {"spark.driver.extraJavaOptions": options}
    command = [
        *(str(home / "bin" / "spark-submit"), "--master", "yarn", "--deploy-mode", mode),
        *("--archives", f"{archive}#env"),
        *(word for item in settings.items() for word in ("--conf", "=".join(item))),
        *(str(folder / "job.py"), name, str(answers), json.dumps(properties)),
    ]
    unset = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "PYTHONPATH", "SPARK_HOME", "HADOOP_CONF_DIR")
    own = {key: value for key, value in os.environ.items() if key not in unset}
    own |= {"YARN_CONF_DIR": str(yarn.conf), **variables}
    ran = subprocess.run(command, env=own, cwd=folder, capture_output=True, text=True, timeout=540, check=False)
    assert ran.returncode == 0, f"{ran.stderr[-4000:]}\n{yarn.log}"
    told: dict[str, Any] = json.loads(answers.read_text())
    assert told["filtered"] == ROWS[2:]
    assert told["orc"] == [*ROWS[2:], [6, "orc"]]
    assert told["formats"] == [["ORC"]]
    assert told["files"] == [[1]]
    assert told["rows"] == ROWS
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
    settings = {"spark.hadoop.hive.metastore.uris": metastore.uri, "spark.sql.warehouse.dir": metastore.warehouse}
    properties = {"uri": metastore.uri, **cluster.settings}
    told = submit(mode, yarn, archive, tmp_path, name, settings, properties, {"HADOOP_USER_NAME": USER})

    assert rows_of(catalog, name) == ROWS
    assert rows_of(catalog, f"{name}_orc") == [*ROWS, [6, "orc"]]
    files = Client(cluster.address).list_status(f"/user/{USER}/{mode}", recursive=True)
    assert {file.owner for file in files} == {USER}, [(file.path, file.owner) for file in files]
    containers = [told["executor"]] + ([told["driver"]] if mode == "cluster" else [])
    for python, package, own_home in containers:
        assert python.endswith("/env/bin/python") and python.startswith(str(yarn.folder))
        assert package.startswith(python.removesuffix("bin/python")), "the package is the archive's"
        assert own_home == "/dev/null"


@pytest.mark.parametrize(
    ("mode", "way", "tokens"),
    [
        ("cluster", "ticket", ["HDFS_DELEGATION_TOKEN", "HIVE_DELEGATION_TOKEN"]),
        ("cluster", "keytab", ["HDFS_DELEGATION_TOKEN"]),
        ("client", "ticket", ["HDFS_DELEGATION_TOKEN"]),
    ],
)
def test_a_job_uses_hdfs_and_the_metastore_by_the_tokens_that_spark_got_or_a_keytab(
    mode: str, way: str, tokens: list[str], secured_yarn: YarnCluster, secured: HdfsCluster,
    secured_metastore: HiveServer, realm: Kdc, archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    tickets = tmp_path / "tickets"
    variables = {"KRB5_CONFIG": str(realm.krb5_conf), "KRB5CCNAME": f"FILE:{tickets}"}
    keytab = realm.keytab(USER)
    realm.ticket(USER, keytab, tickets)
    monkeypatch.delenv("HADOOP_USER_NAME")
    for variable, value in variables.items():
        monkeypatch.setenv(variable, value)
    properties = {"uri": secured_metastore.uri, **secured.settings, **SASL}
    settings = {
        "spark.hadoop.hive.metastore.uris": secured_metastore.uri,
        "spark.hadoop.hive.metastore.sasl.enabled": "true",
        "spark.hadoop.hive.metastore.kerberos.principal": PRINCIPAL,
        "spark.sql.warehouse.dir": f"{secured.nameservice}/warehouse",
    }
    if way == "keytab":  # Spark gets no token for the metastore then, and renews those for HDFS in its JVM alone
        in_driver = {"KRB5_CLIENT_KTNAME": str(keytab), "KRB5CCNAME": "MEMORY:"}
        settings |= {f"spark.yarn.appMasterEnv.{variable}": value for variable, value in in_driver.items()}
        for each in ("spark.yarn.appMasterEnv", "spark.executorEnv"):
            settings[f"{each}.KRB5_CONFIG"] = str(realm.krb5_conf)
        for each in ("spark.kerberos.", "spark.hms_iceberg.hdfs.kerberos-"):
            settings |= {f"{each}principal": USER, f"{each}keytab": str(keytab)}
    namespace = f"{mode}_{way}"
    name = f"{namespace}.visits"
    with load_catalog("secured", **properties) as catalog:
        catalog.create_namespace(namespace, {"location": f"{secured.nameservice}/user/{USER}/{namespace}"})
        variables["SPARK_SUBMIT_OPTS"] = " ".join(realm.java_options)
        told = submit(mode, secured_yarn, archive, tmp_path, name, settings, properties, variables, realm.java_options)
        assert rows_of(catalog, name) == ROWS
        assert rows_of(catalog, f"{name}_orc") == [*ROWS, [6, "orc"]]
    assert told["worker"] == [tokens, None, len(ROWS) if "HIVE_DELEGATION_TOKEN" in tokens else None]


def rows_of(catalog: Catalog, name: str) -> list[list[object]]:
    """A whole table as Python reads it."""
    found = catalog.load_table(name).scan().to_arrow().sort_by("id")
    return [list(row.values()) for row in found.to_pylist()]
