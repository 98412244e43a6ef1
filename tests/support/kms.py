"""Hadoop's server of keys (KMS) on loopback, in a process of its own, which gives keys to whoever asks."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from pathlib import Path

from hms_iceberg.hms.embedded.server import answers
from tests.support.hdfs_cluster.cluster import site
from tests.support.hive_server.releases import HIVE_4_1
from tests.support.maven import Artifact, fetched

_RELEASE = "3.4.1"  # the newest that Maven has; the release of Hadoop of Hive 4.1 too
_START_SECONDS = 120.0
_CALLS = ("MANAGEMENT", "GENERATE_EEK", "DECRYPT_EEK", "READ")
_RIGHTS = {f"default.key.acl.{call}": "*" for call in _CALLS}


class Kms:
    """A running server of keys, as a context manager.

    Args:
        folder: an empty folder for its keys and its log.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port: int = free.getsockname()[1]

    @property
    def uri(self) -> str:
        """What `hadoop.security.key.provider.path` says."""
        return f"kms://http@localhost:{self._port}/kms"

    @property
    def log(self) -> str:
        """What it said."""
        return (self.folder / "log").read_text(errors="replace")

    def __enter__(self) -> Kms:
        """Starts it and waits until it listens.

        Raises:
            UnavailableError: there is no Java that runs it, or its jars cannot be had.
        """
        jars = fetched(f"kms-{_RELEASE}", (Artifact("org.apache.hadoop", "hadoop-kms", _RELEASE),))
        settings = {
            "hadoop.kms.http.host": "localhost",
            "hadoop.kms.http.port": str(self._port),
            "hadoop.kms.key.provider.uri": f"jceks://file@{self.folder / 'keys.jceks'}",
            "hadoop.kms.authentication.type": "simple",
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
            *("-cp", os.pathsep.join((str(self.folder), str(jars / "*")))),
            "org.apache.hadoop.crypto.key.kms.server.KMSWebServer",
        ]
        with open(self.folder / "log", "wb") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, cwd=self.folder)
        deadline = time.monotonic() + _START_SECONDS
        while not answers("127.0.0.1", self._port):
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.__exit__()
                raise AssertionError(f"the server of keys did not start: {self.log[-3000:]}")
            time.sleep(0.1)
        return self

    def __exit__(self, *_: object) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
