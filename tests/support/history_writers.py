"""Writers of a history, each a process forked from one that has Python and its libraries loaded.

Run as a module it reads jobs, one JSON object a line, forks a writer for each, and answers with its process id; the
line ``wait`` ends when all of them have ended. A writer makes random changes from a common start on, and notes in a
file when each began and how it was reported, in seconds of the clock that all processes of a machine share.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

KINDS = {"append": 6, "delete": 3, "update": 2, "overwrite": 2, "schema": 1, "property": 1}


@dataclass(frozen=True)
class Job:
    """What one writer does.

    Attributes:
        uri: the metastore, or the proxy before it.
        properties: further properties of its catalog.
        table: name of the table.
        writer: its number.
        writers: how many there are.
        seed: of its choices.
        changes: how many it makes.
        start: when it begins (`time.monotonic`).
        notes: the file of its notes.
        kinds: the kinds of its changes.
    """

    uri: str
    properties: dict[str, str]
    table: str
    writer: int
    writers: int
    seed: int
    changes: int
    start: float
    notes: str
    kinds: tuple[str, ...] = tuple(KINDS)


class Writers:
    """The process that forks writers, as a context manager."""

    def __init__(self) -> None:
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tests.support.history_writers"],
            cwd=Path(__file__).parents[2],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def start(self, job: Job) -> int:
        """Starts a writer, and returns its process id."""
        return int(self._ask(json.dumps(asdict(job))))

    def wait(self) -> None:
        """Returns when every writer has ended."""
        self._ask("wait")

    def _ask(self, line: str) -> str:
        assert self._server.stdin is not None and self._server.stdout is not None
        self._server.stdin.write(f"{line}\n")
        self._server.stdin.flush()
        return self._server.stdout.readline()

    def __enter__(self) -> Writers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.communicate(timeout=300)


def notes_of(path: str | Path) -> list[dict[str, Any]]:
    """What a writer noted; a killed one may have left half a line at the end."""
    text = Path(path).read_text() if Path(path).exists() else ""
    return [json.loads(line) for line in text.splitlines() if line.endswith("}")]


# ---------------------------------------------------------------------------------------------- the writer


def write(job: Job) -> None:
    """Makes the changes of one writer."""
    from hms_iceberg.catalog import load_catalog
    from hms_iceberg.hms.connection import answers

    answers._LOOKS = (0.0, 0.05, 0.2)
    answers._LATE_SECONDS = 2.0
    choose = random.Random(job.seed)
    with Path(job.notes).open("w") as notes, load_catalog("w", uri=job.uri, **job.properties) as catalog:
        table = catalog.load_table(job.table)
        time.sleep(max(0.0, job.start - time.monotonic()))
        for number in range(job.changes):
            kind = choose.choices(job.kinds, [KINDS[kind] for kind in job.kinds])[0]
            _change(table, kind, job, number, choose, notes)


def _change(table: Any, kind: str, job: Job, number: int, choose: random.Random, notes: TextIO) -> None:
    from hms_iceberg.errors import CommitStateUnknownError, IcebergError

    target = choose.randrange(job.writers)
    change = {"kind": kind, "writer": job.writer, "number": number, "target": target}

    def note(event: str, detail: str = "") -> None:
        notes.write(json.dumps({**change, "event": event, "at": time.monotonic(), "detail": detail}) + "\n")
        notes.flush()

    note("begun")
    try:
        _make(table, kind, job.writer, number, target)
    except CommitStateUnknownError as error:
        note("unknown", str(error))
    except IcebergError as error:
        note("failed", f"{type(error).__name__}: {error}")
    except BaseException as error:
        note("broken", f"{type(error).__name__}: {error}")
        raise
    else:
        note("made")


def _make(table: Any, kind: str, writer: int, number: int, target: int) -> None:
    import pyarrow as pa

    from hms_iceberg.spec.data_types import LongType

    row = pa.table({"writer": [writer], "number": [number], "value": [0]})
    mark = {"change": f"{writer}-{number}"}
    if kind in ("delete", "update", "overwrite"):
        table.refresh()  # what they rely on is not to be older than their beginning
    if kind == "append":
        table.append(row, snapshot_properties=mark)
    elif kind == "delete":
        table.delete(f"writer = {target}", snapshot_properties=mark)
    elif kind == "update":
        table.update({"value": number}, f"writer = {target}", snapshot_properties=mark)
    elif kind == "overwrite":
        table.overwrite(row, f"writer = {target}", snapshot_properties=mark)
    elif kind == "schema":
        with table.update_schema() as update:
            update.add_column(f"extra_{writer}_{number}", LongType())
    else:
        table.set_properties({f"extra.{writer}.{number}": "set"})


def main() -> None:
    """Forks writers until the input ends."""
    import pyarrow.dataset  # noqa: F401

    import hms_iceberg.catalog
    import hms_iceberg.hms.hive_metastore
    import hms_iceberg.table.changes.row_change  # noqa: F401

    running: list[int] = []
    for line in sys.stdin:
        if line == "wait\n":
            while running:
                os.waitpid(running.pop(), 0)
            sys.stdout.write("0\n")
        else:
            pid = os.fork()
            if pid == 0:
                try:
                    write(Job(**json.loads(line)))
                except BaseException as error:
                    sys.stderr.write(f"{type(error).__name__}: {error}\n")
                    os._exit(1)
                os._exit(0)
            running.append(pid)
            sys.stdout.write(f"{pid}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
