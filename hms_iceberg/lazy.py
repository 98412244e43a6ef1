"""Polars and pyarrow, imported when they are first used: ``from hms_iceberg.lazy import fs, pa, pl``.

They take longer to import than all else together, and most of what a catalog does needs none of them.

Polars' threads stay behind when a process forks, and whatever waits for them then waits for ever: loaders of PyTorch,
workers of gunicorn and Airflow, and `multiprocessing` before Python 3.14 are children of that kind. Polars has no means
to start its threads again; it starts them once in each loaded copy of its library. So in such a child the library is
loaded once more, from a copy of its file, since the system loads one file only once. The copy is made when polars is
first needed there, and shared by all processes of this user.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
import threading
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from hms_iceberg.errors import UnsupportedError
from hms_iceberg.private_files import is_own, shared_folder

_LIBRARY = "polars._plr"  # the name by which polars finds its own library
_THREADS = Path("/proc/self/task")
_OF_POLARS = re.compile(r"polars-\d|async-executor")


def import_polars() -> ModuleType:
    """Imports polars, unless it is there, and puts back Python's handler of Ctrl-C: polars' own lets a thread that
    waits for another go on waiting."""
    _POOL.renew()
    is_there = "polars" in sys.modules
    module = import_module("polars")
    if not is_there:
        signal.siginterrupt(signal.SIGINT, True)
    return module


def was_left_behind(value: Any) -> bool:
    """Whether a value is one of polars' from before a fork, which would wait for threads that are not there."""
    kind = type(value)
    if kind.__module__.partition(".")[0] != "polars":
        return False
    return not isinstance(value, getattr(import_polars(), kind.__name__, kind))


class _Pool:
    """Whether polars' threads stayed behind in the process that this one was forked from."""

    def __init__(self) -> None:
        self._left_behind = self._running = False
        self._lock = threading.Lock()

    def before_fork(self) -> None:
        self._running = "polars" in sys.modules and _has_threads()

    def in_child(self) -> None:
        self._left_behind = self._left_behind or self._running
        self._lock = threading.Lock()
        if self._left_behind:
            vars(pl).clear()

    def renew(self) -> None:
        """Loads polars anew if it cannot work any more."""
        if self._left_behind:
            with self._lock:
                if self._left_behind:
                    _load_anew()
                    self._left_behind = False


def _has_threads() -> bool:
    try:
        names = [(thread / "comm").read_text() for thread in _THREADS.iterdir()]
    except OSError:  # another system, or a thread that ended just now
        return True
    return any(map(_OF_POLARS.match, names))


def _load_anew() -> None:
    before = sys.modules[_LIBRARY]
    name, file = before.__name__, before.__file__
    package = sys.modules[name.rpartition(".")[0]]
    try:
        assert file is not None
        spec = spec_from_file_location(name, _copied(Path(file)))
        assert spec is not None and spec.loader is not None
        library = module_from_spec(spec)
        spec.loader.exec_module(library)
    except (OSError, ImportError) as error:
        raise UnsupportedError(
            f"Cannot use polars in this process: it was forked from one that had used polars, whose threads are not in "
            f"it, and polars cannot be loaded anew ({error}). Start processes with multiprocessing's 'spawn' or "
            f"'forkserver', or set TMPDIR to a folder with 200 MB of room that programs may be loaded from."
        ) from error
    for each in [each for each in sys.modules if each == "polars" or each.startswith("polars.")]:
        del sys.modules[each]
    sys.modules[name] = library
    setattr(package, name.rpartition(".")[2], library)


def _copied(library: Path) -> Path:
    found = library.stat()
    copy = shared_folder() / f"{found.st_size}-{found.st_mtime_ns}-{library.name}"
    if not is_own(copy) or copy.stat().st_size != found.st_size:
        made = copy.with_name(f"{copy.name}.{os.urandom(8).hex()}")  # containers that share a folder share numbers
        try:
            shutil.copyfile(library, made)
            made.chmod(0o500)
            made.replace(copy)
        finally:
            made.unlink(missing_ok=True)
    return copy


_POOL = _Pool()

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa
    from pyarrow import fs
else:

    class _Module:
        def __init__(self, name: str) -> None:
            self._name = name

        def __getattr__(self, attribute: str) -> Any:
            return getattr(import_module(self._name), attribute)

    pa, fs = _Module("pyarrow"), _Module("pyarrow.fs")

    class _Polars:
        def __getattr__(self, attribute: str) -> Any:
            value = getattr(import_polars(), attribute)
            setattr(self, attribute, value)  # found without this function the next time
            return value

    pl = _Polars()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_POOL.before_fork, after_in_child=_POOL.in_child)

__all__ = ["fs", "import_polars", "pa", "pl", "was_left_behind"]
