"""A process that migrates and dies when it is told to."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hms_iceberg.hms.embedded import EmbeddedMetastore
from tests.support.crash_server import DEAD, Crash

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def crash(metastore: EmbeddedMetastore) -> Iterator[Crash]:
    """Runs a command on a table in a process that dies after so many changes; returns its exit code."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(ROOT / "tests" / "support" / "crash_server.py")]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment
    ) as server:

        def run(command: str, table: str, changes: int, **more: Any) -> int:
            assert server.stdin is not None and server.stdout is not None
            job = {"uri": metastore.uri, "table": table, "command": command, "changes": changes, **more}
            server.stdin.write(json.dumps(job) + "\n")
            server.stdin.flush()
            code = int(server.stdout.readline())
            assert code in (0, DEAD)
            return code

        yield run
        assert server.stdin is not None
        server.stdin.close()
        server.wait(30)
