"""Tables by patterns such as `web.*`."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

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
