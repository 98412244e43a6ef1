"""A folder that may not be written to, and processes whom that stops."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# Root may write everywhere, unless it gives up its capabilities.
AS_USER = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []


@contextmanager
def without_right_to_write(folder: Path) -> Iterator[None]:
    """Takes the right to write to a folder, and to all that is in it, for a while."""
    places = [folder, *folder.rglob("*")]
    for place in places:
        place.chmod(0o555 if place.is_dir() else 0o444)
    try:
        yield
    finally:
        for place in places:
            place.chmod(0o755)
