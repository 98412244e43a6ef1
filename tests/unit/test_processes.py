"""Whether a process lives is denied only where it is certain: what is taken from a living one is lost."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace

import pytest

from hms_iceberg.hms.locking.lock_info import AGENTS, is_dead
from hms_iceberg.processes import Process, exists, system_mark

pytestmark = pytest.mark.skipif(not system_mark(), reason="needs /proc")

WAITS = "import sys; sys.stdin.read()"
JUDGES = (
    "import os, sys; from hms_iceberg.processes import Process; judged = Process.find(*sys.argv[1:])\n"
    "where = 'same' if Process.this().system == judged.system else 'other'\n"
    "print(judged.may_be_alive(), where, os.path.exists(f'/proc/{judged.pid}'))"
)
# Another user of the same system, for whom `/proc` hides the processes of others.
HIDDEN = (
    'mount -t proc -o hidepid=2 proc /proc && {{ sleep 60 & }} && MARK=$({python} -c "$MARKS" $!) && exec setpriv '
    '--reuid 65534 --regid 65534 --clear-groups {python} -c "$JUDGES" "$(uname -n)" "$MARK"'
)
MARKS = (
    "import dataclasses, sys; from hms_iceberg.processes import Process, _stat; pid = int(sys.argv[1])\n"
    "print(dataclasses.replace(Process.this(), pid=pid, started=_stat(pid)[19]).mark)"
)


@pytest.fixture
def other() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", WAITS], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


def of(process: subprocess.Popen[bytes]) -> Process:
    return replace(Process.this(), pid=process.pid, started="")


def namespaces(*command: str) -> subprocess.CompletedProcess[str]:
    """Runs a command in namespaces of its own; skips if this user may not make them."""
    if os.geteuid() != 0 or not all(map(shutil.which, ("unshare", "setpriv", "mount"))):
        pytest.skip("only root can make the namespaces")
    environment = {**os.environ, "JUDGES": JUDGES, "MARKS": MARKS}
    told = subprocess.run(
        ["unshare", "-pfm", *command], env=environment, stdin=subprocess.PIPE, capture_output=True, text=True
    )
    if "unshare" in told.stderr or "mount:" in told.stderr:
        pytest.skip(f"no namespaces here: {told.stderr}")
    assert told.returncode == 0, told.stderr
    return told


def test_this_process_is_found_by_what_it_writes_down() -> None:
    this = Process.this()
    assert this.started and Process.find(this.host, f"Iceberg-x/hms_iceberg/{this.mark}") == this
    assert this.may_be_alive()


def test_a_process_that_ended_is_dead_even_before_its_parent_knows(other: subprocess.Popen[bytes]) -> None:
    process = of(other)
    assert process.may_be_alive()
    other.kill()
    os.waitid(os.P_PID, other.pid, os.WEXITED | os.WNOWAIT)
    assert exists(other.pid) and not process.may_be_alive()
    other.communicate()
    assert not exists(other.pid) and not process.may_be_alive()


def test_a_later_process_with_the_same_number_is_not_taken_for_it() -> None:
    assert not replace(Process.this(), started="1").may_be_alive()


def test_a_process_whose_first_thread_ended_is_alive() -> None:
    leaves = "import ctypes, threading, sys\nthreading.Thread(target=sys.stdin.read).start(); print(flush=True)\n"
    leaves += "ctypes.CDLL(None).syscall({'x86_64': 60}.get(__import__('platform').machine(), 93), 0)"
    with subprocess.Popen([sys.executable, "-c", leaves], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline()
        while subprocess.run(["ps", "-o", "stat=", "-p", str(process.pid)], capture_output=True).stdout[:1] != b"Z":
            pass
        assert of(process).may_be_alive()
        process.kill()


@pytest.mark.parametrize(
    "change",
    [
        {"host": "another-host"},
        {"system": "000000000000"},
        {"system": ""},
        {"pid": 0},
        {"pid": 1 << 70},
        {"pid": 1, "started": ""},
    ],
    ids=["another host", "another system", "no system", "no number", "no such number", "alive"],
)
def test_a_process_that_may_live_is_not_dead(change: dict[str, object]) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    assert not of(gone).may_be_alive()
    assert replace(of(gone), **change).may_be_alive()


def test_a_process_of_another_user_that_the_system_hides_is_alive() -> None:
    told = namespaces("sh", "-c", HIDDEN.format(python=sys.executable))
    assert told.stdout.split() == ["True", "same", "False"]


@pytest.mark.parametrize("mounts", [["--mount-proc"], []], ids=["own /proc", "/proc of the outer one"])
def test_a_process_of_another_namespace_is_alive(other: subprocess.Popen[bytes], mounts: list[str]) -> None:
    this = of(other)
    told = namespaces(*mounts, sys.executable, "-c", JUDGES, this.host, this.mark)
    assert told.stdout.split()[:2] == ["True", "other"]


def test_where_proc_shows_another_namespace_the_own_processes_are_alive() -> None:
    """Whose number another process has there."""
    mark = "from hms_iceberg.processes import Process; print(Process.this().mark)"
    own = 'M=$({0} -c "{1}"); {0} -c "$JUDGES" "$(uname -n)" "${{M%pid=*}}pid=1"'
    assert namespaces("sh", "-c", own.format(sys.executable, mark)).stdout.split() == ["True", "same", "True"]


def test_the_holder_of_a_lock_is_dead_only_if_its_agent_tells_it(other: subprocess.Popen[bytes]) -> None:
    host = Process.this().host
    agent = AGENTS.new()
    assert len(agent) <= 128 and not is_dead(host, agent)
    AGENTS.retire(agent)
    other.kill()
    other.communicate()
    assert is_dead(host, f"Iceberg-x/hms_iceberg/{of(other).mark}")
    assert not is_dead(None, f"Iceberg-x/hms_iceberg/{of(other).mark}")
    assert not is_dead("another-host", f"Iceberg-x/hms_iceberg/{of(other).mark}")
    assert not is_dead(host, "Iceberg-0a1b") and not is_dead(None, None)
