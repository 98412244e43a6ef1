"""Polars, imported when it is first used: ``from hms_iceberg.lazy import pl``.

It takes longer to import than all else together, and most of what a catalog does needs none of it.
"""

from __future__ import annotations

import signal
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any


def import_polars() -> ModuleType:
    """Imports polars, and lets Ctrl-C interrupt waiting, as it does without polars.

    The handler that polars puts before Python's lets waiting go on, so that a thread that waits for another one would
    not notice Ctrl-C before the other one ends.
    """
    module = import_module("polars")
    signal.siginterrupt(signal.SIGINT, True)
    return module


if TYPE_CHECKING:
    import polars as pl
else:

    class _Polars:
        def __getattr__(self, attribute: str) -> Any:
            value = getattr(import_polars(), attribute)
            setattr(self, attribute, value)  # found without this function the next time
            return value

    pl = _Polars()

__all__ = ["import_polars", "pl"]
