"""dbt with its adapter for Spark: what is on PATH, or an environment of its own, made once a machine.

It wants older libraries than this package's tests do (protobuf, pathspec, importlib-metadata), and users keep it apart
for the same reason.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

_CACHE = Path(os.environ.get("HMS_ICEBERG_DBT_CACHE", Path.home() / ".cache" / "hms_iceberg" / "dbt"))
_PACKAGES = ("dbt-core==1.10.*", "dbt-spark==1.10.*", "pyhive>=0.7", "thrift>=0.16,<1", "thrift_sasl", "pure-sasl")
_INSTALL_SECONDS = 600


class UnavailableError(Exception):
    """dbt cannot be had here."""


def dbt() -> str:
    """The path of the command `dbt`.

    Raises:
        UnavailableError: it is not on PATH, and pip cannot install it.
    """
    found = shutil.which("dbt")
    if found:
        return found
    _CACHE.mkdir(parents=True, exist_ok=True)
    installed = _CACHE / "installed"
    with open(_CACHE / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not installed.exists():
            _install(_CACHE / "env")
            installed.touch()
    return str(_CACHE / "env" / "bin" / "dbt")


def _install(folder: Path) -> None:
    steps = (
        [sys.executable, "-m", "venv", "--clear", str(folder)],
        [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", *_PACKAGES],
    )
    for step in steps:
        try:
            subprocess.run(step, check=True, capture_output=True, text=True, timeout=_INSTALL_SECONDS)
        except subprocess.SubprocessError as error:
            raise UnavailableError(f"dbt cannot be installed: {getattr(error, 'stderr', None) or error}") from error
