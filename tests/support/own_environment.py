"""Commands of other projects in environments of their own, each made once a machine.

They want other versions of libraries than this package's tests do, and users keep them apart for the same reason.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

_CACHE = Path(os.environ.get("HMS_ICEBERG_ENVIRONMENTS", Path.home() / ".cache" / "hms_iceberg"))
_INSTALL_SECONDS = 600


class UnavailableError(Exception):
    """A command cannot be had here."""


@dataclass(frozen=True)
class OwnEnvironment:
    """The environment of a command.

    Attributes:
        command: its name, and that of its folder.
        packages: what pip is to install.
    """

    command: str
    packages: tuple[str, ...]

    def path(self) -> str:
        """Where the command is: on PATH, or in the environment, which is made if it is not there yet.

        Raises:
            UnavailableError: it is not on PATH, and pip cannot install it.
        """
        found = shutil.which(self.command)
        if found:
            return found
        folder = _CACHE / self.command
        folder.mkdir(parents=True, exist_ok=True)
        installed = folder / "installed"
        with open(folder / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not installed.exists():
                self._install(folder / "env")
                installed.touch()
        return str(folder / "env" / "bin" / self.command)

    def _install(self, folder: Path) -> None:
        steps = (
            [sys.executable, "-m", "venv", "--clear", str(folder)],
            [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", *self.packages],
        )
        for step in steps:
            try:
                subprocess.run(step, check=True, capture_output=True, text=True, timeout=_INSTALL_SECONDS)
            except subprocess.SubprocessError as error:
                told = getattr(error, "stderr", None) or error
                raise UnavailableError(f"{self.command} cannot be installed: {told}") from error
