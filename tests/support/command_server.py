"""Commands on the metastore of the tests: servers that listen until they are ended, and clients that end."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.ports import free_port

if TYPE_CHECKING:
    from hms_iceberg.catalog import Catalog
    from hms_iceberg.hms.embedded import EmbeddedMetastore

SMALL = ("--master", "local[2]", "--conf", "spark.driver.memory=1g", "--conf", "spark.sql.shuffle.partitions=2")
SMALL += ("--conf", "spark.sql.codegen.wholeStage=false", "--conf", "spark.sql.codegen.factoryMode=NO_CODEGEN")


def command(metastore: EmbeddedMetastore, *words: str) -> list[str]:
    own = ("--uri", metastore.uri, "-p", f"warehouse={metastore.warehouse}", *SMALL)
    return [sys.executable, "-m", "hms_iceberg", *words, *own]


@contextmanager
def server(metastore: EmbeddedMetastore, line: list[str], tmp_path: Path) -> Iterator[int]:
    """A server that listens, and ends by SIGTERM with exit code 0."""
    port = free_port()
    with open(tmp_path / "stderr.log", "w") as log:
        words = command(metastore, *line, "--port", str(port))
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=log, text=True, cwd=os.getcwd())
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("Listening: "), (tmp_path / "stderr.log").read_text()[-3000:]
        assert f"://127.0.0.1:{port}" in line
        yield port
        process.send_signal(signal.SIGTERM)
        assert process.stdout.read() == "Stopping.\n"
        assert process.wait(timeout=60) == 0
        with socket.socket() as closed:
            assert closed.connect_ex(("127.0.0.1", port)) != 0
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def run(*command: str) -> str:
    """What a client that ends well writes."""
    ran = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert ran.returncode == 0, ran.stderr[-3000:]
    return ran.stdout


def rows(catalog: Catalog, table: str) -> list[tuple[int, str]]:
    return sorted((row["id"], row["name"]) for row in catalog.load_table(table).scan().to_arrow().to_pylist())
