"""Options of commands for the catalog and tables, their kinds of values, and completion of table names."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, TypeVar

import click

from hms_iceberg.cli.output import OUTPUT_OPTION, Output, inherited
from hms_iceberg.cli.suggestions import near_names
from hms_iceberg.errors import (
    IcebergError,
    NoSuchNamespaceError,
    NoSuchTableError,
    NotAnIcebergTableError,
    StorageDeniedError,
)

if TYPE_CHECKING:
    from hms_iceberg.catalog import Catalog
    from hms_iceberg.table.table import Table


_WILD = frozenset("*?[")


def matching_tables(catalog: Catalog, patterns: tuple[str, ...]) -> Iterator[str]:
    """The tables that match the patterns; a pattern without a table is an error, as it may be mistyped."""
    seen: set[str] = set()
    for pattern in patterns:
        names = list(_matching(catalog, pattern)) if _WILD & set(pattern) else [pattern]
        if not names:
            raise NoSuchTableError(no_table_matches(pattern))
        yield from (name for name in names if name not in seen)
        seen.update(names)


def no_table_matches(pattern: str) -> str:
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
        text = str(value).strip().lower()
        number, unit = (text[:-1], text[-1:]) if text[-1:] in _UNITS else (text, "s")
        if not number.isdigit():
            self.fail(f"expected a time such as 90s, 10m, 2h or 1d, got {value!r}", param, ctx)
        return float(number) * _UNITS[unit]


class Size(click.ParamType):
    """A number of bytes such as 500M or 10G."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        text = str(value).strip().upper().removesuffix("B").removesuffix("I")
        number, unit = (text[:-1], text[-1:]) if text[-1:] in _SIZES else (text, "")
        if not number.isdigit():
            self.fail(f"expected a size such as 500M or 10G, got {value!r}", param, ctx)
        return int(number) * _SIZES.get(unit, 1)


Command = TypeVar("Command", bound=Callable[..., Any])


def catalog_options(command: Command) -> Command:
    """Adds `--catalog`, `--uri` and `--property` to a command."""
    for option in reversed(
        (
            click.option(
                "--catalog", "catalog_name", metavar="NAME", callback=inherited, help="A catalog of .pyiceberg.yaml."
            ),
            click.option("--uri", metavar="URI", callback=inherited, help="The metastore, such as thrift://host:9083."),
            click.option(
                "-p",
                "--property",
                "properties",
                multiple=True,
                metavar="KEY=VALUE",
                callback=inherited,
                help="A property of the catalog, such as s3.endpoint=http://host:9000; may be repeated.",
            ),
        )
    ):
        command = option(command)
    return command


def open_catalog(
    catalog_name: str | None, uri: str | None, properties: tuple[str, ...], may_be_away: bool = False
) -> Catalog:
    """The catalog of the options, of which `properties` are `KEY=VALUE`.

    A metastore that cannot be reached is an error within seconds, unless the catalog's properties have a time-out for
    connections, or it `may_be_away`.
    """
    from hms_iceberg.catalog import load_catalog

    catalog = load_catalog(catalog_name, uri=uri, **key_values(properties))
    if not may_be_away and catalog.properties.get("uri"):
        from hms_iceberg.catalog.hive import HiveCatalog
        from hms_iceberg.hms.connection.reachability import check_reach

        if isinstance(catalog, HiveCatalog):
            check_reach(catalog.properties)
    return catalog


@contextmanager
def loaded(table: str, catalog_name: str | None, uri: str | None, properties: tuple[str, ...]) -> Iterator[Table]:
    """The table of the options."""
    with open_catalog(catalog_name, uri, properties) as catalog, naming(table, catalog):
        yield catalog.load_table(table)


@contextmanager
def naming(name: str | None, catalog: Catalog | None = None, of_hive: bool = False) -> Iterator[None]:
    """Makes errors within the block name the table or namespace that a command is about, and suggest names that come
    near; those of Hive tables with `of_hive`."""
    try:
        yield
    except StorageDeniedError as error:
        if name is None:
            raise
        raise StorageDeniedError(f"{name}: {error}") from error
    except (NoSuchTableError, NoSuchNamespaceError) as error:
        near = near_names(catalog, name, of_hive) if catalog is not None and name else []
        if not near or isinstance(error, NotAnIcebergTableError):
            raise
        raise error.with_message(f"{error} Did you mean {' or '.join(near)}?") from error


def on_catalog(body: Callable[..., None]) -> Callable[..., None]:
    """Makes a command of a function that takes a catalog and the output, and then its own options."""

    @functools.wraps(body)
    def command(
        catalog_name: str | None, uri: str | None, properties: tuple[str, ...], output: str, **own: Any
    ) -> None:
        name = own.get("identifier") or own.get("parent") or own.get("namespace")
        with open_catalog(catalog_name, uri, properties) as catalog, naming(name, catalog):
            body(catalog, Output(output), **own)

    return catalog_options(OUTPUT_OPTION(command))


def on_table(body: Callable[..., None]) -> Callable[..., None]:
    """Makes a command of a function that takes a table and the output, and then its own options."""

    @functools.wraps(body)
    def command(
        table: str,
        catalog_name: str | None,
        uri: str | None,
        properties: tuple[str, ...],
        output: str,
        **own: Any,
    ) -> None:
        with loaded(table, catalog_name, uri, properties) as found:
            body(found, Output(output), **own)

    return click.argument("table", metavar="DB.TABLE", shell_complete=complete_table)(
        catalog_options(OUTPUT_OPTION(command))
    )


def key_values(texts: tuple[str, ...]) -> dict[str, str]:
    """`KEY=VALUE` texts as a mapping."""
    pairs = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise click.BadParameter(f"expected KEY=VALUE, got {text!r}")
        pairs[key.strip()] = value
    return pairs


def complete_table(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Namespaces up to the dot, tables behind it; nothing if the metastore cannot be asked."""
    namespace, dot, _ = incomplete.partition(".")
    try:
        with _catalog_of(ctx) as catalog:
            found = catalog.list_tables(namespace) if dot else catalog.list_namespaces()
    except (IcebergError, OSError):
        return []
    names = [".".join(each) + ("" if dot else ".") for each in found]
    return [name for name in names if name.startswith(incomplete)]


def complete_ref(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Branches and tags of the table that was named before."""
    try:
        with _table_of(ctx) as table:
            return [name for name in table.refs() if name.startswith(incomplete)]
    except (IcebergError, OSError):
        return []


def complete_columns(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Columns of the table that was named before, behind the last comma."""
    before, comma, begun = incomplete.rpartition(",")
    try:
        with _table_of(ctx) as table:
            names = table.schema().column_names
    except (IcebergError, OSError):
        return []
    return [f"{before}{comma}{name}" for name in names if name.startswith(begun)]


@contextmanager
def _catalog_of(ctx: click.Context) -> Iterator[Catalog]:
    given = {**ctx.find_root().params, **{key: value for key, value in ctx.params.items() if value}}
    properties = given.get("properties") or ()
    with open_catalog(given.get("catalog_name"), given.get("uri"), tuple(properties)) as catalog:
        yield catalog


@contextmanager
def _table_of(ctx: click.Context) -> Iterator[Table]:
    # While an option waits for its value, click has not told arguments from the words before it.
    words = [word for word in ctx.args if not word.startswith("-")]
    name = ctx.params.get("table") or ctx.params.get("identifier") or next(iter(words), "")
    with _catalog_of(ctx) as catalog:
        yield catalog.load_table(str(name))
