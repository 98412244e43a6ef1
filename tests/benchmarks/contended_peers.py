"""Many processes of PyIceberg and of Apache Iceberg's Java API append to one table, beside ours; failures are counted.

    python -m tests.benchmarks.contended_peers [--peer java] [--peer pyiceberg] [--shape 4x15] [--mode lock]

Default table properties, one metastore, every process with a connection and a table of its own that it has committed
to before. A writer begins no commit any more when the limit is over. See `commits.py` for ours.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from click import echo

from hms_iceberg.catalog import load_catalog
from hms_iceberg.hms.embedded import EmbeddedMetastore
from tests.benchmarks.commits import MODES, ROOT, SCHEMA, Java, Ours, rows


class PyIceberg:
    """A process of PyIceberg."""

    def __init__(self, uri: str, warehouse: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.benchmarks.contended_peers", "--writer", uri, warehouse],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )

    def ask(self, **request: Any) -> dict[str, Any]:
        """The answer to one request."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return dict(json.loads(self._process.stdout.readline()))

    def close(self) -> None:
        """Ends it."""
        self._process.communicate(timeout=30)


def pyiceberg_writer(uri: str, warehouse: str) -> None:
    """Serves requests until the input ends."""
    from pyiceberg.catalog import load_catalog as load_peer

    catalog = load_peer("peer", type="hive", uri=uri, warehouse=warehouse, **{"hive.hive2-compatible": "true"})
    for line in sys.stdin:
        request = json.loads(line)
        made = failed = 0
        table, deadline = catalog.load_table(request["table"]), time.monotonic() + request["limit"]
        for number in range(request["commits"]):
            if time.monotonic() > deadline:
                break
            try:
                table.append(rows(number))
                made += 1
            except Exception:
                failed += 1
                with suppress(Exception):
                    table = table.refresh()
        echo(json.dumps({"made": made, "failed": failed}))


def run(writers: list[Callable[[], dict[str, Any]]]) -> tuple[float, int, int]:
    """Seconds, and commits that were made and that failed."""
    answers: list[dict[str, Any]] = []
    barrier = threading.Barrier(len(writers) + 1)

    def work(writer: Callable[[], dict[str, Any]]) -> None:
        barrier.wait()
        answers.append(writer())

    threads = [threading.Thread(target=work, args=(writer,)) for writer in writers]
    for thread in threads:
        thread.start()
    barrier.wait()
    began = time.perf_counter()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - began
    return seconds, sum(answer["made"] for answer in answers), sum(answer["failed"] for answer in answers)


def contended(
    server: EmbeddedMetastore, peer: str, mode: str, count: int, commits: int, limit: float, log: Path
) -> None:
    """Prints how `count` processes of a peer fared."""
    with load_catalog("ours", uri=server.uri, warehouse=server.warehouse) as catalog:
        name = f"bench.{peer}_{mode[:4]}_{count}"
        properties = {"engine.hive.lock-enabled": MODES[mode]}
        table = catalog.create_table(name, SCHEMA, properties=properties)
        file = Ours(catalog, f"{mode[:4]}_of_{peer}_{count}", properties).file
        details = {"file": file.file_path, "size": file.file_size_in_bytes, "rows": file.record_count}
        processes: list[Any] = []
        writers: list[Callable[[], dict[str, Any]]] = []
        for number in range(count):
            own = f"{name}_own_{number}"
            catalog.create_table(own, SCHEMA, properties=properties)
            if peer == "java":
                process: Any = Java(server.uri, str(server.warehouse), log)
                more = details
            else:
                process, more = PyIceberg(server.uri, str(server.warehouse)), {}
            processes.append(process)
            process.ask(table=own, commits=1, limit=limit, **more)
            ask = process.answer if peer == "java" else process.ask
            writers.append(lambda ask=ask, more=more: ask(table=name, commits=commits, limit=limit, **more))  # type: ignore[misc]
        seconds, made, failed = run(writers)
        for process in processes:
            process.close()
        there = len(table.refresh().snapshots())
    echo(
        f"{peer:9} {mode:16} {count} x {commits}: {made} of {count * commits} made, {failed} failed in "
        f"{seconds:.1f} s; {there} snapshots are there"
    )


def main() -> None:
    """Prints the table."""
    if sys.argv[1:2] == ["--writer"]:
        pyiceberg_writer(*sys.argv[2:])
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", choices=["java", "pyiceberg"], action="append")
    parser.add_argument("--mode", choices=MODES, action="append")
    parser.add_argument("--shape", action="append", help="such as 4x15")
    parser.add_argument("--limit", type=float, default=90.0, help="seconds")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, EmbeddedMetastore(Path(folder) / "metastore") as server:
        with load_catalog("ours", uri=server.uri, warehouse=server.warehouse) as catalog:
            catalog.create_namespace("bench")
        for peer in arguments.peer or ["java", "pyiceberg"]:
            for mode in arguments.mode or MODES:
                if peer == "pyiceberg" and mode != "lock":
                    continue  # it has no other
                for shape in arguments.shape or ["4x15", "8x10"]:
                    count, _, commits = shape.partition("x")
                    log = Path(folder) / "java.log"
                    contended(server, peer, mode, int(count), int(commits), arguments.limit, log)


if __name__ == "__main__":
    main()
