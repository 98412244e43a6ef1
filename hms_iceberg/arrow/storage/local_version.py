"""Which version of a local file is at a path, so that what is known of it is not taken for what is known of another."""

from __future__ import annotations

import os
import stat
from typing import NamedTuple


class LocalVersion(NamedTuple):
    """A local file as it is now, by what changes if it is written, replaced, or given other rights."""

    path: str
    device: int
    inode: int
    size: int
    modified_ns: int
    changed_ns: int

    @classmethod
    def of(cls, path: str) -> LocalVersion | None:
        """The file at a path; None where no file is."""
        try:
            found = os.stat(path)
        except (OSError, ValueError):
            return None
        if not stat.S_ISREG(found.st_mode):
            return None
        return cls(path, found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
