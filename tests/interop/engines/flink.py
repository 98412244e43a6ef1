"""Flink in a process of its own on a metastore; its Hive and Hadoop are the jars of PySpark."""

from __future__ import annotations

import base64
import json
import os
import subprocess
from pathlib import Path
from typing import Any

from hms_iceberg.hms.embedded.jars import find_java, find_metastore_jars
from tests.interop.engines.engines import end
from tests.support.maven import Artifact, fetched

VERSION = "2.1.0"
ICEBERG = "1.11.0"
_LAUNCHER = Path(__file__).with_name("FlinkLauncher.java")
_NAMES = (
    "flink-table-planner-loader",
    "flink-table-runtime",
    "flink-table-api-java-bridge",
    "flink-clients",
    "flink-connector-files",
)


def jars() -> Path:
    """The folder of its jars, filled at the first call on a machine.

    Raises:
        UnavailableError: no Maven, or it could not fetch them.
    """
    runtime = Artifact("org.apache.iceberg", "iceberg-flink-runtime-2.1", ICEBERG)
    flink = (Artifact("org.apache.flink", name, VERSION) for name in _NAMES)
    return fetched(f"flink-{VERSION}", (*flink, runtime))


class Flink:
    """Flink with the catalog `ice` on a metastore, as a context manager.

    Args:
        uri: of the metastore.
        warehouse: URI of its warehouse.
        folder: an empty folder for its log.
    """

    def __init__(self, uri: str, warehouse: str, folder: Path) -> None:
        self._arguments = (uri, warehouse)
        self._folder = folder
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Flink:
        """Starts it.

        Raises:
            UnavailableError: it cannot be had here.
        """
        path = os.pathsep.join(map(str, [*sorted(jars().glob("*.jar")), *find_metastore_jars()]))
        opened = [f"--add-opens=java.base/java.{each}=ALL-UNNAMED" for each in ("lang", "util", "net", "nio", "time")]
        command = [
            *(str(find_java()), "-Xmx768m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Duser.timezone=UTC"),
            *(*opened, "-cp", path, "org.codehaus.janino.SimpleCompiler", str(_LAUNCHER), "FlinkLauncher"),
            *self._arguments,
        ]
        with open(self._folder / "log", "wb") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, cwd=self._folder
            )
        assert self._process.stdout is not None
        if not self._process.stdout.readline():
            self.__exit__()
            raise AssertionError(f"Flink did not start: {(self._folder / 'log').read_text()[-3000:]}")
        return self

    def __exit__(self, *_: object) -> None:
        process, self._process = self._process, None
        end(process)

    def sql(self, statement: str, mode: str = "batch") -> list[list[Any]]:
        """The rows of a statement in the form of `tests.support.peer_rows`; an AssertionError carries what it says."""
        assert self._process is not None and self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(f"{mode} {base64.b64encode(statement.encode()).decode()}\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        assert "error" not in answer, f"{statement}\n{answer['error']}"
        return list(answer["rows"])
