"""Unpacks the golden tables where their metadata says they live, before the test modules look for them."""

from __future__ import annotations

import os
import shutil
import tarfile
import tempfile
from contextlib import suppress
from pathlib import Path

_FOLDER = Path("/tmp/hms_iceberg_golden")


def _unpack(archive: Path, unpacked: Path) -> None:
    """Beside its place first: another process of the test run may be at it as well."""
    unpacked.parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=unpacked.parent))
    try:
        with tarfile.open(archive) as opened:
            opened.extractall(folder, filter="data")
        (folder / unpacked.relative_to("/tmp") / ".unpacked").touch()
        with suppress(OSError):  # the other process was first
            os.rename(folder / unpacked.relative_to("/tmp"), unpacked)
    finally:
        shutil.rmtree(folder)


for _archive in Path(__file__).parent.glob("*.tar.gz"):
    _unpacked = _FOLDER / _archive.name.removesuffix(".tar.gz")
    if not (_unpacked / ".unpacked").exists():
        _unpack(_archive, _unpacked)
