"""The first plan of a process would have to wait for the import of polars: most of its time, for a small plan.

So polars is imported when a table is loaded, in a thread beside the reading of its metadata, which is mostly waiting.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from hms_iceberg.lazy import import_polars

_LIBRARY = "polars"


@contextmanager
def planning_ready() -> Iterator[None]:
    """Imports the libraries that planning needs in a thread, while the block runs; once in a process.

    The thread ends with the block, so that it never meets a fork or the end of the interpreter.
    """
    if _LIBRARY in sys.modules:
        yield
        return
    thread = threading.Thread(target=_import, name="iceberg-import")
    thread.start()
    try:
        yield
    finally:
        thread.join()


def _import() -> None:
    with suppress(ImportError):  # whoever needs it raises it again
        import_polars()
