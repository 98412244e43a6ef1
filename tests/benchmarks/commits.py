"""Commits: how long one writer's take beside the peers', and how long many writers need for as many commits.

    python -m tests.benchmarks.commits [--one | --contended] [--apart] [--commits 30] [--no-java] [--no-pyiceberg]

One metastore of this script's own serves all; the writers take turns, so that all see it equally warm. `--one`: the
median of a commit that appends one existing file, with a lock and by compare-and-swap; Java is timed around
`AppendFiles.commit()` alone. `--contended`: processes, and threads of one process, append rows to one table, from a
barrier to the last acknowledged commit, against one writer that makes as many appends one after the other. Every
process has committed to a table of its own before.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from click import echo

from hms_iceberg.catalog import Catalog, load_catalog
from hms_iceberg.hms.embedded import EmbeddedMetastore
from hms_iceberg.spec.manifests.manifest_values import DataFile
from tests.benchmarks.spark_peers import runtime

SCHEMA = pa.schema([pa.field("id", pa.int64())])
MODES = {"lock": "true", "compare-and-swap": "false"}
ROOT = Path(__file__).parents[2]


def rows(number: int) -> pa.Table:
    """One row."""
    return pa.table({"id": [number]}, schema=SCHEMA)


# ------------------------------------------------------------------------------------------------ one writer


def timed(commits: int, commit: Callable[[], object]) -> list[float]:
    """Seconds of each of so many commits."""
    seconds = []
    for _ in range(commits):
        began = time.perf_counter()
        commit()
        seconds.append(time.perf_counter() - began)
    return seconds


class Ours:
    """Fast appends of an existing file by this package."""

    def __init__(self, catalog: Catalog, name: str, properties: dict[str, str]) -> None:
        self.table = catalog.create_table(f"bench.ours_{name.replace(' ', '_')}", SCHEMA, properties=properties)
        self.table.append(rows(0))
        (task,) = self.table.scan().plan_files()
        self.file: DataFile = task.file

    def __call__(self, commits: int) -> list[float]:
        return timed(commits, lambda: self.table.new_fast_append().append_file(self.file).commit())


class Java:
    """Fast appends of an existing file by Apache Iceberg's Java API; raises OSError where it cannot be had."""

    def __init__(self, uri: str, warehouse: str, log: Path) -> None:
        jar, home = runtime()
        environment = {**os.environ, "PYTHONPATH": str(home), "SPARK_HOME": str(home / "pyspark")}
        self.version = jar.stem.rpartition("-")[2]
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("java_commits.py")), str(jar), uri, warehouse],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log.open("w"),
            text=True,
            env=environment,
        )
        if not self._process.stdout or not self._process.stdout.readline():
            raise OSError(f"Java did not start: {log.read_text()[-2000:]}")

    def ask(self, **request: Any) -> list[float]:
        """Seconds of each commit that a request asked for, all of which are to be made."""
        answer = self.answer(**request)
        if answer["failed"]:
            raise RuntimeError(answer["failure"])
        return list(answer["seconds"])

    def answer(self, **request: Any) -> dict[str, Any]:
        """The answer to one request."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return {**answer, "made": len(answer["seconds"])}

    def writer(self, mode: str, file: DataFile) -> Callable[[int], list[float]]:
        """What makes so many appends to a table of its own."""
        name = f"bench.java_{mode[:4]}"
        self.ask(table=name, create={"engine.hive.lock-enabled": MODES[mode]})
        size, count = file.file_size_in_bytes, file.record_count
        return lambda commits: self.ask(table=name, commits=commits, file=file.file_path, size=size, rows=count)

    def close(self) -> None:
        """Ends the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=30)


def pyiceberg_writer(uri: str, warehouse: str) -> Callable[[int], list[float]]:
    """Fast appends of an existing file by PyIceberg, which always takes the lock."""
    from pyiceberg.catalog import load_catalog as load_peer
    from pyiceberg.io.pyarrow import _dataframe_to_data_files

    catalog = load_peer("peer", type="hive", uri=uri, warehouse=warehouse, **{"hive.hive2-compatible": "true"})
    table = catalog.create_table("bench.pyiceberg", schema=SCHEMA)
    (file,) = _dataframe_to_data_files(table.metadata, rows(0), table.io)

    def commit() -> None:
        with table.transaction() as transaction, transaction.update_snapshot().fast_append() as append:
            append.append_data_file(file)

    return lambda commits: timed(commits, commit)


