"""The peers: Apache Iceberg's Spark runtime and PyIceberg, on the metastore of the test run."""

from __future__ import annotations

import base64
import hashlib
import inspect
import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.hdfs_path import pyiceberg_files
from tests.support.java_keys import keys_jar
from tests.support.pyspark_home import CACHE, pyspark_home, spark_release

RUNTIME_VERSION = "1.12.0"
if spark_release() < (4, 0):
    PYSPARK = "3.5.9"
    RUNTIME = "iceberg-spark-runtime-3.5_2.12"
    RUNTIME_SHA256 = "8dd8c90e54ed1a20f2461309d047a255ee56382eb7c0a46162b27a4936fd86dc"
else:  # Spark 4.1 is the newest version that Apache Iceberg publishes a runtime for.
    PYSPARK = "4.1.4"
    RUNTIME = "iceberg-spark-runtime-4.1_2.13"
    RUNTIME_SHA256 = "3123c3798af642dd537230923548e013ef41cc28b6626e5225808cf5670a0f82"


class JavaIceberg:
    """A running Apache Iceberg (Java) on Spark.

    Its catalog ``ice`` is the metastore of the test run, its catalog ``files`` the folder ``self.files``. Its catalog
    ``keyed`` is that metastore too, with the keys of encrypted tables in ``self.keys``: ``k16``, ``k24`` and ``k32``.
    """

    def __init__(self, process: subprocess.Popen[str], files: Path, keys: Path):
        self._process = process
        self.files = files
        self.keys = keys

    def sql(self, statement: str) -> list[list[Any]]:
        """The rows of a statement, each a list of JSON values; an AssertionError carries Java's message."""
        return self._answer(sql=statement)["rows"]

    def schema(self, statement: str) -> dict[str, Any]:
        """The schema of a query's rows, in Spark's JSON."""
        return self._answer(sql=statement)["schema"]

    def ask(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """What a function gives over there for Java's session and JSON values, as such; it imports what it needs."""
        source = textwrap.dedent(inspect.getsource(function))
        return self._answer(source=source, name=function.__name__, arguments=arguments)["result"]

    def _answer(self, **request: Any) -> dict[str, Any]:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        assert "error" not in answer, f"{request}\n{answer['error']}"
        return answer


def _runtime_jar() -> Path:
    """The runtime, fetched with Maven once; OSError where it cannot be had."""
    jar = CACHE / f"{RUNTIME}-{RUNTIME_VERSION}.jar"
    if not jar.exists():
        folder = CACHE / f"maven-{os.getpid()}"
        artifact = f"org.apache.iceberg:{RUNTIME}:{RUNTIME_VERSION}"
        command = ["mvn", "--batch-mode", "--quiet", "dependency:copy", f"-Dartifact={artifact}"]
        subprocess.run([*command, f"-DoutputDirectory={folder}"], check=True, capture_output=True, timeout=900)
        if hashlib.sha256((folder / jar.name).read_bytes()).hexdigest() != RUNTIME_SHA256:
            raise OSError(f"{jar.name} arrived damaged")
        (folder / jar.name).rename(jar)
        folder.rmdir()
    return jar


@pytest.fixture(scope="session")
def java_runtime() -> tuple[Path, Path]:
    """The jar of Apache Iceberg's Spark runtime, and its PySpark; skips where they cannot be downloaded."""
    try:
        return _runtime_jar(), pyspark_home(PYSPARK)
    except (OSError, subprocess.SubprocessError) as error:
        pytest.skip(f"the Apache Iceberg Spark runtime cannot be had here: {error}")


@pytest.fixture(scope="session")
def iceberg_java(
    metastore: Any, java_runtime: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[JavaIceberg]:
    """Apache Iceberg's Spark runtime on the metastore of the run."""
    jar, home = java_runtime
    environment = {
        **{name: value for name, value in os.environ.items() if name != "SPARK_CONF_DIR"},
        "PYTHONPATH": str(home),
        "SPARK_HOME": str(home / "pyspark"),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "TZ": "UTC",
    }
    folder = tmp_path_factory.mktemp("java_peer")
    keys = folder / "keys.json"
    keys.write_text(json.dumps({f"k{size}": base64.b64encode(bytes(range(size))).decode() for size in (16, 24, 32)}))
    keys.chmod(0o600)
    script = Path(__file__).parent.parent / "support" / "java_peer.py"
    with open(folder / "stderr.log", "w") as log:
        process = subprocess.Popen(
            [
                *(sys.executable, str(script), f"{jar},{keys_jar(jar, folder)}", metastore.uri),
                *(str(metastore.warehouse), str(folder / "files"), str(keys)),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=environment,
            cwd=folder,
        )
        try:
            assert process.stdout is not None
            ready = process.stdout.readline()
            assert ready, f"Apache Iceberg's Spark did not start: {(folder / 'stderr.log').read_text()[-2000:]}"
            yield JavaIceberg(process, folder / "files", keys)
        finally:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    stream.close()


@pytest.fixture(scope="session")
def pyiceberg_catalog(metastore: Any) -> Any:
    """PyIceberg's catalog on the metastore of the run."""
    module = pytest.importorskip("pyiceberg.catalog", reason="PyIceberg is not installed")
    properties = {"uri": metastore.uri, "warehouse": str(metastore.warehouse)}
    properties |= pyiceberg_files(properties["warehouse"])
    # Hive 2 knows no `timestamp with local time zone`.
    return module.load_catalog("interop", type="hive", **properties, **{"hive.hive2-compatible": "true"})
