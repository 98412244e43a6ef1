"""Spark processes to compare, on one metastore and taking turns: ours, and Apache Iceberg's runtime where it is had."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.support.java_keys import keys_jar

ROOT = Path(__file__).parents[2]
# Where tests/interop keeps the runtime and the PySpark that it was built for.
CACHE = Path(os.environ.get("HMS_ICEBERG_INTEROP_CACHE", Path.home() / ".cache" / "hms_iceberg" / "interop"))


def runtime() -> tuple[Path, Path]:
    """The runtime's jar, and the folder of a PySpark of the version that it is for: the cache may hold others beside.

    Raises:
        OSError: they are not in the cache, into which tests/interop fetches them.
    """
    for jar in sorted(CACHE.glob("iceberg-spark-runtime-*.jar"), reverse=True):
        spark = jar.name.removeprefix("iceberg-spark-runtime-").partition("_")[0]
        for mark in sorted(CACHE.glob(f"pyspark-{spark}.*/.complete"), reverse=True):
            return jar, mark.parent
    raise OSError(f"Apache Iceberg's runtime is not in {CACHE}: run `python -m pytest tests/interop -k java` once.")


def run_java(script: str, *arguments: str) -> str:
    """What a script of this folder prints that uses Apache Iceberg's Java API in a PySpark of its version.

    Args:
        script: its file name; its first argument is the runtime's jar.
        arguments: the others.

    Raises:
        OSError: the runtime is not in the cache.
    """
    jar, home = runtime()
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name(script)), str(jar), *arguments],
        check=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "PYTHONPATH": str(home), "SPARK_HOME": str(home / "pyspark")},
    )
    return done.stdout


class SparkProcess:
    """One side; ``kind`` is ``ours`` or ``java``. With a keystore it has a catalog ``keyed`` of encrypted tables."""

    def __init__(self, kind: str, uri: str, warehouse: str, keys: Path | None = None) -> None:
        jar, pyspark = runtime()
        jars = [str(jar)] if kind == "java" else []
        if keys is not None:
            jars = [f"{jar},{keys_jar(jar, keys.parent)}"] if kind == "java" else [""]
            jars.append(str(keys))
        paths = [str(pyspark)] if kind == "java" else [str(pyspark), str(ROOT)]
        environment = {key: value for key, value in os.environ.items() if not key.startswith("SPARK_")}
        self.kind = kind
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("spark_worker.py")), kind, uri, warehouse, *jars],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**environment, "PYTHONPATH": os.pathsep.join(paths), "TZ": "UTC"},
        )
        self.version = self._answer()["ready"]

    def ask(self, **request: Any) -> dict[str, Any]:
        """An answer of the worker; its errors end the benchmark."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = self._answer()
        if "error" in answer:
            raise SystemExit(f"{self.kind}: {request}\n{answer['error']}")
        return answer

    def processor_seconds(self) -> float:
        """What this process and those that it started, the JVM among them, have computed so far."""
        stats = {}
        for path in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = path.read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue  # it ended
            stats[int(path.parent.name)] = (int(fields[1]), sum(map(int, fields[11:15])))
        family, grown = {self._process.pid}, 0
        while grown < len(family):
            grown = len(family)
            family |= {pid for pid, (parent, _) in stats.items() if parent in family}
        return sum(stats[pid][1] for pid in family if pid in stats) / os.sysconf("SC_CLK_TCK")

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"The Spark process {self.kind} ended.")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        """Ends the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)


def compare(sides: Mapping[str, tuple[SparkProcess, str]], warm_up: int, repeat: int) -> dict[str, float]:
    """Median seconds of each side's query, in turns; ends the benchmark where their answers differ."""
    times: dict[str, list[float]] = {name: [] for name in sides}
    expected: Sequence[str] | None = None
    for _ in range(warm_up + repeat):
        for name, (process, query) in sides.items():
            answer = process.ask(sql=query)
            rows = sorted(answer["rows"])
            if expected is not None and rows != expected:
                raise SystemExit(f"{name} answers otherwise to {query}:\n{rows[:5]}\n{list(expected[:5])}")
            expected = rows
            times[name].append(answer["seconds"])
    return {name: statistics.median(seconds[warm_up:]) for name, seconds in times.items()}
