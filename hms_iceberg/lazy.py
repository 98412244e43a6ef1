"""Polars, imported when it is first used: ``from hms_iceberg.lazy import pl``.

It takes longer to import than all else together, and most of what a catalog does needs none of it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl
else:

    class _LazyModule:
        def __init__(self, name: str) -> None:
            self._name = name

        def __getattr__(self, attribute: str) -> Any:
            value = getattr(import_module(self._name), attribute)
            setattr(self, attribute, value)  # found without this function the next time
            return value

    pl = _LazyModule("polars")

__all__ = ["pl"]
