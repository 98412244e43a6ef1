"""A real HDFS of two NameNodes and one DataNode, in a process of its own on loopback, that ends with its owner."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from xml.sax.saxutils import escape

from hms_iceberg.errors import JavaNotFoundError, MissingDependencyError
from hms_iceberg.hms.embedded.jars import find_java, find_metastore_jars
from tests.support.kdc import REALM, Kdc
from tests.support.maven import Artifact, UnavailableError, fetched

NAMESERVICE = "ns1"
_LAUNCHER = Path(__file__).with_name("ClusterLauncher.java")
LOG4J = """\
status = ERROR
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{ISO8601} %p [%t] %c{2}: %m%n
rootLogger.level = WARN
rootLogger.appenderRef.console.ref = console
"""
_SETTINGS = {
    "dfs.replication": "1",
    "dfs.namenode.fs-limits.min-block-size": "1024",
    "dfs.namenode.acls.enabled": "true",
    "dfs.ha.tail-edits.period": "1s",
    "dfs.permissions.superusergroup": "superusers",
    "fs.permissions.umask-mode": "022",
}
_KEYS = "hadoop.security.key.provider.path"
_SERVER = f"hdfs/localhost@{REALM}"
_SECURITY = {
    "hadoop.security.authentication": "kerberos",
    "hadoop.rpc.protection": "privacy",
    "dfs.data.transfer.protection": "privacy",
    "dfs.namenode.kerberos.principal": _SERVER,
}
_OF_SECURED_SERVERS = {
    "hadoop.security.authorization": "true",
    "dfs.block.access.token.enable": "true",
    "dfs.datanode.kerberos.principal": _SERVER,
    "dfs.web.authentication.kerberos.principal": _SERVER,
    "hadoop.proxyuser.metastore.hosts": "*",
    "hadoop.proxyuser.metastore.groups": "*",
    "ignore.secure.ports.for.testing": "true",  # of HTTP: data is transferred with SASL all the same
}
_KEYTABS = ("dfs.namenode.keytab.file", "dfs.datanode.keytab.file", "dfs.web.authentication.kerberos.keytab")


class HdfsCluster:
    """A running cluster, as a context manager; its superuser is the user of this process, or `hdfs` with Kerberos.

    Args:
        folder: an empty folder for its blocks, its log, and `conf`, which is a HADOOP_CONF_DIR for its clients.
        kdc: of the realm whose users it knows, and then all that is sent is encrypted; without one it believes anybody.
        keys: the server of the keys of encryption zones; without one they are in a file that clients do not know.
    """

    def __init__(self, folder: Path, kdc: Kdc | None = None, keys: str | None = None) -> None:
        self.folder = folder
        self.kdc = kdc
        self._keys = {_KEYS: keys} if keys else {}
        self.ports: tuple[int, int] = (0, 0)
        self._process: subprocess.Popen[str] | None = None

    @property
    def address(self) -> str:
        """The NameNode that is active at first."""
        return f"hdfs://127.0.0.1:{self.ports[0]}"

    @property
    def nameservice(self) -> str:
        """Both NameNodes, whichever is active."""
        return f"hdfs://{NAMESERVICE}"

    @property
    def settings(self) -> dict[str, str]:
        """What Hadoop's clients are to know."""
        prefix = "org.apache.hadoop.hdfs.server.namenode.ha"
        return {
            "fs.defaultFS": self.nameservice,
            "dfs.nameservices": NAMESERVICE,
            f"dfs.ha.namenodes.{NAMESERVICE}": "nn0,nn1",
            f"dfs.namenode.rpc-address.{NAMESERVICE}.nn0": f"127.0.0.1:{self.ports[0]}",
            f"dfs.namenode.rpc-address.{NAMESERVICE}.nn1": f"127.0.0.1:{self.ports[1]}",
            f"dfs.client.failover.proxy.provider.{NAMESERVICE}": f"{prefix}.ConfiguredFailoverProxyProvider",
            **(_SECURITY if self.kdc else {}),
            **self._keys,
        }

    @property
    def log(self) -> str:
        """What it said."""
        return (self.folder / "log").read_text(errors="replace")

    def __enter__(self) -> HdfsCluster:
        """Starts it and waits until it answers.

        Raises:
            UnavailableError: there is no Java, or its jars cannot be had.
        """
        try:
            java, jars = find_java(), find_metastore_jars()
        except (JavaNotFoundError, MissingDependencyError) as error:
            raise UnavailableError(str(error)) from error
        minicluster = sorted(minicluster_jars(jars).glob("*.jar"))
        (self.folder / "conf").mkdir(parents=True)
        (self.folder / "log4j2.properties").write_text(LOG4J)
        settings, options = {**_SETTINGS, _KEYS: f"jceks://file{self.folder / 'keys.jceks'}", **self._keys}, []
        if self.kdc is not None:
            keytab = str(self.kdc.keytab(_SERVER))
            settings |= {**_SECURITY, **_OF_SECURED_SERVERS, **dict.fromkeys(_KEYTABS, keytab)}
            options = [*self.kdc.java_options]
        (self.folder / "server.xml").write_text(site(settings))
        class_path = os.pathsep.join(map(str, [self.folder, *minicluster, *jars]))
        command = [
            *(str(java), "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", *options),
            *("-cp", class_path, "org.codehaus.janino.SimpleCompiler", str(_LAUNCHER), "ClusterLauncher"),
            *(str(self.folder / "blocks"), str(self.folder / "server.xml")),
        ]
        with open(self.folder / "log", "wb") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, cwd=self.folder, text=True
            )
        answered = re.fullmatch(r"ok (\d+) (\d+)", self._answer())
        assert answered is not None
        self.ports = (int(answered[1]), int(answered[2]))
        for name in ("core-site.xml", "hdfs-site.xml"):
            (self.folder / "conf" / name).write_text(site(self.settings))
        return self

    def __exit__(self, *_: object) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                assert stream is not None
                stream.close()

    @property
    def active(self) -> int:
        """Which of the NameNodes, 0 or 1, is the active one."""
        return int(self.command("active"))

    def activate(self, namenode: int) -> None:
        """Makes one of the NameNodes, 0 or 1, the active one."""
        self.command("activate", str(namenode))

    def stop_namenode(self, namenode: int) -> None:
        """Ends a NameNode."""
        self.command("stop-namenode", str(namenode))

    def start_namenode(self, namenode: int) -> None:
        """Starts a NameNode that was ended; it is on standby."""
        self.command("start-namenode", str(namenode))

    def dfsadmin(self, *words: str) -> None:
        """What `hdfs dfsadmin` does, with the active NameNode, which is the first one."""
        self.command("dfsadmin", "0", *words)

    def token(
        self, user: str, keytab: Path, place: str, valid: float = 86_400, longest: float = 604_800, *further: str
    ) -> Path:
        """A file with the delegation token that a user gets for a nameservice or the address of a NameNode.

        Args:
            user: whose.
            keytab: with his key.
            place: the nameservice or address.
            valid: for how many seconds, if nobody renews it.
            longest: for how many seconds it can be renewed.
            further: tokens of other services that the file has too, as texts.
        """
        self.command("lifetime-of-tokens", str(int(valid * 1000)), str(int(longest * 1000)))
        file = self.folder / f"token-{len(list(self.folder.glob('token-*')))}"
        self.command(
            "token", user, str(keytab), str(self.folder / "conf" / "core-site.xml"), place, str(file), *further
        )
        return file

    def command(self, *words: str) -> str:
        """Has the cluster do something; see ClusterLauncher. Returns what it answers beside `ok`."""
        assert self._process is not None and self._process.stdin is not None
        self._process.stdin.write("\t".join(words) + "\n")
        self._process.stdin.flush()
        said, _, answer = self._answer().partition(" ")
        assert said == "ok", answer
        return answer

    def _answer(self) -> str:
        assert self._process is not None and self._process.stdout is not None
        answer = self._process.stdout.readline().strip()
        assert answer, f"HDFS ended: {self.log[-3000:]}"
        return answer


def minicluster_jars(jars: list[Path]) -> Path:
    """A folder with Hadoop's own cluster for tests, of the release of Hadoop that PySpark brings.

    Raises:
        UnavailableError: Maven cannot fetch it.
    """
    found = (re.fullmatch(r"hadoop-client-api-(.*)\.jar", jar.name) for jar in jars)
    release = next((match[1] for match in found if match), None)
    if release is None:
        raise UnavailableError("PySpark has no Hadoop")
    everything = (("*", "*"),)
    return fetched(
        f"hdfs-{release}", (Artifact("org.apache.hadoop", "hadoop-client-minicluster", release, everything),)
    )


def site(settings: dict[str, str]) -> str:
    """A file of settings, as Hadoop reads them."""
    rows = "".join(
        f"<property><name>{escape(name)}</name><value>{escape(value)}</value></property>"
        for name, value in settings.items()
    )
    return f"<configuration>{rows}</configuration>"
