"""`hms-iceberg append`: rows of files become rows of a table."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hms_iceberg.cli.catalog_options import key_values, on_table
from hms_iceberg.cli.output import Output
from hms_iceberg.spec.table_properties import DOWNCAST_NANOSECONDS

if TYPE_CHECKING:
    import pyarrow as pa

    from hms_iceberg.table.table import Table


@click.command()
@on_table
@click.argument(
    "files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path)
)
@click.option(
    "--format",
    "given",
    type=click.Choice(["parquet", "arrow", "csv", "json", "jsonl"]),
    help="Of all files [default: that of each one's name].",
)
@click.option("--null", default="", metavar="TEXT", help="Unquoted text of CSV for what is not there [default: empty].")
@click.option("--branch", default="main", show_default=True)
@click.option("--snapshot-property", "own", multiple=True, metavar="KEY=VALUE", help="May be repeated.")
def append(
    table: Table,
    out: Output,
    files: tuple[Path, ...],
    given: str | None,
    null: str,
    branch: str,
    own: tuple[str, ...],
) -> None:
    """Append the rows of files (Parquet, Arrow, CSV, JSON) to a table, all in one snapshot.

    Columns are matched by name, text is read as the table's types. `-` is standard input.

    Example: hms-iceberg append web.visits monday.csv tuesday.parquet
    """
    from hms_iceberg.cli.tables.row_files import STANDARD_INPUT, format_of

    for path in files:
        if path == STANDARD_INPUT and given is None:
            raise click.UsageError("standard input needs --format")
        format_of(path, given)
    name = ".".join(table.name())
    batches = _batches(table, files, given, null)
    first = next(batches, None)
    if first is None:
        out.text(f"Nothing to append to {name}: there are no rows.", {"table": name, "rows": 0, "snapshot_id": None})
        return
    table.append(chain([first], batches), key_values(own), branch)
    made = table.snapshot_by_name(branch)
    assert made is not None
    rows = int(made.summary["added-records"] or 0)
    out.text(
        f"Appended {rows} rows to {name} (snapshot {made.snapshot_id}).",
        {"table": name, "rows": rows, "snapshot_id": made.snapshot_id},
    )


def _batches(table: Table, files: tuple[Path, ...], given: str | None, null: str) -> Iterator[pa.RecordBatch]:
    """The rows of all files, in the table's columns."""
    from hms_iceberg.arrow.columns.casting import SchemaFit
    from hms_iceberg.cli.tables.row_files import read_batches

    columns = table.schema().as_arrow()
    downcast = DOWNCAST_NANOSECONDS.of(table.properties)
    for path in files:
        fit = None
        for batch in read_batches(path, columns, given, null):
            fit = fit or SchemaFit(batch.schema, table.schema(), ".".join(table.name()), downcast)
            if batch.num_rows:
                yield fit.fit(batch)
