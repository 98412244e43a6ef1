"""A driver in a process of its own, which runs statements side by side until it is killed.

Run as a module with a JSON object of settings: the metastore's `uri` and `warehouse`, a statement that comes `first`,
and the `statements`, each of which gets a thread when a line arrives. It writes `ready` after the first.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any


class Driver:
    """The process, as a context manager that kills it, its JVM and its workers."""

    def __init__(self, **settings: Any) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "tests.support.spark_statements", json.dumps(settings)],
            cwd=Path(__file__).parents[2],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def wait(self) -> None:
        """Until the session has made its first commit, and knows what the metastore can do."""
        assert self._process.stdout is not None
        said = self._process.stdout.readline()
        assert said == "ready\n", self._process.communicate()[1][-3000:]

    def begin(self) -> None:
        """Lets the statements begin."""
        assert self._process.stdin is not None
        self._process.stdin.write("begin\n")
        self._process.stdin.flush()

    def check(self) -> None:
        """Raises AssertionError where it runs no more."""
        assert self._process.poll() is None, self._process.communicate()[1][-3000:]

    def _processes(self) -> set[int]:
        listed = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
        parents = [(int(pid), int(parent)) for pid, parent in map(str.split, listed.splitlines())]
        found = {self._process.pid}
        for _ in range(6):  # generations
            found |= {pid for pid, parent in parents if parent in found}
        return found

    def __enter__(self) -> Driver:
        return self

    def __exit__(self, *failure: object) -> None:
        for pid in self._processes():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.communicate()


@dataclass(frozen=True)
class _Metastore:
    uri: str
    warehouse: str


def main() -> None:
    """Runs the statements of the settings."""
    from tests.support.spark_session import extended_session

    settings = json.loads(sys.argv[1])
    metastore: Any = _Metastore(settings["uri"], settings["warehouse"])
    spark = extended_session(metastore, **{"spark.master": "local[32]"})
    spark.sql(settings["first"])
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    threads = [threading.Thread(target=spark.sql, args=(statement,)) for statement in settings["statements"]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
