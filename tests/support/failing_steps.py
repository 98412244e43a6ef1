"""Calls of real objects that fail where they are told to, before they are carried out or after it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

STORAGE = ("read", "create", "open_input", "open_output", "exists", "delete")
CALLS = (
    "get_table",
    "create_table",
    "alter_table",
    "lock",
    "check_lock",
    "show_locks",
    "unlock",
)

# What nobody expects, and what no layer below translates.
KINDS: dict[str, Callable[[], BaseException]] = {
    "Ctrl-C": KeyboardInterrupt,
    "no memory": MemoryError,
    "input or output": lambda: OSError(5, "Input/output error"),
    "a time-out": TimeoutError,
    "a fault of ours": lambda: RuntimeError("a fault"),
}


class Steps:
    """The calls of some methods, counted, of which one fails.

    Attributes:
        done: names of the methods that were called, in order.
    """

    def __init__(self) -> None:
        self.done: list[str] = []
        self._at: int | None = None
        self._error: Callable[[], BaseException] = RuntimeError
        self._after = False
        self.has_failed = False

    @contextmanager
    def of(self, owner: Any, *names: str) -> Iterator[None]:
        """Counts the calls of an object's methods, for the time of a block."""
        for name in names:
            setattr(owner, name, self._counted(name, getattr(owner, name)))
        try:
            yield
        finally:
            for name in names:
                delattr(owner, name)

    def fail(self, at: int | None, error: Callable[[], BaseException] = RuntimeError, after: bool = False) -> None:
        """Counts anew; the call of this number, from 0, fails; none if it is None."""
        self.done.clear()
        self._at, self._error, self._after, self.has_failed = at, error, after, False

    def _counted(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **options: Any) -> Any:
            number = len(self.done)
            self.done.append(name)
            fails = number == self._at
            if fails and (not self._after or name.startswith("open_")):  # else the file would stay open
                self.has_failed = True
                raise self._error()
            result = call(*arguments, **options)
            if fails:
                self.has_failed = True
                raise self._error()
            return result

        return counted
