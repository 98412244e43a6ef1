"""Functions for Spark's Python workers, which say what a worker lacks before Spark stumbles over it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

Read = Callable[[Iterator["pa.RecordBatch"]], Iterator["pa.RecordBatch"]]


class Checked:
    """A function that a worker gets only if it can import what the function needs. It is a function within a function,
    which imports as it runs; `what` it reads is for the error of a worker that lacks this package or Arrow."""

    def __init__(self, function: Read, what: str) -> None:
        self._function = function
        self._what = what

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The function, as PySpark wants to see one."""
        return self._function(batches)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        # A function within a function travels with its code: the worker need not have this package to run it.
        def checked(function: Any, what: str) -> Any:
            try:
                import pyarrow  # noqa: F401

                import hms_iceberg.arrow.reading.read  # noqa: F401
            except ImportError as error:
                import sys

                raise ImportError(
                    f"MissingDependencyError: Python workers of Spark read {what}, and this one ({sys.executable}) "
                    f"cannot import what it needs for that ({error}). Install the same hms_iceberg[spark] on all "
                    "executors as on the driver, or set spark.pyspark.python to a Python that has it."
                ) from error
            return function

        return checked, (self._function, self._what)


def for_workers(function: Read, what: str) -> bytes:
    """A function from batches to batches as Spark's workers take it; it is checked as it is unpacked, once a worker."""
    from pyspark.serializers import CloudPickleSerializer
    from pyspark.sql.types import NullType

    # Workers do not look at the type of what such a function returns.
    return bytes(CloudPickleSerializer().dumps((Checked(function, what), NullType())))
