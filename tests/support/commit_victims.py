"""Writers that die at a chosen point of a commit, each forked from a process that has Python and its libraries loaded.

Points are: before a request is sent, after it was sent, after its answer came, after a file was published or deleted.
Run as a module it reads jobs, one JSON object a line, and answers with the point that a writer died at, or with an
empty line where it came to its end before.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any


class Victims:
    """The process that forks writers, as a context manager."""

    def __init__(self) -> None:
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tests.support.commit_victims"],
            cwd=Path(__file__).parents[2],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, uri: str, properties: dict[str, str], operation: str, table: str, point: int | str) -> str | None:
        """Runs an operation until its point of this number, from 0, or of this name.

        Returns the point's name: `before`, `sent` or `answered` with the call, `published` or `deleted` with the kind
        of file; None where the operation came to its end.
        """
        assert self._server.stdin is not None and self._server.stdout is not None
        job = {"uri": uri, "properties": properties, "operation": operation, "table": table, "point": point}
        self._server.stdin.write(json.dumps(job) + "\n")
        self._server.stdin.flush()
        return self._server.stdout.readline().strip() or None

    def __enter__(self) -> Victims:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.communicate(timeout=60)


class Points:
    """Counts the points that a process passes, and kills it at one of them."""

    def __init__(self, deadly: int | str, report: int) -> None:
        self._left = deadly if isinstance(deadly, int) else sys.maxsize
        self._deadly = deadly
        self._report = report

    def pass_by(self, name: str) -> None:
        """Counts one."""
        self._left -= 1
        if self._left < 0 or name == self._deadly:
            os.write(self._report, name.encode())
            os.kill(os.getpid(), signal.SIGKILL)

    def install(self) -> None:
        """Puts the points where they belong."""
        from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage, LocalOutput, RemoteOutput, RenamedOutput
        from hms_iceberg.hms.connection.connection import Connection

        def around(owner: Any, name: str, before: str, after: str) -> None:
            real = getattr(owner, name)

            def call(this: Any, *arguments: Any) -> Any:
                what = str(arguments[0]).rpartition(".")[2] if arguments else ""
                if before:
                    self.pass_by(f"{before} {what}")
                result = real(this, *arguments)
                self.pass_by(f"{after} {what}")
                return result

            setattr(owner, name, call)

        around(Connection, "send", "before", "sent")
        around(Connection, "receive", "", "answered")
        around(LocalOutput, "_publish", "", "published")
        around(RemoteOutput, "_publish", "", "closed")  # on HDFS before it is renamed
        around(RenamedOutput, "_publish", "", "published")
        around(ArrowStorage, "delete", "", "deleted")


def run(job: dict[str, Any], report: int) -> None:
    """One operation, to its end or its death."""
    from hms_iceberg.catalog import load_catalog
    from tests.support.commit_operations import OPERATIONS, find_out_capability

    with load_catalog("victim", uri=job["uri"], **job["properties"]) as catalog:
        find_out_capability(catalog)
        Points(job["point"], report).install()
        OPERATIONS[job["operation"]].make(catalog, job["table"])


def main() -> None:
    """Serves jobs until the input ends."""
    import tests.support.commit_operations  # noqa: F401

    for line in sys.stdin:
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                run(json.loads(line), writing)
            except BaseException as error:
                os.write(writing, f"error {type(error).__name__}: {error}".replace("\n", " ").encode())
            os._exit(0)
        os.close(writing)
        os.waitpid(pid, 0)
        with os.fdopen(reading) as said:
            sys.stdout.write(said.read() + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
