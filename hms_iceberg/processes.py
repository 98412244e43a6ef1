"""Tests whether the process that made a lock, a claim or a journal still lives: only certain answers count.

What a process leaves behind names it by four facts: its host, the running system there (boot and process namespace, so
that the same number in another container or after a reboot is not taken for it), its number, and when it was started.
"""

from __future__ import annotations

import hashlib
import os
import re
import socket
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

_PROC = Path("/proc")
_MARK = re.compile(r"at=(?P<system>[0-9a-f]{12})/(?:since=(?P<started>\d+)/)?pid=(?P<pid>\d+)")


@dataclass(frozen=True)
class Process:
    """One process, as it can be written down and looked for later. `started` counts clock ticks from the boot, `system`
    marks the boot and the process namespace; both are empty if the system does not tell."""

    host: str
    pid: int
    started: str = ""
    system: str = ""

    @classmethod
    def this(cls) -> Process:
        pid = os.getpid()
        return cls(socket.gethostname(), pid, _start_of(pid), system_mark())

    @classmethod
    def find(cls, host: str | None, text: str | None) -> Process | None:
        """The process whose `mark` is in a text about a host; None if there is none."""
        match = _MARK.search(text or "")
        if host is None or match is None:
            return None
        return cls(host, int(match["pid"]), match["started"] or "", match["system"])

    @property
    def mark(self) -> str:
        """The process in one word, without its host."""
        system = f"at={self.system}/" if self.system else ""
        started = f"since={self.started}/" if self.started else ""
        return f"{system}{started}pid={self.pid}"

    def may_be_alive(self) -> bool:
        """False only if it certainly ended: it is gone from this running system, or only waits for its parent. A
        missing entry in `/proc` says nothing: with `hidepid`, the processes of other users have none."""
        if not self.system or self.system != system_mark() or self.host != socket.gethostname():
            return True
        if not exists(self.pid):
            return False
        stat = _stat(self.pid)
        if stat is None:
            return True
        state, threads, started = stat[0], int(stat[17]), stat[19]
        return not (state in "ZX" and threads <= 1) and started == (self.started or started)


def exists(pid: int) -> bool:
    """False only if no process has that number, in the namespace of this one."""
    if pid <= 0:
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


@lru_cache(maxsize=1)
def system_mark() -> str:
    """A short mark of the running kernel and the namespaces of processes and time; empty if there is no `/proc`."""
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        processes = os.readlink(_PROC / "self/ns/pid")
    except OSError:
        return ""
    try:
        clock = os.readlink(_PROC / "self/ns/time")  # times of start are counted in it
    except OSError:
        clock = ""
    return hashlib.blake2b(f"{boot}/{processes}/{clock}".encode(), digest_size=6).hexdigest()


@lru_cache(maxsize=1)
def _start_of(pid: int) -> str:
    """When this process was started; asked for anew after a fork, which makes another process."""
    stat = _fields(_PROC / "self/stat")
    return stat[19] if stat else ""


def _stat(pid: int) -> list[str] | None:
    """The status of a process, from its state on; None if it cannot be seen."""
    try:
        # The processes of another namespace are shown if `/proc` was mounted there.
        if os.readlink(_PROC / "self") != str(os.getpid()):
            return None
    except OSError:
        return None
    return _fields(_PROC / str(pid) / "stat")


def _fields(path: Path) -> list[str] | None:
    try:
        fields = path.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return fields if len(fields) > 19 else None
