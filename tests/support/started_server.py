"""Servers that tests start as processes of their own, and that end with the test."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.support.ports import free_port

# Of Linux: the system kills the process when the thread ends that started it.
_WITH_OWNER = "import ctypes, os, sys; ctypes.CDLL(None).prctl(1, 9); os.execv(sys.argv[1], sys.argv[1:])"


def ends_with_owner(*command: str) -> list[str]:
    """A command, by its path, whose process ends when its owner is killed; where the system can do that."""
    return [sys.executable, "-Sc", _WITH_OWNER, *command] if sys.platform == "linux" else list(command)


class StartedServer:
    """A server on a free port of loopback.

    Args:
        folder: an empty folder for its settings and its log.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self.port = free_port()

    @property
    def log(self) -> str:
        """What it said."""
        return (self.folder / "log").read_text(errors="replace")

    def start(self, command: Sequence[str], is_ready: Callable[[], bool], seconds: float) -> None:
        """Starts it, and waits until it is ready.

        Args:
            command: the process.
            is_ready: whether it takes questions.
            seconds: how long that may take.
        """
        with open(self.folder / "log", "wb") as log:
            # A server that reads its input may end when there is none any more, as if its owner is killed.
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=log, stderr=subprocess.STDOUT, cwd=self.folder
            )
        deadline = time.monotonic() + seconds
        while not is_ready():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.__exit__()
                raise AssertionError(f"{type(self).__name__} did not start: {self.log[-3000:]}")
            time.sleep(0.1)

    def __exit__(self, *_: object) -> None:
        process, self._process = self._process, None
        if process is not None:
            assert process.stdin is not None
            process.kill()
            process.wait()
            process.stdin.close()
