"""One HDFS for a test run, and what stands on it."""

from __future__ import annotations

import getpass
import uuid
from collections.abc import Iterator

import pytest

from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.catalog import Catalog
from hms_iceberg.hms.embedded import EmbeddedMetastore
from tests.support.hdfs_cluster.cluster import HdfsCluster
from tests.support.kdc import Kdc
from tests.support.maven import UnavailableError
from tests.support.store_tables import catalog_of, metastore_in


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HdfsCluster]:
    """A real HDFS."""
    pytest.importorskip("hdfs_native", reason="needs hdfs-native: pip install 'hms_iceberg[hdfs]'")
    try:
        with HdfsCluster(tmp_path_factory.mktemp("hdfs")) as running:
            yield running
    except UnavailableError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kdc]:
    """A real server of tickets."""
    if Kdc.missing_program() is not None:  # a real one, or nothing is shown
        pytest.skip(f"needs a Kerberos server: {Kdc.missing_program()} is not installed (apt install krb5-kdc)")
    with Kdc(tmp_path_factory.mktemp("realm")) as running:
        yield running


@pytest.fixture(scope="session")
def secured(realm: Kdc, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HdfsCluster]:
    """A real HDFS that knows only users of that realm, and encrypts all; anybody may make folders in its root."""
    pytest.importorskip("hdfs_native", reason="needs hdfs-native: pip install 'hms_iceberg[hdfs]'")
    try:
        with HdfsCluster(tmp_path_factory.mktemp("secured"), realm) as running:
            running.command("setpermission", "/", "777")
            yield running
    except UnavailableError as error:
        pytest.skip(str(error))


@pytest.fixture(autouse=True)
def user(monkeypatch: pytest.MonkeyPatch) -> None:
    """The superuser of the cluster uses it, if a test says nothing else."""
    monkeypatch.setenv("HADOOP_USER_NAME", getpass.getuser())
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    monkeypatch.delenv("HADOOP_HOME", raising=False)


@pytest.fixture
def storage(cluster: HdfsCluster) -> ArrowStorage:
    """The cluster's files."""
    return ArrowStorage(cluster.settings)


@pytest.fixture
def folder(cluster: HdfsCluster) -> str:
    """A folder that nobody else uses."""
    return f"{cluster.nameservice}/tests/{uuid.uuid4()}"


@pytest.fixture(scope="session")
def metastore(cluster: HdfsCluster) -> Iterator[EmbeddedMetastore]:
    """A metastore whose warehouse is on the cluster."""
    with metastore_in(f"{cluster.nameservice}/warehouse", lambda: (), cluster.settings) as server:
        yield server


@pytest.fixture(scope="session")
def catalog(metastore: EmbeddedMetastore, cluster: HdfsCluster) -> Iterator[Catalog]:
    """A catalog of that metastore."""
    with catalog_of(metastore, cluster.settings) as catalog:
        yield catalog
