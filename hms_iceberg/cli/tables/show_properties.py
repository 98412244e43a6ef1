"""`hms-iceberg properties get|set|remove table|namespace`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from hms_iceberg.cli.catalog_options import complete_table, on_catalog
from hms_iceberg.cli.output import Output
from hms_iceberg.cli.suggestions import SuggestingGroup
from hms_iceberg.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from click.shell_completion import CompletionItem

    from hms_iceberg.catalog import Catalog

_TABLE = click.argument("identifier", metavar="DB.TABLE", shell_complete=complete_table)
_NAMESPACE = click.argument("identifier", metavar="NAMESPACE")
_NAME = click.argument("name")


def _complete_name(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    from hms_iceberg.spec.table_properties import settings_rows

    return [CompletionItem(each.name, help=each.about) for each in settings_rows() if each.name.startswith(incomplete)]


_NAME_OF_TABLE = click.argument("name", shell_complete=_complete_name)


@click.group(cls=SuggestingGroup)
def properties() -> None:
    """Look at and change properties of tables and namespaces.

    Example: hms-iceberg properties set table web.visits write.delete.mode merge-on-read
    """


@properties.group(cls=SuggestingGroup)
def get() -> None:
    """Show all properties, or one.

    Example: hms-iceberg properties get table web.visits
    """


@properties.group("set", cls=SuggestingGroup)
def set_() -> None:
    """Set a property.

    Example: hms-iceberg properties set table web.visits owner ops
    """


@properties.group(cls=SuggestingGroup)
def remove() -> None:
    """Remove a property.

    Example: hms-iceberg properties remove table web.visits owner
    """


@get.command("table")
@_TABLE
@click.argument("name", required=False)
@on_catalog
def get_table(catalog: Catalog, out: Output, identifier: str, name: str | None) -> None:
    """Show the properties of a table, or one of them.

    Example: hms-iceberg properties get table web.visits
    """
    _show(out, catalog.load_table(identifier).properties, name, f"Table {identifier}")


@get.command("namespace")
@_NAMESPACE
@click.argument("name", required=False)
@on_catalog
def get_namespace(catalog: Catalog, out: Output, identifier: str, name: str | None) -> None:
    """Show the properties of a namespace, or one of them.

    Example: hms-iceberg properties get namespace web location
    """
    _show(out, catalog.load_namespace_properties(identifier), name, f"Namespace {identifier}")


@set_.command("table")
@_TABLE
@_NAME_OF_TABLE
@click.argument("value")
@on_catalog
def set_table(catalog: Catalog, out: Output, identifier: str, name: str, value: str) -> None:
    """Set a property of a table.

    Example: hms-iceberg properties set table web.visits write.delete.mode merge-on-read
    """
    catalog.load_table(identifier).set_properties({name: value})
    out.text(f"Set {name}={value} on {identifier}", {"identifier": identifier, "updated": {name: value}})


@set_.command("namespace")
@_NAMESPACE
@_NAME
@click.argument("value")
@on_catalog
def set_namespace(catalog: Catalog, out: Output, identifier: str, name: str, value: str) -> None:
    """Set a property of a namespace.

    Example: hms-iceberg properties set namespace web owner ops
    """
    catalog.update_namespace_properties(identifier, updates={name: value})
    out.text(f"Set {name}={value} on {identifier}", {"identifier": identifier, "updated": {name: value}})


@remove.command("table")
@_TABLE
@_NAME_OF_TABLE
@on_catalog
def remove_table(catalog: Catalog, out: Output, identifier: str, name: str) -> None:
    """Remove a property of a table.

    Example: hms-iceberg properties remove table web.visits write.delete.mode
    """
    table = catalog.load_table(identifier)
    _value(table.properties, name, f"Table {identifier}")
    table.remove_properties(name)
    out.text(f"Property {name} removed from {identifier}", {"identifier": identifier, "removed": [name]})


@remove.command("namespace")
@_NAMESPACE
@_NAME
@on_catalog
def remove_namespace(catalog: Catalog, out: Output, identifier: str, name: str) -> None:
    """Remove a property of a namespace.

    Example: hms-iceberg properties remove namespace web owner
    """
    _value(catalog.load_namespace_properties(identifier), name, f"Namespace {identifier}")
    catalog.update_namespace_properties(identifier, removals=[name])
    out.text(f"Property {name} removed from {identifier}", {"identifier": identifier, "removed": [name]})


def _show(out: Output, found: Mapping[str, str], name: str | None, subject: str) -> None:
    if name is None:
        out.pairs(dict(sorted(found.items())))
        return
    value = _value(found, name, subject)
    out.text(value, value)


def _value(found: Mapping[str, str], name: str, subject: str) -> str:
    if name not in found:
        raise InvalidInputError(f"{subject} has no property {name}; it has {', '.join(sorted(found)) or 'none'}.")
    return found[name]
