"""Groups of commands that suggest names for a mistyped one."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

import click

from hms_iceberg.errors import IcebergError

if TYPE_CHECKING:
    from hms_iceberg.catalog import Catalog


class SuggestingGroup(click.Group):
    """A group that suggests the commands whose names come near an unknown one."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            near = get_close_matches(args[0], self.list_commands(ctx))
            if not near or "Did you mean" in error.format_message():  # newer versions of click suggest by themselves
                raise
            hint = f"Did you mean {' or '.join(map(repr, near))}?"
            raise click.UsageError(f"{error.format_message()} {hint}", ctx) from error


def near_names(catalog: Catalog, name: str, of_hive: bool = False) -> list[str]:
    """Tables (`of_hive`: Hive's) or namespaces whose names come near a missing one; empty if they cannot be listed."""
    from hms_iceberg.table.needed_files.needed_by_others import table_rows_of  # help needs no Arrow

    namespace, _, table = name.partition(".")
    try:
        namespaces = [".".join(each) for each in catalog.list_namespaces()]
        if namespace.lower() not in namespaces:
            near = get_close_matches(namespace, namespaces)
            return [f"{each}.{table}" if table else each for each in near]
        rows = table_rows_of(catalog.metastore) if of_hive else None
        found = catalog.list_tables(namespace) if rows is None else [each.identifier for each in rows.rows(namespace)]
        tables = [each[-1] for each in found]
    except IcebergError:
        return []
    return [f"{namespace}.{each}" for each in get_close_matches(table, tables)]
