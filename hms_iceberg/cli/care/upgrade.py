"""`hms-iceberg upgrade`: upgrade a table's format version, or rehearse that with its readers."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from hms_iceberg.cli.catalog_options import complete_table, naming, on_catalog
from hms_iceberg.cli.output import Output, say
from hms_iceberg.errors import UnsupportedError
from hms_iceberg.spec.metadata.table_metadata import PREVIEWED_FORMAT_VERSION

if TYPE_CHECKING:
    from hms_iceberg.catalog import Catalog
    from hms_iceberg.table.table import Table


@click.command()
@click.argument("table", metavar="DB.TABLE", shell_complete=complete_table)
@on_catalog
@click.option("--to", "version", type=click.Choice(["v2", "v3", "v4"]), required=True, help="The format version.")
@click.option("--rehearse", is_flag=True, help="Change nothing: read a shadow of the table by every engine here.")
@click.option(
    "--jar", type=click.Path(exists=True, dir_okay=False), help="Iceberg's runtime for the Spark that is here."
)
@click.option("--timeout", type=click.IntRange(1), default=600, show_default=True, help="Seconds for each engine.")
def upgrade(
    catalog: Catalog, out: Output, table: str, version: str, rehearse: bool, jar: str | None, timeout: int
) -> None:
    """Upgrade a table's format. There is no way back; rehearse it first.

    A rehearsal reads the table as it is, upgraded, and upgraded with a deleted row, by every engine that is installed
    (hms_iceberg, Spark, PyIceberg, DuckDB, and Apache Iceberg in Spark with --jar), and compares all rows. The exit
    code is 1 if a reader would break.

    Example: hms-iceberg upgrade web.visits --to v3 --rehearse
    """
    with naming(table, catalog):
        _upgrade(catalog, out, table, int(version[1:]), rehearse, jar, timeout)


def _upgrade(catalog: Catalog, out: Output, name: str, to: int, rehearse: bool, jar: str | None, timeout: int) -> None:
    table = catalog.load_table(name)
    now = table.format_version
    if to == PREVIEWED_FORMAT_VERSION and not rehearse:
        raise UnsupportedError(
            f"Cannot upgrade table {name} to format version 4: the specification of it is not finished. "
            "Rehearse it with --rehearse, or upgrade to v3."
        )
    if to <= now:
        out.result(f"Table {name} has format version {now} already.", table=name, format_version=now)
        return
    if not rehearse:
        table.upgrade_table_version(to)
        out.result(f"Table {name} has format version {to} now; it had {now}.", table=name, format_version=to)
        return
    if not _rehearsed(catalog, table, out, to, jar, timeout):
        raise click.exceptions.Exit(1)


def _rehearsed(catalog: Catalog, table: Table, out: Output, to: int, jar: str | None, timeout: int) -> bool:
    from hms_iceberg.cli.care.rehearsal import ENGINE_NAMES, rehearse

    def begin(engine: str) -> None:
        say(f"Reading with {engine} …", err=True)

    readings = rehearse(table, catalog.properties, to, jar, timeout, begin)
    readers = {ENGINE_NAMES[each.engine]: asdict(each) for each in readings}
    rows = []
    for each in readings:
        if each.missing is not None:
            verdict, why = "not tried", each.missing
        elif each.breaks:
            verdict, why = "BREAKS", "; ".join(f"{version}: {what}" for version, what in sorted(each.breaks.items()))
        elif each.today is not None:
            verdict, why = "no change", f"today already: {each.today}"
        else:
            verdict, why = "reads it", ", ".join(f"{version} {count:,} rows" for version, count in each.rows.items())
        rows.append((ENGINE_NAMES[each.engine], verdict, why))
    broken = sum(1 for each in readings if each.breaks)
    if out.is_json:
        out.json({"table": ".".join(table.identifier), "to": to, "readers": readers})
    else:
        out.rows(("reader", f"version {to}", "what it read"), rows)
        say(f"Nothing was changed. {broken or 'No'} reader{'' if broken == 1 else 's'} would break.")
        snapshot = table.current_snapshot()
        equality_deletes = int(snapshot.summary["total-equality-deletes"] or 0) if snapshot else 0
        if to == PREVIEWED_FORMAT_VERSION and equality_deletes:
            say(
                f"The table has {equality_deletes:,} equality deletes, which version 4 does not write: convert them "
                f"with hms-iceberg convert-equality-deletes {'.'.join(table.identifier)}."
            )
    return not broken
