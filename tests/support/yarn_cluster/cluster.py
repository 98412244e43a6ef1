"""A real YARN of one ResourceManager and one NodeManager on an HDFS, which ends with its owner."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from hms_iceberg.errors import JavaNotFoundError, MissingDependencyError
from hms_iceberg.hms.embedded.jars import find_java, find_metastore_jars
from tests.support.hdfs_cluster.cluster import LOG4J, HdfsCluster, minicluster_jars, site
from tests.support.kdc import REALM
from tests.support.maven import Artifact, UnavailableError, fetched

_LAUNCHER = Path(__file__).with_name("YarnLauncher.java")
_SCHEDULER = "org.apache.hadoop.yarn.server.resourcemanager.scheduler.fifo.FifoScheduler"
_SETTINGS = {
    "yarn.resourcemanager.scheduler.class": _SCHEDULER,
    "yarn.scheduler.minimum-allocation-mb": "256",
    "yarn.minicluster.yarn.nodemanager.resource.memory-mb": "6144",
    "yarn.nodemanager.pmem-check-enabled": "false",
    "yarn.nodemanager.vmem-check-enabled": "false",
    "yarn.nodemanager.disk-health-checker.enable": "false",
    # Containers have no home that anyone could write to, not even the superuser.
    "yarn.nodemanager.user-home-dir": "/dev/null",
}
# With Kerberos. They are one process, which has one login.
_SERVER = f"yarn/localhost@{REALM}"
_PRINCIPALS = ("yarn.resourcemanager.principal", "yarn.nodemanager.principal")
_KEYTABS = ("yarn.resourcemanager.keytab", "yarn.nodemanager.keytab")
# What Hadoop's jar for such clusters forgets.
_FURTHER = (
    Artifact("org.junit.jupiter", "junit-jupiter-api", "5.12.2"),
    Artifact("org.bouncycastle", "bcpkix-jdk18on", "1.82"),
)


class YarnCluster:
    """A running cluster, as a context manager; its containers are processes of this user on this machine.

    Args:
        folder: an empty folder for its containers, its log, and `conf`, which is a YARN_CONF_DIR for its clients.
        hdfs: where its applications leave their files; it is running. If it wants Kerberos, so does YARN.
    """

    def __init__(self, folder: Path, hdfs: HdfsCluster) -> None:
        self.folder = folder
        self.conf = folder / "conf"
        self._hdfs = hdfs
        self._process: subprocess.Popen[str] | None = None

    @property
    def log(self) -> str:
        """What the cluster said, and what each container did."""
        files = [self.folder / "log", *sorted(self.folder.glob("target/**/container_*/std*"))]
        return "\n".join(f"== {file.name}\n{file.read_text(errors='replace')[-6000:]}" for file in files)

    def __enter__(self) -> YarnCluster:
        """Starts it and waits until it answers.

        Raises:
            UnavailableError: there is no Java, or its jars cannot be had.
        """
        try:
            java, jars = find_java(), find_metastore_jars()
        except (JavaNotFoundError, MissingDependencyError) as error:
            raise UnavailableError(str(error)) from error
        further = [*minicluster_jars(jars).glob("*.jar"), *fetched("yarn-1", _FURTHER).glob("*.jar")]
        self.conf.mkdir(parents=True)
        (self.folder / "log4j2.properties").write_text(LOG4J)
        kdc = self._hdfs.kdc
        principals = dict.fromkeys(_PRINCIPALS, _SERVER) if kdc else {}
        keytabs = dict.fromkeys(_KEYTABS, str(kdc.keytab(_SERVER.partition("@")[0]))) if kdc else {}
        (self.folder / "server.xml").write_text(site({**_SETTINGS, **principals, **keytabs}))
        for name in ("core-site.xml", "hdfs-site.xml"):
            (self.conf / name).write_text(site(self._hdfs.settings))
        class_path = os.pathsep.join(map(str, [self.folder, self.conf, *further, *jars]))
        command = [
            *(str(java), "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
            *(kdc.java_options if kdc else ()),
            *("-cp", class_path, "org.codehaus.janino.SimpleCompiler", str(_LAUNCHER), "YarnLauncher"),
            str(self.folder / "server.xml"),
        ]
        # Containers inherit it.
        own = os.environ | {"JAVA_HOME": str(java.resolve().parents[1])}
        with open(self.folder / "log", "wb") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, cwd=self.folder, text=True, env=own
            )
        assert self._process.stdout is not None
        answered = re.fullmatch(r"ok (\S+) (\S+)", self._process.stdout.readline().strip())
        assert answered is not None, self.log
        addresses = {"yarn.resourcemanager.address": answered[1], "yarn.resourcemanager.scheduler.address": answered[2]}
        (self.conf / "yarn-site.xml").write_text(site({**addresses, **principals}))
        return self

    def __exit__(self, *_: object) -> None:
        process, self._process = self._process, None
        if process is not None:
            with process:  # the end of its input ends it, and its containers before
                pass
