"""Values of options: tables by patterns such as `web.*`, and durations such as `7d`."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import click

from hms_iceberg.errors import NoSuchTableError

if TYPE_CHECKING:
    from hms_iceberg.catalog import Catalog


_WILD = frozenset("*?[")


def matching_tables(catalog: Catalog, patterns: tuple[str, ...]) -> Iterator[str]:
    """The tables that the patterns name; a pattern that names none is an error, as it may be mistyped."""
    seen: set[str] = set()
    for pattern in patterns:
        names = list(_matching(catalog, pattern)) if _WILD & set(pattern) else [pattern]
        if not names:
            raise NoSuchTableError(no_table_matches(pattern))
        yield from (name for name in names if name not in seen)
        seen.update(names)


def no_table_matches(pattern: str) -> str:
    """The error for a pattern that matches no table."""
    return f"No Iceberg table matches {pattern!r}. List them: hms-iceberg list NAMESPACE"


def _matching(catalog: Catalog, pattern: str) -> Iterator[str]:
    namespace_pattern = pattern.partition(".")[0]
    for namespace in catalog.list_namespaces():
        if fnmatchcase(".".join(namespace), namespace_pattern):
            names = (".".join(each) for each in catalog.list_tables(namespace))
            yield from (name for name in names if fnmatchcase(name, pattern))


_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_SIZES = {"K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4}


class Duration(click.ParamType):
    """A time such as 90s, 10m, 2h or 1d, in seconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The seconds of a text."""
        text = str(value).strip().lower()
        number, unit = (text[:-1], text[-1:]) if text[-1:] in _UNITS else (text, "s")
        if not number.isdigit():
            self.fail(f"expected a time such as 90s, 10m, 2h or 1d, got {value!r}", param, ctx)
        return float(number) * _UNITS[unit]


class Size(click.ParamType):
    """A number of bytes such as 500M or 10G."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The bytes of a text."""
        text = str(value).strip().upper().removesuffix("B").removesuffix("I")
        number, unit = (text[:-1], text[-1:]) if text[-1:] in _SIZES else (text, "")
        if not number.isdigit():
            self.fail(f"expected a size such as 500M or 10G, got {value!r}", param, ctx)
        return int(number) * _SIZES.get(unit, 1)
