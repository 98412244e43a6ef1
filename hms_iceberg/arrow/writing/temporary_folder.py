"""Rows that do not fit into memory are kept in the machine's temporary folder, which may have no room for them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from hms_iceberg.errors import StorageError


@contextmanager
def room_for(what: str, otherwise: str = "") -> Iterator[None]:
    """Runs a block that writes to a temporary folder; its errors name the folder and the remedy.

    Args:
        what: what is kept.
        otherwise: what helps as well.

    Raises:
        StorageError: the folder is full, or cannot be written to.
    """
    try:
        yield
    except OSError as error:
        also = f", or {otherwise}" if otherwise else ""
        raise StorageError(
            f"Cannot keep {what} in the temporary folder {_folder()}: {error}. Let TMPDIR name a folder with room for "
            f"the rows that are written{also}."
        ) from error


def _folder() -> str:
    try:
        return tempfile.gettempdir()
    except OSError:  # there is none in which anything can be written
        return os.environ.get("TMPDIR", "/tmp")
