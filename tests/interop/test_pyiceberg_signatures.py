"""What PyIceberg's public classes and functions take, ours take by the same names, in the same order."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from types import ModuleType
from typing import Any

import pytest

from tests.unit.project.test_hooks import MODULES

pytest.importorskip("pyiceberg")

_UPDATES = ("schema", "snapshot", "sorting", "spec", "statistics")
_EMPTY = inspect.Parameter.empty
_NOTHING = ("{}", "AlwaysTrue()", "<factory>", "None", "[]", "()", "frozenset()")  # None says the same here

# What differs on purpose, as a pattern of what is told, and why. One that matches nothing any more is an error.
ON_PURPOSE = {
    r"Catalog\.(commit_table|supports_server_side_planning|plan_scan|load_credentials|auth_url|url) is": (
        "between PyIceberg's catalogs and its own transactions and scans"
    ),
    r"default of err is": "our errors derive from ValueError, and say more",
    r"^expressions\.\S*(as_bound|as_unbound|bind|eval) is not": "how PyIceberg binds; ours is a function, `bind`",
    r"^expressions\.\S+\(\) ": "positional in use; PyIceberg's JSON form adds `root`, `type` and names of parts",
    r"^(conversions|schema)\.\w+ ": "functions of one or two arguments, which are passed by position",
    r"^io\.": "files are opened by locations, through storages",
    r"^manifest\.\w+(\(\)|\.from_args) ": "entries and files are frozen values with names, not records with positions",
    r"^partitioning\.\w+(\(\)|\.\w+) ": "frozen values, all of whose parts are told",
    r"^schema\.(Schema|NestedField)(\(\)|\.\w+) ": "PyIceberg's validators, accessors and JSON names",
    r"^table\.(DataScan|TableScan|IncrementalAppendScan|StaticTable|Table|Transaction|FileScanTask)\(\) ": (
        "made by catalogs, tables and scans, of what these have"
    ),
    r"^table\.FileScanTask\.from_rest_response is": "plans of servers are read elsewhere",
    r"^table\.StaticTable\.\w+ is not": "a static table is read only",
    r"^table\.Transaction\.delete lacks _": "private",
    r"^table\.(inspect|update\.\w+)\.\w+\(\) ": "made by tables and transactions",
    r"^table\.update\.\w+\.\w+\.(assign_new_column_id|overwrite) ": "ids and uuids are drawn at the commit",
    r"^table\.update\.sorting\.": "the same default, written in another way",
    r"^table\.update\.schema\.UpdateSchema\.union_by_name default": "the table's own version",
    r"^table\.locations\.": "locations of metadata are a matter of commits",
    r"^table\.metadata\.": "one frozen class for all versions; its parts are attributes",
    r"^table\.(name_mapping|refs|snapshots|sorting)\.": "frozen values; PyIceberg's validators and JSON forms",
    r"^transforms\.": "sources are passed by position; projections are functions over predicates",
    r"^types\.": "PyIceberg's validators and JSON forms; attributes of instances, whose order is that of Java",
    r"^view\.": "made by catalogs; PyIceberg's validators and JSON forms",
}


def _modules() -> Iterator[tuple[str, ModuleType, ModuleType]]:
    more = (f"table.{name}" for name in ("inspect", *(f"update.{each}" for each in _UPDATES)))
    for name in (*MODULES, *more):
        try:
            yield name, import_module(f"hms_iceberg.{name}"), import_module(f"pyiceberg.{name}")
        except ImportError:
            continue


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter] | None:
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    return [each for each in found if each.name not in ("self", "cls")]


def _differences(ours: Callable[..., Any], theirs: Callable[..., Any]) -> Iterator[str]:
    mine, wanted = _parameters(ours), _parameters(theirs)
    if mine is None or wanted is None:
        return
    takes_more, takes_any = _kinds(mine)
    by_name = {each.name: each for each in mine}
    positional = [each.name for each in mine if each.kind is each.POSITIONAL_OR_KEYWORD]
    for place, each in enumerate(wanted):
        own = by_name.get(each.name)
        if each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD) or (own is None and takes_more):
            continue
        if own is None:
            yield f"lacks {each.name}"
            continue
        is_placed = each.kind is each.POSITIONAL_OR_KEYWORD and not takes_any
        if is_placed and positional[place : place + 1] != [each.name]:
            yield f"has {each.name} at another place"
        if each.default is not _EMPTY and own.default is _EMPTY:
            yield f"needs {each.name}"
        elif not _same_default(own.default, each.default):
            yield f"default of {each.name} is {own.default!r}, not {each.default!r}"
    known = {each.name for each in wanted}
    for each in mine:
        must = each.default is _EMPTY and each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)
        if must and each.name not in known and not _kinds(wanted)[0]:
            yield f"asks for {each.name}"


def _kinds(parameters: list[inspect.Parameter]) -> tuple[bool, bool]:
    """Whether there is `**more`, and whether there is `*any`."""
    kinds = {each.kind for each in parameters}
    return inspect.Parameter.VAR_KEYWORD in kinds, inspect.Parameter.VAR_POSITIONAL in kinds


def _same_default(own: Any, wanted: Any) -> bool:
    if wanted is _EMPTY or repr(own) == repr(wanted):
        return True
    return own in (None, ()) and repr(wanted) in _NOTHING


def _is_theirs(found: Any) -> bool:
    return (getattr(found, "__module__", None) or "").startswith("pyiceberg") or isinstance(found, property)


def _of_class(label: str, ours: type, theirs: type) -> Iterator[str]:
    if not issubclass(theirs, Exception):
        yield from (f"{label}() {each}" for each in _differences(ours, theirs))
    for name, wanted in inspect.getmembers(theirs):
        # What starts so is pydantic's.
        if name.startswith(("_", "model_")) or name == "handle_primitive_type" or not _is_theirs(wanted):
            continue
        own = getattr(ours, name, None)
        if own is None:
            yield f"{label}.{name} is not there"
        elif callable(wanted) and callable(own):
            yield from (f"{label}.{name} {each}" for each in _differences(own, wanted))


def _told() -> list[str]:
    told, seen = [], set()
    for module, ours, theirs in _modules():
        for name, wanted in sorted(vars(theirs).items()):
            own = getattr(ours, name, None)
            if name.startswith("_") or own is None or not _is_theirs(wanted) or (id(own), id(wanted)) in seen:
                continue
            seen.add((id(own), id(wanted)))
            label = f"{module}.{name}"
            if inspect.isfunction(wanted):
                told += [f"{label} {each}" for each in _differences(own, wanted)]
            elif inspect.isclass(wanted) and inspect.isclass(own):
                told += _of_class(label, own, wanted)
    return told


def test_what_pyiceberg_takes_is_taken_by_the_same_names_in_the_same_order() -> None:
    told = _told()
    unknown = [each for each in told if not any(re.search(pattern, each) for pattern in ON_PURPOSE)]
    assert unknown == []
    stale = [pattern for pattern in ON_PURPOSE if not any(re.search(pattern, each) for each in told)]
    assert stale == [], "nothing differs so any more"
