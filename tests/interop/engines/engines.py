"""Engines as processes, each with packages of its own: they exclude each other's, and this project's."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.maven import CACHE, UnavailableError

_ROOT = Path(__file__).parents[3]
_SECONDS = 300


@dataclass(frozen=True)
class PythonEngine:
    """An engine that comes with pip.

    Attributes:
        title: its name in the matrix.
        module: its worker.
        packages: what pip is asked for; nothing where this project's own environment has it.
    """

    title: str
    module: str
    packages: tuple[str, ...] = ()

    def folder(self) -> Path | None:
        """Where its packages are, installed at the first call on a machine.

        Raises:
            UnavailableError: they cannot be had.
        """
        if not self.packages:
            return None
        python = f"py{sys.version_info[0]}{sys.version_info[1]}"
        folder = CACHE / "-".join([self.module, self.packages[0].partition("==")[2], python])
        if not folder.exists():
            work = CACHE / f"{folder.name}.{os.getpid()}.part"
            command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(work), *self.packages]
            try:
                subprocess.run(command, check=True, capture_output=True, text=True, timeout=900)
            except (OSError, subprocess.SubprocessError) as error:
                shutil.rmtree(work, ignore_errors=True)
                raise UnavailableError(f"{self.title} cannot be installed: {error}") from error
            try:
                work.rename(folder)
            except OSError:  # another process was first
                shutil.rmtree(work)
        return folder


ICEBERG_EXTENSION = ("duckdb==1.5.5", "duckdb-extensions==1.5.5", "duckdb-extension-iceberg==1.5.5")
PYTHON_ENGINES = (
    PythonEngine("DuckDB", "duckdb", (*ICEBERG_EXTENSION, "duckdb-extension-avro==1.5.5", "pyarrow==26.0.1")),
    PythonEngine("Polars", "polars"),
    PythonEngine("PyIceberg", "pyiceberg"),
    # It wants an older pyarrow than this project is tested with.
    PythonEngine("Daft", "daft", ("daft==0.7.26", "pyiceberg==0.12.0")),
    PythonEngine("ClickHouse", "clickhouse", ("chdb-core==26.9.0",)),
)


def end(process: subprocess.Popen[str] | None) -> None:
    """Kills an engine's process, if it runs, and closes its pipes."""
    if process is not None:
        assert process.stdin is not None and process.stdout is not None
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


class Worker:
    """A running engine, as a context manager."""

    def __init__(self, engine: PythonEngine) -> None:
        self._engine = engine
        self._folder = engine.folder()
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        process, self._process = self._process, None
        end(process)

    def ask(self, question: Mapping[str, str]) -> dict[str, Any]:
        """What it answers: `columns` and `rows`, or `error`, also where it dies or never ends."""
        process = self._process or self._started()
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps(question) + "\n")
        process.stdin.flush()
        ready, _, _ = select.select([process.stdout], [], [], _SECONDS)
        line = process.stdout.readline() if ready else ""
        if line:
            return dict(json.loads(line))
        self.__exit__()
        return {"error": "its process died" if ready else f"no answer in {_SECONDS} s"}

    def _started(self) -> subprocess.Popen[str]:
        path = [str(self._folder)] if self._folder else []
        self._process = subprocess.Popen(
            [sys.executable, "-m", f"tests.interop.engines.workers.{self._engine.module}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=_ROOT,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path), "TZ": "UTC", "POLARS_MAX_THREADS": "2"},
        )
        return self._process
