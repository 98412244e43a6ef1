"""`import pyiceberg.x` gives `hms_iceberg.x`, for running PyIceberg's own tests against this package.

A name that is not there becomes a placeholder. While tests are collected it takes everything, so that one missing name
does not take a whole file with it; once tests run, every use of it raises `NotHere`, so that no test passes by it.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import os
import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any

PEER, OURS = "pyiceberg", "hms_iceberg"


class NotHere(Exception):
    """A test used a name of PyIceberg that this package does not have."""


class _Phase:
    running = False


def tests_run_now() -> None:
    """From here on a use of a missing name raises."""
    _Phase.running = True


def _used(name: str) -> None:
    if _Phase.running:
        raise NotHere(name)


class _MissingMeta(type):
    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        _used(cls.__name__)
        return missing(f"{cls.__name__}.{name}")

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        _used(cls.__name__)
        return cls

    def __getitem__(cls, item: Any) -> Any:
        return cls

    def __or__(cls, other: Any) -> Any:
        return cls

    __ror__ = __or__

    def __instancecheck__(cls, instance: Any) -> bool:
        _used(cls.__name__)
        return False

    def __eq__(cls, other: object) -> bool:
        _used(cls.__name__)
        return cls is other

    def __hash__(cls) -> int:
        return id(cls)

    def __iter__(cls) -> Any:
        _used(cls.__name__)
        return iter(())

    def __bool__(cls) -> bool:
        return True


def missing(name: str) -> Any:
    """The placeholder of a name."""
    return _MissingMeta(name, (), {})


class _Module(ModuleType):
    """A module of PyIceberg: ours, with stand-ins before it and placeholders behind it."""

    def __init__(self, name: str, ours: ModuleType | None, stand_ins: Mapping[str, Any]) -> None:
        super().__init__(name)
        self.__path__: list[str] = []
        self._ours = ours
        self._stand_ins = stand_ins

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in self._stand_ins:
            return self._stand_ins[name]
        if self._ours is not None:
            try:
                value = getattr(self._ours, name)
            except AttributeError:
                pass
            else:
                if not isinstance(value, ModuleType):
                    return value
        full = f"{self.__name__}.{name}"
        return sys.modules.get(full) or missing(full)


def _asked_by_a_test() -> bool:
    """Whether the import stands in one of PyIceberg's tests; a library that looks for another must not find one."""
    frame = sys._getframe(1)
    while frame is not None and ("importlib" in frame.f_code.co_filename or frame.f_code.co_filename == __file__):
        frame = frame.f_back  # type: ignore[assignment]
    return frame is not None and frame.f_code.co_filename.startswith(os.getcwd())


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, stand_ins: Mapping[str, Mapping[str, Any]], absent: frozenset[str]) -> None:
        self._stand_ins = stand_ins
        self._absent = absent

    def find_spec(self, name: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        first = name.split(".")[0]
        if first == PEER or (first in self._absent and _asked_by_a_test()):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        ours: ModuleType | None = None
        if spec.name.split(".")[0] == PEER:
            try:
                ours = importlib.import_module(OURS + spec.name[len(PEER) :])
            except ModuleNotFoundError:
                ours = None
        return _Module(spec.name, ours, self._stand_ins.get(spec.name, {}))

    def exec_module(self, module: ModuleType) -> None:
        """Nothing is left to do."""


def install(stand_ins: Mapping[str, Mapping[str, Any]], absent: frozenset[str]) -> None:
    """Makes `pyiceberg` ours.

    Args:
        stand_ins: module of PyIceberg to name to what stands for it.
        absent: libraries that PyIceberg's tests import and this environment lacks; everything in them is missing.
    """
    sys.meta_path.insert(0, _Finder(stand_ins, absent))
