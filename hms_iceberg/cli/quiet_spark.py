"""What Spark says of itself, kept away from what a command tells: it is shown if Spark does not start."""

from __future__ import annotations

import os
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

_LINES_SHOWN = 20


@contextmanager
def quiet_spark(log: Path | None = None) -> Iterator[None]:
    """Sends the standard error of processes that are started in the context to a file, which is where Spark's JVM logs.

    With `--verbose` it stays where it is.

    Args:
        log: the file, which is appended to; one that goes away with the last process that writes to it by default.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas")
        if _is_verbose():
            yield
            return
        with tempfile.TemporaryFile() if log is None else log.open("a+b") as file, _errors_to(file.fileno()) as shown:
            begin = file.seek(0, os.SEEK_END)
            try:
                yield
            except Exception:
                file.seek(begin)
                for line in file.read().decode(errors="replace").splitlines()[-_LINES_SHOWN:]:
                    os.write(shown, f"Spark: {line}\n".encode())
                raise


@contextmanager
def _errors_to(file: int) -> Iterator[int]:
    """Has standard error go to a file; what it was before is yielded."""
    sys.stderr.flush()
    kept = os.dup(2)
    os.dup2(file, 2)
    try:
        yield kept
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _is_verbose() -> bool:
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.find_root().params.get("verbose"))
