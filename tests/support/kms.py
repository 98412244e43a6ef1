"""Hadoop's server of keys (KMS) on loopback, in a process of its own, which gives keys to whoever asks."""

from __future__ import annotations

import os
from pathlib import Path

from hms_iceberg.hms.embedded.server import answers
from tests.support.hdfs_cluster.cluster import site
from tests.support.hive_server.releases import HIVE_4_1
from tests.support.kdc import REALM, Kdc
from tests.support.maven import Artifact, fetched
from tests.support.started_server import StartedServer

_RELEASE = "3.4.1"  # the newest that Maven has; the release of Hadoop of Hive 4.1 too
_START_SECONDS = 120.0
_CALLS = ("MANAGEMENT", "GENERATE_EEK", "DECRYPT_EEK", "READ")
_RIGHTS = {f"default.key.acl.{call}": "*" for call in _CALLS}
_PRINCIPAL = f"HTTP/localhost@{REALM}"


class Kms(StartedServer):
    """A running server of keys, as a context manager.

    Args:
        folder: an empty folder for its keys and its log.
        kdc: of the realm whose users it knows; without one it believes anybody.
    """

    def __init__(self, folder: Path, kdc: Kdc | None = None) -> None:
        super().__init__(folder)
        self._kdc = kdc

    @property
    def uri(self) -> str:
        """What `hadoop.security.key.provider.path` says."""
        return f"kms://http@localhost:{self.port}/kms"

    def __enter__(self) -> Kms:
        """Starts it and waits until it listens.

        Raises:
            UnavailableError: there is no Java that runs it, or its jars cannot be had.
        """
        jars = fetched(f"kms-{_RELEASE}", (Artifact("org.apache.hadoop", "hadoop-kms", _RELEASE),))
        settings = {
            "hadoop.kms.http.host": "localhost",
            "hadoop.kms.http.port": str(self.port),
            "hadoop.kms.key.provider.uri": f"jceks://file@{self.folder / 'keys.jceks'}",
            "hadoop.kms.authentication.type": "simple",
        }
        if self._kdc is not None:
            settings |= {
                "hadoop.kms.authentication.type": "kerberos",
                "hadoop.kms.authentication.kerberos.principal": _PRINCIPAL,
                "hadoop.kms.authentication.kerberos.keytab": str(self._kdc.keytab(_PRINCIPAL)),
            }
        for name, content in (("kms-site.xml", settings), ("kms-acls.xml", _RIGHTS), ("core-site.xml", {})):
            (self.folder / name).write_text(site(content))
        (self.folder / "log4j.properties").write_text(
            "log4j.rootLogger=WARN,console\nlog4j.appender.console=org.apache.log4j.ConsoleAppender\n"
            "log4j.appender.console.layout=org.apache.log4j.SimpleLayout\n"
        )
        command = [
            *(str(HIVE_4_1.java()), "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
            *("--add-opens=java.base/java.lang=ALL-UNNAMED", f"-Dkms.config.dir={self.folder}"),
            *(f"-Dkms.log.dir={self.folder}", f"-Dlog4j.configuration=file:{self.folder / 'log4j.properties'}"),
            *(() if self._kdc is None else self._kdc.java_options),
            *("-cp", os.pathsep.join((str(self.folder), str(jars / "*")))),
            "org.apache.hadoop.crypto.key.kms.server.KMSWebServer",
        ]
        self.start(command, lambda: answers("127.0.0.1", self.port), _START_SECONDS)
        return self