def one_writer(server: EmbeddedMetastore, commits: int, java: bool, pyiceberg: bool, folder: Path) -> None:
    """Prints the medians."""
    with load_catalog("ours", uri=server.uri, warehouse=server.warehouse) as catalog:
        ours = {mode: Ours(catalog, mode[:4], {"engine.hive.lock-enabled": MODES[mode]}) for mode in MODES}
        writers: dict[str, Callable[[int], list[float]]] = {f"hms_iceberg, {mode}": ours[mode] for mode in MODES}
        peer = Java(server.uri, str(server.warehouse), folder / "java.log") if java else None
        if peer is not None:
            for mode in MODES:
                writers[f"Iceberg Java {peer.version}, {mode}"] = peer.writer(mode, ours[mode].file)
        if pyiceberg:
            writers["PyIceberg, lock"] = pyiceberg_writer(server.uri, str(server.warehouse))
        times: dict[str, list[float]] = {name: [] for name in writers}
        for write in writers.values():
            write(10)
        for _ in range(3):
            for name, write in writers.items():
                times[name] += write(commits // 3)
        if peer is not None:
            peer.close()
    medians = {name: statistics.median(seconds) for name, seconds in times.items()}
    for name, median in medians.items():
        mode = name.rpartition(", ")[2]
        java_median = next((medians[other] for other in medians if "Java" in other and mode in other), None)
        ratio = f"  {median / java_median:.2f}x Java's" if java_median else ""
        echo(f"{name:38} median {median * 1000:6.1f} ms, slowest {max(times[name]) * 1000:6.1f}{ratio}")


# ------------------------------------------------------------------------------------------- many writers


def writer(uri: str, warehouse: str, name: str, own: str, mode: str) -> None:
    """A process that commits to a table of its own, then waits for a count, and makes as many appends to `name`."""
    with load_catalog("writer", uri=uri, warehouse=warehouse) as catalog:
        catalog.create_table(own, SCHEMA, properties={"engine.hive.lock-enabled": MODES[mode]}).append(rows(0))
        table = catalog.load_table(name)
        echo("ready")
        commits = int(sys.stdin.readline())
        began = time.process_time()
        seconds = timed(commits, lambda: table.append(rows(0)))
        echo(json.dumps({"processor": time.process_time() - began, "slowest": max(seconds)}))
        sys.stdin.readline()


@dataclass(frozen=True)
class Many:
    """How many writers fared: seconds in all, processor seconds of both sides, and of the slowest commit."""

    seconds: float
    processor: float
    server: float
    slowest: float


def processes(server: EmbeddedMetastore, mode: str, count: int, commits: int, apart: bool = False) -> Many:
    """`count` processes make `commits` appends each; `apart`, they do not see that they are on one machine."""
    name = f"bench.many_{mode[:4]}_{count}_{commits}_{time.time_ns() % 10**6}"
    with (
        tempfile.TemporaryDirectory() as folder,
        load_catalog("ours", uri=server.uri, warehouse=server.warehouse) as catalog,
    ):
        table = catalog.create_table(name, SCHEMA, properties={"engine.hive.lock-enabled": MODES[mode]})
        module = [sys.executable, "-m", "tests.benchmarks.commits"]
        command = [*module, "--writer", server.uri, str(server.warehouse), name]
        writers = []
        for number in range(count):
            environment = dict(os.environ)
            if apart:
                environment["TMPDIR"] = f"{folder}/{number}"
                os.mkdir(environment["TMPDIR"])
            writers.append(
                subprocess.Popen(
                    [*command, f"{name}_own_{number}", mode],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                    cwd=ROOT,
                    env=environment,
                )
            )
        for each in writers:
            assert each.stdout is not None and each.stdout.readline() == "ready\n", "a writer did not start"
        server_began = server_seconds(server)
        began = time.perf_counter()
        for each in writers:
            assert each.stdin is not None
            each.stdin.write(f"{commits}\n")
            each.stdin.flush()
        told = [json.loads(each.stdout.readline()) for each in writers if each.stdout is not None]
        seconds = time.perf_counter() - began
        server_used = server_seconds(server) - server_began
        for each in writers:
            each.communicate("end\n", timeout=60)
        assert table.refresh().scan().count() == count * commits, "a commit was lost"
    slowest = max(each["slowest"] for each in told)
    return Many(seconds, sum(each["processor"] for each in told), server_used, slowest)


def server_seconds(server: EmbeddedMetastore) -> float:
    """Processor seconds of the metastore so far; 0 where the system does not tell."""
    try:
        stat = Path(f"/proc/{server.pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")


def threads(server: EmbeddedMetastore, mode: str, count: int, commits: int) -> Many:
    """The same with threads of this process."""
    name = f"bench.threads_{mode[:4]}_{count}_{time.time_ns() % 10**6}"
    with load_catalog("ours", uri=server.uri, warehouse=server.warehouse) as catalog:
        table = catalog.create_table(name, SCHEMA, properties={"engine.hive.lock-enabled": MODES[mode]})
        tables = [catalog.load_table(name) for _ in range(count)]
        barrier = threading.Barrier(count + 1)
        failures: list[BaseException] = []
        slowest = [0.0] * count

        def work(number: int) -> None:
            barrier.wait()
            try:
                slowest[number] = max(timed(commits, lambda: tables[number].append(rows(0))))
            except BaseException as error:
                failures.append(error)

        workers = [threading.Thread(target=work, args=(number,)) for number in range(count)]
        for worker in workers:
            worker.start()
        used, server_used = time.process_time(), server_seconds(server)
        barrier.wait()
        began = time.perf_counter()
        for worker in workers:
            worker.join()
        seconds = time.perf_counter() - began
        assert not failures, failures[0]
        assert table.refresh().scan().count() == count * commits, "a commit was lost"
    return Many(seconds, time.process_time() - used, server_seconds(server) - server_used, max(slowest))


def contended(server: EmbeddedMetastore, shapes: list[tuple[str, int, int]], modes: list[str], apart: bool) -> None:
    """Prints how long many writers need against one."""
    for mode in modes:
        processes(server, mode, 1, 20)  # warms the server up
        for kind, count, commits in shapes:
            one = processes(server, mode, 1, count * commits)
            if kind == "threads":
                many = threads(server, mode, count, commits)
            else:
                many = processes(server, mode, count, commits, apart)
            echo(
                f"{mode:16} {count:2} {kind:9} x {commits:2}: {many.seconds:5.2f} s ({many.processor:5.2f} s of "
                f"processor, server {many.server:5.2f}, slowest commit {many.slowest:5.2f}); one after the other "
                f"{one.seconds:5.2f} s ({one.processor:5.2f}, {one.server:5.2f}): {many.seconds / one.seconds:.2f}x"
            )


def main() -> None:
    """Prints the tables."""
    if sys.argv[1:2] == ["--writer"]:
        writer(*sys.argv[2:])
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    part = parser.add_mutually_exclusive_group()
    part.add_argument("--one", action="store_true", help="only one writer")
    part.add_argument("--contended", action="store_true", help="only many writers")
    parser.add_argument("--commits", type=int, default=30)
    parser.add_argument("--mode", choices=MODES, action="append")
    parser.add_argument("--shape", action="append", help="such as 4x15, 8x10, or 32x5t for threads")
    parser.add_argument("--apart", action="store_true", help="processes that do not see they are on one machine")
    parser.add_argument("--no-java", action="store_true")
    parser.add_argument("--no-pyiceberg", action="store_true")
    arguments = parser.parse_args()
    shapes = []
    for shape in arguments.shape or ["4x15", "8x10", "32x5t"]:
        count, _, commits = shape.rstrip("t").partition("x")
        shapes.append(("threads" if shape.endswith("t") else "processes", int(count), int(commits)))
    with tempfile.TemporaryDirectory() as folder, EmbeddedMetastore(Path(folder) / "metastore") as server:
        with load_catalog("ours", uri=server.uri, warehouse=server.warehouse) as catalog:
            catalog.create_namespace("bench")
        if not arguments.contended:
            one_writer(server, arguments.commits, not arguments.no_java, not arguments.no_pyiceberg, Path(folder))
        if not arguments.one:
            contended(server, shapes, arguments.mode or list(MODES), arguments.apart)


if __name__ == "__main__":
    main()
