"""`hms-iceberg report`: pictures of tables."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hms_iceberg.cli.catalog_options import complete_table, on_catalog
from hms_iceberg.cli.output import Output, console
from hms_iceberg.cli.patterns import matching_tables
from hms_iceberg.errors import IcebergError, MetastoreUnavailableError

if TYPE_CHECKING:
    from hms_iceberg.catalog import Catalog
    from hms_iceberg.report import Failure, TablePortrait


@click.command()
@click.argument("patterns", metavar="DB.TABLE | PATTERN...", shell_complete=complete_table, nargs=-1, required=True)
@click.option("-o", "--to", type=click.Path(dir_okay=False, path_type=Path), help="Write one HTML page instead.")
@click.option("--snapshots", type=click.IntRange(1), default=20, show_default=True, help="How many the graph shows.")
@click.option("--title", help="The heading of the page.")
@on_catalog
def report(
    catalog: Catalog, out: Output, patterns: tuple[str, ...], to: Path | None, snapshots: int, title: str | None
) -> None:
    """Show pictures of tables: snapshots and branches, sizes over time, files by size, partitions, what would help.

    With --to it is one HTML page of all tables, which needs nothing else to be shown. No data file is opened. The exit
    code is 1 if a table could not be read.

    Example: hms-iceberg report 'web.*' --to web.html
    """
    from hms_iceberg.report import Failure, html_page, print_portrait

    found = [_portrait(catalog, name) for name in matching_tables(catalog, patterns)]
    failures = [each for each in found if isinstance(each, Failure)]
    portraits = [each for each in found if not isinstance(each, Failure)]
    if to is not None:
        heading = title or (portraits[0].name if len(found) == 1 and portraits else f"Tables {' '.join(patterns)}")
        to.write_text(html_page(heading, int(time.time() * 1000), portraits, failures), encoding="utf-8")
        out.text(f"Wrote {to}: {len(portraits)} tables.", {"path": str(to), "tables": len(portraits)})
    elif out.is_json:
        out.json([asdict(each) for each in found])
    else:
        shown = console()
        for number, portrait in enumerate(portraits):
            if number:
                shown.rule()
            print_portrait(portrait, shown, snapshots)
    for failure in failures:
        click.echo(f"Not shown: {failure.name}: {failure.message}", err=True)
    if failures:
        raise click.exceptions.Exit(1)


def _portrait(catalog: Catalog, name: str) -> TablePortrait | Failure:
    """The picture of a table; a table that cannot be read has none, so that the others are shown."""
    from hms_iceberg.report import Failure, portrait_of

    try:
        return portrait_of(catalog.load_table(name))
    except MetastoreUnavailableError:
        raise
    except IcebergError as error:
        return Failure(name, str(error))
