"""Whether the holder of a lock is dead is said only where it is certain."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest

from hms_iceberg.hms.locking.dead_holders import is_dead, process_mark, system_mark

pytestmark = pytest.mark.skipif(system_mark() is None, reason="needs /proc")


def agent(pid: int) -> str:
    """The agent of another process of this system."""
    return "Iceberg-x/hms_iceberg/" + process_mark().replace(f"pid={os.getpid()}", f"pid={pid}")


def test_a_process_that_was_reaped_is_dead() -> None:
    process = subprocess.Popen([sys.executable, "-c", "pass"])
    process.wait()
    assert is_dead(socket.gethostname(), agent(process.pid))


def test_a_killed_process_that_nobody_reaped_yet_is_dead() -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    holder = agent(process.pid)
    assert not is_dead(socket.gethostname(), holder)
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert is_dead(socket.gethostname(), holder)
    process.communicate()


@pytest.mark.parametrize(
    ("hostname", "holder"),
    [
        (socket.gethostname(), "Iceberg-x/hms_iceberg/" + process_mark()),
        ("another-host", agent(2**22 + 1)),
        (socket.gethostname(), "Iceberg-x/hms_iceberg/at=000000000000/pid=4194305"),
        (socket.gethostname(), "Iceberg-x/hms_iceberg/pid=4194305"),
        (socket.gethostname(), "Iceberg-0a1b"),
        (None, None),
    ],
    ids=["alive", "another host", "another system", "no system", "another writer", "unknown"],
)
def test_a_holder_that_may_live_is_not_dead(hostname: str | None, holder: str | None) -> None:
    assert not is_dead(hostname, holder)
