"""Hadoop's server of keys for encryption zones, in a process of its own on loopback."""

from __future__ import annotations

import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

from hms_iceberg.errors import JavaNotFoundError
from hms_iceberg.hms.embedded.jars import find_java
from tests.support.hdfs_cluster.cluster import site
from tests.support.maven import Artifact, UnavailableError, fetched

_RELEASE = "3.4.1"  # the last in Maven Central
_HADOOP = "org.apache.hadoop"
_SECONDS = 60.0


class Kms:
    """A running server, as a context manager.

    Args:
        folder: an empty folder for its keys, settings and log.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port: int = free.getsockname()[1]

    @property
    def uri(self) -> str:
        """What `hadoop.security.key.provider.path` is then."""
        return f"kms://http@127.0.0.1:{self._port}/kms"

    def __enter__(self) -> Kms:
        """Starts it and waits until it answers.

        Raises:
            UnavailableError: there is no Java, or its jars cannot be had.
        """
        try:
            java = find_java()
        except JavaNotFoundError as error:
            raise UnavailableError(str(error)) from error
        parts = (Artifact(_HADOOP, name, _RELEASE) for name in ("hadoop-kms", "hadoop-common"))
        jars = fetched(f"kms-{_RELEASE}", tuple(parts))
        settings = {
            "hadoop.kms.http.host": "127.0.0.1",
            "hadoop.kms.http.port": str(self._port),
            "hadoop.kms.key.provider.uri": f"jceks://file@{self._folder / 'kms.keystore'}",
        }
        (self._folder / "kms-site.xml").write_text(site(settings))
        for name in ("core-site.xml", "kms-acls.xml"):  # it wants them
            (self._folder / name).write_text(site({}))
        (self._folder / "kms-log4j.properties").write_text("log4j.rootLogger=WARN\n")
        command = [
            *(str(java), "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
            *(f"-Dkms.{each}.dir={self._folder}" for each in ("config", "log", "temp")),
            *("-Dlog4j.configuration=kms-log4j.properties", "-cp", os.pathsep.join([str(self._folder), f"{jars}/*"])),
            "org.apache.hadoop.crypto.key.kms.server.KMSWebServer",
        ]
        with open(self._folder / "log", "wb") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, cwd=self._folder)
        deadline = time.monotonic() + _SECONDS
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.__exit__()
                raise AssertionError(f"KMS did not start: {(self._folder / 'log').read_text()[-3000:]}")
            time.sleep(0.2)
        return self

    def __exit__(self, *_: object) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()

    def _answers(self) -> bool:
        names = f"http://127.0.0.1:{self._port}/kms/v1/keys/names?user.name=tests"
        try:
            with urllib.request.urlopen(names, timeout=10):
                return True
        except urllib.error.HTTPError:
            return True
        except OSError:
            return False
