"""`functools.cached_property` as it is from Python 3.12 on: without a lock.

Before, one lock is held for all objects of a class while one of them computes: threads wait for each other's files, and
a process that is forked meanwhile waits for ever. Two threads may compute a value twice; the first one stays.
"""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property as cached_property
else:

    class cached_property(functools.cached_property):  # noqa: N801  it stands for that one
        def __get__(self, instance: Any, owner: Any = None) -> Any:
            if instance is None:
                return self
            values = instance.__dict__
            if self.attrname not in values:
                values.setdefault(self.attrname, self.func(instance))
            return values[self.attrname]
