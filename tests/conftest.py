"""Fixtures that need a server: one metastore for a test run, and what stands on it."""

from __future__ import annotations

import getpass
import os
import signal
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from hms_iceberg.errors import JavaNotFoundError, MissingDependencyError
from hms_iceberg.spark.spark_versions import release
from tests.support import class_archive, spread
from tests.support.pyspark_home import spark_release

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hms_iceberg.catalog import Catalog
    from hms_iceberg.hms.embedded import EmbeddedMetastore
    from tests.support.kafka import KafkaBroker
    from tests.support.spark_session import SessionState

# Spark's JVMs live for minutes at most: compiling their code twice costs two fifths of all their time.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

# Tests start hundreds of programs: without bytecode, each would compile this package first.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# `hdfs` puts the warehouse of the run's metastore on a real HDFS.
WAREHOUSE = os.environ.get("HMS_ICEBERG_TEST_WAREHOUSE", "local")
SLOW = {"slow", "spark", "interop"}
# Folders whose files share servers that take long to start; of several processes, one runs all of such a folder.
ROOMS = ("tests/integration/cli/thriftserver/", "tests/integration/hdfs/", "tests/interop/")
# Far longer than any test takes; one that waits for what never comes would hold the whole run.
LONGEST_SECONDS = 900
STARTED = pytest.StashKey["EmbeddedMetastore"]()
NEW_SESSION: pytest.StashKey[SessionState] = pytest.StashKey()

# How long an example takes says more about the machine than about the code. Examples are those of every run before.
settings.register_profile(
    "patient",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize="HMS_ICEBERG_SEED" not in os.environ,
)
settings.load_profile("patient")


