"""Unpacks the golden tables where their metadata says they live, before the test modules look for them."""

from __future__ import annotations

import os
import shutil
import tarfile
import tempfile
from contextlib import suppress
from pathlib import Path

_ARCHIVE = Path(__file__).with_name("public.tar.gz")
_UNPACKED = Path("/tmp/hms_iceberg_golden/public")


def _unpack() -> None:
    """Beside their place first: another process of the test run may be at it as well."""
    _UNPACKED.parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=_UNPACKED.parent))
    try:
        with tarfile.open(_ARCHIVE) as archive:
            archive.extractall(folder, filter="data")
        (folder / _UNPACKED.relative_to("/tmp") / ".unpacked").touch()
        with suppress(OSError):  # the other process was first
            os.rename(folder / _UNPACKED.relative_to("/tmp"), _UNPACKED)
    finally:
        shutil.rmtree(folder)


if not (_UNPACKED / ".unpacked").exists():
    _unpack()
