"""What `docker/` configures, run with servers from packages: Hive 4 on PostgreSQL and S3, Spark with two workers."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml

from hms_iceberg import load_catalog
from tests.support.guides import ROOT, block
from tests.support.hive_server.releases import HIVE_4_0
from tests.support.hive_server.server import LOCK_TABLES, HiveServer
from tests.support.maven import Artifact, UnavailableError, fetched
from tests.support.postgres import postgres
from tests.support.s3_store import S3Store, s3_store, s3a_jars
from tests.support.spark_cluster import StandaloneCluster

pytestmark = pytest.mark.slow

DOCKER = ROOT / "docker"
SERVICES: dict[str, Any] = yaml.safe_load((DOCKER / "compose.yaml").read_text())["services"]
_EVERYTHING = (("*", "*"),)
_WORD = re.compile(r"\b[A-Z][A-Z0-9_]+\b")
_KEYWORDS = frozenset(
    [
        *("CREATE", "TABLE", "PRIMARY", "KEY", "GENERATED", "BY", "DEFAULT", "AS", "IDENTITY", "NOT", "NULL"),
        *("INSERT", "INTO", "VALUES", "REFERENCES"),
    ]
)


def given(environment: dict[str, str]) -> dict[str, str]:
    """A service's environment with the defaults of its variables."""
    return {key: re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", str(value)) for key, value in environment.items()}


def test_docker_builds_the_images_of_the_compose_file() -> None:
    if os.environ.get("HMS_ICEBERG_DOCKER") != "all":
        pytest.skip("runs with HMS_ICEBERG_DOCKER=all: images of some gigabytes are fetched")
    if shutil.which("docker") is None or subprocess.run(["docker", "info"], capture_output=True).returncode:
        pytest.skip("there is no Docker that answers")
    subprocess.run(["docker", "compose", "-f", DOCKER / "compose.yaml", "build"], check=True)


@pytest.fixture(scope="module")
def store() -> Iterator[S3Store]:
    with s3_store() as running:
        yield running


@pytest.fixture(scope="module")
def metastore(store: S3Store, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The metastore's address: the options of the compose file, and the settings of its `core-site.xml`."""
    folder = tmp_path_factory.mktemp("metastore")
    environment = given(SERVICES["metastore"]["environment"])
    site = ElementTree.parse(DOCKER / "metastore" / "core-site.xml").getroot()
    settings = {str(each.findtext("name")): str(each.findtext("value")) for each in site.iter("property")}
    settings["fs.s3a.endpoint"] = settings["fs.s3a.endpoint"].replace("http://minio:9000", store.endpoint)
    keys = {"fs.s3a.access.key": "AWS_ACCESS_KEY_ID", "fs.s3a.secret.key": "AWS_SECRET_ACCESS_KEY"}
    settings |= {name: environment[variable] for name, variable in keys.items()}
    tables = folder / "lock_tables.sql"
    tables.write_text(_quoted(LOCK_TABLES.read_text()))
    try:
        with ExitStack() as stack:
            port = stack.enter_context(postgres("metastore", "hive"))
            options = environment["SERVICE_OPTS"].replace("postgres:5432", f"127.0.0.1:{port}").split()
            jars = tuple(sorted(_metastore_jars().glob("*.jar")))
            server = HiveServer(HIVE_4_0, folder / "run", settings, tuple(options), jars, tables)
            yield stack.enter_context(server).uri
    except UnavailableError as error:
        pytest.skip(str(error))  # PostgreSQL is not installed, or Maven cannot fetch the jars here


def _quoted(script: str) -> str:
    """The SQL of the lock tables with names in quotes, as PostgreSQL's own script has them."""
    return _WORD.sub(lambda found: found[0] if found[0] in _KEYWORDS else f'"{found[0]}"', script)


def _metastore_jars() -> Path:
    """What the image adds to Hive's own: the driver, of the version of the Dockerfile; and what it brings, `s3a`."""
    text = (DOCKER / "metastore" / "Dockerfile").read_text()
    driver = re.search(r"org\.postgresql:postgresql:([\d.]+)", text)
    assert driver is not None
    return fetched(
        f"docker-metastore-{driver[1]}",
        (
            Artifact("org.postgresql", "postgresql", driver[1], _EVERYTHING),
            Artifact("org.apache.hadoop", "hadoop-aws", "3.3.6", _EVERYTHING),
            *(Artifact("com.amazonaws", f"aws-java-sdk-{name}", "1.12.367") for name in ("s3", "sts", "dynamodb")),
        ),
    )


@pytest.fixture(scope="module")
def environment(metastore: str, store: S3Store) -> dict[str, str]:
    """That of the service `spark`, with the addresses of the servers here."""
    found = given(SERVICES["spark"]["environment"])
    found = {
        key: value.replace("thrift://metastore:9083", metastore).replace("http://minio:9000", store.endpoint)
        for key, value in found.items()
    }
    return {**os.environ, **found}


def test_tables_of_the_compose_files_catalog_are_in_its_warehouse(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with load_catalog() as catalog:
        catalog.create_namespace("web")
        assert catalog.load_namespace_properties("web")["location"] == "s3a://warehouse/web.db"
        table = catalog.create_table("web.made", pa.schema([("id", pa.int64())]))
        with ThreadPoolExecutor(3) as pool:
            list(pool.map(lambda each: catalog.load_table("web.made").append(pa.table({"id": [each]})), range(6)))
        assert sorted(table.refresh().scan().to_arrow()["id"].to_pylist()) == list(range(6))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Spark of its own kind of cluster, with two workers."""
    with StandaloneCluster(tmp_path_factory.mktemp("cluster"), ["127.0.0.1", "127.0.0.1"]) as started:
        yield started.address


@pytest.mark.spark
def test_three_statements_of_the_guide_run_on_a_cluster_with_two_workers(
    request: pytest.FixtureRequest, environment: dict[str, str], metastore: str, store: S3Store, tmp_path: Path
) -> None:
    if os.environ.get("HMS_ICEBERG_DOCKER") != "all":
        pytest.skip("runs with HMS_ICEBERG_DOCKER=all: Spark fetches Hive's own client when it starts")
    lines = (DOCKER / "spark" / "spark-defaults.conf").read_text()
    cluster = request.getfixturevalue("cluster")
    lines = lines.replace("thrift://metastore:9083", metastore).replace("http://minio:9000", store.endpoint)
    (tmp_path / "spark-defaults.conf").write_text(lines)
    try:
        jars = ",".join(map(str, s3a_jars()))
    except UnavailableError as error:
        pytest.skip(str(error))  # the jars of s3a are in no cache and Maven cannot fetch them here
    (statements,) = re.findall(
        r'hms-iceberg sql -e "\n(.*?)"', block("cli", "A metastore for trying things").code, re.S
    )
    conf = ["--conf", f"spark.jars={jars}", "--conf", "spark.driver.host=127.0.0.1"]
    conf += ["--conf", "spark.executor.memory=600m", "--conf", "spark.cores.max=2"]
    command = [sys.executable, "-m", "hms_iceberg", "sql", "--master", cluster, *conf, "--output", "csv"]
    ran = subprocess.run(
        [*command, "-e", statements],
        env={**environment, "SPARK_CONF_DIR": str(tmp_path), "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert ran.stdout.split() == ["n,cities", "2,1"]
