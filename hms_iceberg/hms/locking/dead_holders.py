"""Telling whether the holder of a lock is dead: only of processes of this machine, and only when it is certain.

A killed process leaves its lock behind, and the metastore drops it only after `hive.txn.timeout` (300 s). The agent of
our locks says which process took it, and in which running system: a boot id and a process namespace, so that the same
number in another container or after a reboot is not taken for it.
"""

from __future__ import annotations

import hashlib
import os
import re
import socket
from functools import lru_cache
from pathlib import Path

_AGENT = re.compile(r"/hms_iceberg/at=(?P<system>[0-9a-f]{12})/pid=(?P<pid>\d+)$")


def process_mark() -> str:
    """What an agent ends with: this system and this process; only the process if the system cannot be told."""
    system = system_mark()
    return f"at={system}/pid={os.getpid()}" if system else f"pid={os.getpid()}"


@lru_cache(maxsize=1)
def system_mark() -> str | None:
    """A short mark of the running kernel and the process namespace; None if there is no /proc."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        namespace = os.readlink("/proc/self/ns/pid")
    except OSError:
        return None
    return hashlib.blake2b(f"{boot}/{namespace}".encode(), digest_size=6).hexdigest()


def is_dead(hostname: str | None, agent: str | None) -> bool:
    """True only if the holder certainly runs no more: a process of this system that is gone or a zombie.

    Args:
        hostname: the lock's host.
        agent: the lock's agent, as the metastore has it.
    """
    match = _AGENT.search(agent or "")
    if match is None or match["system"] != system_mark() or hostname != socket.gethostname():
        return False
    return not is_running(int(match["pid"]))


def is_running(pid: int) -> bool:
    """False only if no process of this system has that number any more, or only a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return not Path("/proc/self/stat").exists()
    except OSError:
        return True
    return stat.rpartition(")")[2].split()[:1] not in (["Z"], ["X"])
