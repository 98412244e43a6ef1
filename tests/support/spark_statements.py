"""A driver in a process of its own, which runs statements side by side to their end, or until it is killed.

Run as a module with a JSON object of settings: the metastore's `uri` and `warehouse`, further settings of Spark
(`conf`), and a statement that comes `first`. It writes `ready` after the first. A JSON list of statements in a line of
its input starts a thread for each of them; when they have all ended, it writes a JSON list of their errors.

In SQL, `flaky(x)` is x, but fails in the first attempt of a task. A statement `stream SOURCE TABLE CHECKPOINT
EXPRESSION` streams an expression of the ids in Parquet files, and the ids.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SLOWLY = "({0} + 0 * aggregate(sequence(1, {1} + cast({0} % 2 as int)), 0L, (sum, each) -> sum + each))"
"""A number, after some steps of work."""


class Driver:
    """The process, as a context manager that kills it, its JVM, its executors and its workers."""

    def __init__(self, **settings: Any) -> None:
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed with the process
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "tests.support.spark_statements", json.dumps(settings)],
            cwd=Path(__file__).parents[2],
            env={**os.environ, "PYSPARK_PYTHON": sys.executable},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        self._said: queue.Queue[str] = queue.Queue()
        self._listener = threading.Thread(target=self._listen)
        self._listener.start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._said.put(line)

    def wait(self, seconds: float = 480) -> str:
        """The next line that it says: the first when the session knows what the metastore can do."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            with suppress(queue.Empty):
                return self._said.get(timeout=0.1)
            self.check()
        raise AssertionError(f"It said nothing for {seconds} seconds")

    def begin(self, statements: Sequence[str]) -> None:
        """Lets statements begin."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(statements) + "\n")
        self._process.stdin.flush()

    def check(self) -> None:
        """Raises AssertionError where it runs no more, or has said what nobody waited for: statements have ended."""
        assert self._said.empty(), self._said.get()
        if self._process.poll() is not None:
            self._log.seek(0)
            raise AssertionError(self._log.read()[-3000:])

    def executors(self) -> list[int]:
        """The ids of the processes of its executors."""
        return [pid for pid, words in self._processes().items() if "CoarseGrainedExecutorBackend" in words]

    def _processes(self) -> dict[int, str]:
        told = subprocess.run(["ps", "-ww", "-eo", "pid=,ppid=,args="], capture_output=True, text=True, check=True)
        listed = [line.split(maxsplit=2) for line in told.stdout.splitlines()]
        found = {self._process.pid: "driver"}
        for _ in range(6):  # generations
            found |= {int(pid): words[0] for pid, parent, *words in listed if int(parent) in found}
        return found

    def __enter__(self) -> Driver:
        return self

    def __exit__(self, *failure: object) -> None:
        self.kill()
        self._log.close()

    def kill(self) -> None:
        """Kills them all; where they are killed already, nothing."""
        for pid in self._processes():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait()
        self._listener.join()
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError, AttributeError):
                pipe.close()  # type: ignore[union-attr]


@dataclass(frozen=True)
class Metastore:
    """What a session has to know of one that runs elsewhere."""

    uri: str
    warehouse: str


def _flaky(value: int) -> int:
    from pyspark import TaskContext

    task = TaskContext.get()
    if task is not None and task.attemptNumber() == 0 and value % 500 == 499:
        raise ValueError("the first attempt fails")
    return value


def _run(spark: SparkSession, statement: str, errors: list[str]) -> None:
    try:
        if statement.startswith("stream "):
            _, source, target, checkpoint, expression = statement.split(maxsplit=4)
            frame = spark.readStream.schema("id bigint").parquet(source).selectExpr(f"{expression} as id", "id as v")
            write = frame.writeStream.trigger(availableNow=True).option("checkpointLocation", checkpoint)
            write.toTable(target).awaitTermination()
        else:
            spark.sql(statement)
    except Exception as error:
        errors.append(f"{statement}: {error}")


def _report(threads: Sequence[threading.Thread], errors: list[str]) -> None:
    for thread in threads:
        thread.join()
    sys.stdout.write(json.dumps(errors) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Runs statements as the settings have it."""
    from tests.support.spark_session import extended_session

    settings = json.loads(sys.argv[1])
    metastore: Any = Metastore(settings["uri"], settings["warehouse"])
    spark = extended_session(metastore, **settings["conf"])
    spark.udf.register("flaky", _flaky, "bigint")
    spark.sql(settings["first"])
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    for line in sys.stdin:
        errors: list[str] = []
        threads = [threading.Thread(target=_run, args=(spark, each, errors)) for each in json.loads(line)]
        for thread in threads:
            thread.start()
        threading.Thread(target=_report, args=(threads, errors)).start()


if __name__ == "__main__":
    main()
