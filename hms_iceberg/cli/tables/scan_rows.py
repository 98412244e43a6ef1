"""`hms-iceberg scan` and `append`: rows of a table to the screen or a file, and rows of files to a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hms_iceberg.cli.catalog_options import (
    catalog_options,
    complete_columns,
    complete_table,
    key_values,
    loaded,
    on_table,
)
from hms_iceberg.cli.output import Output, on_terminal, output_form, say
from hms_iceberg.errors import InvalidInputError
from hms_iceberg.spec.table_properties import DOWNCAST_NANOSECONDS

if TYPE_CHECKING:
    import pyarrow as pa

    from hms_iceberg.table.table import Table


_FORMS = ("text", "json", "jsonl", "csv", "arrow", "parquet")
_ROWS_ON_TERMINAL = 100


def _names(ctx: click.Context, parameter: click.Parameter, text: str | None) -> tuple[str, ...]:
    names = ("*",) if text is None else tuple(each.strip() for each in text.split(",") if each.strip())
    if not names:
        raise click.BadParameter("it names no column. Name some, as in id,address.city, or leave it out for all.")
    return names


@click.command()
@click.argument("table", metavar="DB.TABLE", shell_complete=complete_table)
@catalog_options
@click.option("--output", type=click.Choice(_FORMS), callback=output_form, help="[default: text, or that of --to]")
@click.option(
    "--to", "target", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Write to this file."
)
@click.option("--filter", "row_filter", metavar="FILTER", help="Only rows such as \"page = '/' and id > 2\".")
@click.option(
    "--columns",
    shell_complete=complete_columns,
    metavar="NAMES",
    callback=_names,
    help="Only these columns, with commas: id,address.city.",
)
@click.option("--limit", type=click.IntRange(0, 2**63 - 1), help="At most so many rows; 100 on a terminal by default.")
@click.option("--snapshot", "snapshot_id", type=int, metavar="ID", help="Of this snapshot.")
@click.option("--as-of", metavar="TIME", help="As it was at a time such as 2026-01-31T12:00:00 (UTC).")
@click.option("--branch", metavar="NAME", help="Of this branch.")
@click.option("--tag", metavar="NAME", help="Of this tag.")
@click.option("--count", is_flag=True, help="Only tell how many rows there are.")
def scan(
    table: str,
    catalog_name: str | None,
    uri: str | None,
    properties: tuple[str, ...],
    output: str | None,
    target: Path | None,
    count: bool,
    **choices: Any,
) -> None:
    """Show rows of a table, or write them to a pipe or a file.

    Example: hms-iceberg scan web.visits --filter "page = '/'" --columns id,page --to rows.parquet
    """
    form = _form(output, target)
    out = Output("json" if form == "json" else "text")
    with loaded(table, catalog_name, uri, properties) as found:
        if count:
            rows = _scan(found, **choices).count()
            out.text(f"{rows}", {"count": rows})
        elif form == "text" and target is None:
            _show(found, out, choices)
        else:
            _write(found, form, target, choices)


def _form(output: str | None, target: Path | None) -> str:
    from hms_iceberg.cli.tables.row_files import format_of

    form = output or ("text" if target is None else format_of(target, option="--output"))
    if form == "text" and target is not None:
        raise click.UsageError("--to needs --output json, jsonl, csv, arrow or parquet")
    if form in ("arrow", "parquet") and target is None and on_terminal():
        raise click.UsageError(f"--output {form} is nothing for a terminal: give --to FILE, or a pipe")
    return form


def _scan(
    table: Table,
    row_filter: str | None,
    columns: tuple[str, ...],
    limit: int | None,
    snapshot_id: int | None,
    as_of: str | None,
    branch: str | None,
    tag: str | None,
) -> Any:
    if branch is not None and tag is not None:
        raise click.UsageError("--branch and --tag exclude each other")
    name = branch if tag is None else tag
    ref = None if name is None else table.refs().get(name)
    if ref is not None and ref.is_branch != (branch is not None):
        kind = ref.snapshot_ref_type.value
        raise InvalidInputError(f"{name!r} of table {'.'.join(table.name())} is a {kind}. Give --{kind} {name}.")
    return table.scan(row_filter, columns, snapshot_id=snapshot_id, limit=limit, ref=name, as_of=as_of)


def _show(table: Table, out: Output, choices: dict[str, Any]) -> None:
    """Prints rows as text; on a terminal not more than a person reads, with a note about that."""
    limit = choices["limit"]
    cut = limit is None and on_terminal()
    reader = _scan(table, **{**choices, "limit": _ROWS_ON_TERMINAL + 1 if cut else limit}).to_arrow_batch_reader()
    rows: Iterable[tuple[Any, ...]] = chain.from_iterable(map(_text_rows, reader))
    if cut:
        rows = list(rows)
    out.rows(reader.schema.names, rows[:_ROWS_ON_TERMINAL] if isinstance(rows, list) else rows, null="null")
    if isinstance(rows, list) and len(rows) > _ROWS_ON_TERMINAL:
        say(f"These are the first {_ROWS_ON_TERMINAL} rows. For more: --limit N, or --to FILE.", err=True)


def _text_rows(batch: pa.RecordBatch) -> Iterable[tuple[Any, ...]]:
    from hms_iceberg.cli.tables.row_values import json_values

    return zip(*map(json_values, batch.columns), strict=True)


def _write(table: Table, form: str, target: Path | None, choices: dict[str, Any]) -> None:
    from hms_iceberg.cli.tables import row_writers

    reader = _scan(table, **choices).to_arrow_batch_reader()
    if target is None:
        row_writers.WRITERS[form](reader, row_writers.standard_output())
        row_writers.standard_output().flush()
        return
    write = row_writers.write_arrow_file if form == "arrow" else row_writers.WRITERS[form]
    with row_writers.new_file(target) as stream:
        rows = write(reader, stream)
    say(f"Wrote {rows} rows to {target}.", err=True)


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