def pytest_configure(config: pytest.Config) -> None:
    """Has Spark's JVMs start sooner in a run of all tests.

    What PySpark 3.5 itself does is no error of a test: it leaves sockets open, and uses what pandas lets go of.
    """
    is_whole = config.args_source is not pytest.Config.ArgsSource.ARGS
    if is_whole and not hasattr(config, "workerinput"):
        class_archive.make()
    class_archive.use()
    if spark_release() < (4, 0):
        for warning in (
            "unclosed <socket:ResourceWarning",
            "Exception ignored in:pytest.PytestUnraisableExceptionWarning",
        ):
            config.addinivalue_line("filterwarnings", f"ignore:{warning}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """In a short run of several processes, ends a test that waits too long, and again what waits while it ends."""

    def end(*_: object) -> None:
        pytest.fail(f"{item.nodeid} took more than {LONGEST_SECONDS} s")

    if spread.ALL or not hasattr(item.config, "workerinput"):
        return (yield)
    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, LONGEST_SECONDS, 60)
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Leaves out what the Spark that runs does not have: `@pytest.mark.since_spark("4.1", "why")`."""
    for mark in item.iter_markers("since_spark"):
        first, reason = mark.args
        if spark_release() < release(first):
            pytest.skip(f"since Spark {first}: {reason}")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of slow tests and tests with servers, a short run takes not every combination of parameters, but every value."""
    if spread.ALL:
        return
    left_out: set[pytest.Item] = {item for item in items if item.get_closest_marker("whole")}
    cases: dict[str, list[pytest.Function]] = {}
    for item in items:
        if item in left_out:
            continue
        is_slow = "integration" in item.path.parts or SLOW & {mark.name for mark in item.iter_markers()}
        if is_slow and isinstance(item, pytest.Function) and hasattr(item, "callspec"):
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    left_out |= {case for each in cases.values() for case in set(each) - set(spread.covering(each))}
    config.hook.pytest_deselected(items=list(left_out))
    items[:] = [item for item in items if item not in left_out]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With `--dist loadfile`: not even the files of a room go to several processes."""
    from xdist.scheduler import LoadFileScheduling

    class ByRoom(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return next((room for room in ROOMS if nodeid.startswith(room)), super()._split_scope(nodeid))

    return ByRoom(config, log) if config.getvalue("dist") == "loadfile" else None


@pytest.fixture(scope="session")
def hadoop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Settings of the HDFS that warehouses are on, if HMS_ICEBERG_TEST_WAREHOUSE says so; every process finds it by
    its name. Paths without a scheme stay local."""
    if WAREHOUSE == "local":
        yield {}
        return
    from tests.support.hdfs_cluster.cluster import HdfsCluster, site

    with HdfsCluster(tmp_path_factory.mktemp("hdfs")) as cluster, pytest.MonkeyPatch.context() as patch:
        settings = {name: value for name, value in cluster.settings.items() if name != "fs.defaultFS"}
        folder = tmp_path_factory.mktemp("hadoop")
        (folder / "core-site.xml").write_text(site(settings))
        patch.setenv("HADOOP_CONF_DIR", str(folder))
        patch.setenv("HADOOP_USER_NAME", getpass.getuser())
        yield settings


@pytest.fixture(scope="session")
def new_folder(hadoop: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Makes folders, of names that begin as given, where warehouses are."""
    if not hadoop:
        return tmp_path_factory.mktemp
    from tests.support.hdfs_path import local_path

    def made(name: str) -> Path:
        folder = local_path(f"hdfs://ns1/folders/{name}-{uuid.uuid4()}")
        folder.mkdir(parents=True)
        return folder

    return made


@pytest.fixture(scope="session")
def metastore(request: pytest.FixtureRequest, hadoop: dict[str, str]) -> Iterator[EmbeddedMetastore]:
    """The real Hive Metastore, started once for the whole test run."""
    from hms_iceberg.hms.embedded import EmbeddedMetastore

    server = EmbeddedMetastore(warehouse="hdfs://ns1/warehouse" if hadoop else None, properties=hadoop)
    try:
        server.start()
    except (JavaNotFoundError, MissingDependencyError) as error:
        pytest.skip(str(error))
    request.config.stash[STARTED] = server
    yield server
    del request.config.stash[STARTED]
    server.stop()


@pytest.fixture(autouse=True, scope="module")
def servers_as_before(request: pytest.FixtureRequest) -> Iterator[None]:
    """What a file left in the session that all share goes with it, as do the namespaces that its tests made: what looks
    at every table would take longer and longer."""
    before = _namespaces(request)
    yield
    if NEW_SESSION in request.config.stash:
        request.config.stash[NEW_SESSION].restore()
    for name in _namespaces(request) - before:
        _call(request, "drop_database", name, False, True)


def _namespaces(request: pytest.FixtureRequest) -> set[str]:
    """Names in the test run's metastore; none before it was started."""
    return set(_call(request, "get_all_databases")) if STARTED in request.config.stash else {"default"}


def _call(request: pytest.FixtureRequest, method: str, *arguments: Any) -> Any:
    from contextlib import closing

    from hms_iceberg.hms.connection.client_settings import ClientSettings
    from hms_iceberg.hms.connection.pool import ConnectionPool

    with closing(ConnectionPool(ClientSettings.from_properties({"uri": request.config.stash[STARTED].uri}))) as pool:
        return pool.call(method, *arguments, repeatable=False)


@pytest.fixture(scope="session")
def catalog(metastore: EmbeddedMetastore) -> Catalog:
    """A catalog on the test run's metastore."""
    from hms_iceberg.catalog import load_catalog

    return load_catalog("test", type="hive", uri=metastore.uri, warehouse=metastore.warehouse)


@pytest.fixture
def namespace(catalog: Catalog) -> str:
    """A fresh namespace for one test."""
    name = f"test_{uuid.uuid4().hex[:12]}"
    catalog.create_namespace(name)
    return name


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """A real Kafka broker, started once for the whole test run."""
    from tests.support.kafka import KafkaBroker
    from tests.support.maven import UnavailableError
    from tests.support.tls_front import Certificates

    pytest.importorskip("confluent_kafka", reason="needs confluent-kafka: pip install 'hms_iceberg[ingest]'")
    try:
        folder = tmp_path_factory.mktemp("kafka")
        broker = KafkaBroker(folder, Certificates(folder))
        broker.start()
    except (UnavailableError, FileNotFoundError) as error:
        pytest.skip(str(error))
    yield broker
    broker.stop()


@pytest.fixture(scope="session")
def spark(request: pytest.FixtureRequest, metastore: EmbeddedMetastore) -> Iterator[SparkSession]:
    """An extended Spark session on the test run's metastore."""
    pytest.importorskip("pyspark", reason="needs PySpark: pip install 'hms_iceberg[spark]'")
    from tests.support.spark_session import INTERPRETED, SessionState, extended_session

    session = extended_session(metastore, **INTERPRETED)
    request.config.stash[NEW_SESSION] = SessionState(session)
    yield session
    del request.config.stash[NEW_SESSION]
    session.stop()


@pytest.fixture(autouse=True)
def shared_session_as_before(request: pytest.FixtureRequest) -> Iterator[None]:
    """What a test changes in the session that all share ends with it; tests that are marked so have generated code."""
    if "spark" not in request.fixturenames:
        yield
        return
    from tests.support.spark_session import GENERATED, SessionState

    spark = request.getfixturevalue("spark")
    before = SessionState(spark)
    for key, value in GENERATED.items() if request.node.get_closest_marker("generated_code") else ():
        spark.conf.set(key, value)
    yield
    before.restore()
