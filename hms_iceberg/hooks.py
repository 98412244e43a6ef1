"""Functions that a lower room calls and a higher room sets, as behind `schema.as_arrow()` and `table.maintenance`.

Imports go down only. So the lower room declares a hook beside its use, with the types of its arguments and result, and
the higher room sets it with a function that the type checker holds against these types.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Generic, ParamSpec, TypeVar

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class Hook(Generic[Parameters, Result]):
    """A function that another module, `home`, sets; it is imported at the first call."""

    def __init__(self, home: str) -> None:
        self._home = home
        self._function: Callable[Parameters, Result] | None = None

    def set(self, function: Callable[Parameters, Result]) -> None:
        self._function = function

    def __call__(self, *args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        if self._function is None:
            import_module(self._home)
        assert self._function is not None, f"{self._home} does not set its hook"
        return self._function(*args, **kwargs)
