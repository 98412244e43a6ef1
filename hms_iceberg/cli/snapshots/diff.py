"""`hms-iceberg diff`: the changes between two snapshots, in files and in rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import click

from hms_iceberg.cli.catalog_options import complete_ref, on_table
from hms_iceberg.cli.output import Output, say
from hms_iceberg.cli.snapshots.history import snapshot_named
from hms_iceberg.cli.tables.browse import FILE_CONTENTS

if TYPE_CHECKING:
    from hms_iceberg.table.table import Table

_FILE_COLUMNS = ("change", "content", "records", "bytes", "file_path")
_KINDS = ("INSERT", "DELETE", "UPDATE_BEFORE", "UPDATE_AFTER")


@dataclass(frozen=True)
class _FileChange:
    """A file that only one of the two snapshots has."""

    change: str
    content: str
    records: int
    size: int
    file_path: str


@click.command()
@on_table
@click.argument("before", shell_complete=complete_ref)
@click.argument("after", shell_complete=complete_ref, default="main")
@click.option("--identifier", "identifiers", multiple=True, metavar="COLUMN", help="Tells updates; may be repeated.")
@click.option("--each-change", is_flag=True, help="Also rows that were inserted and deleted again.")
@click.option("--files", "show_files", is_flag=True, help="List the files.")
@click.option("--rows", "show_rows", is_flag=True, help="List the rows.")
@click.option("--limit", type=click.IntRange(1), default=100, show_default=True, help="Rows to list.")
def diff(
    table: Table,
    out: Output,
    before: str,
    after: str,
    identifiers: tuple[str, ...],
    each_change: bool,
    show_files: bool,
    show_rows: bool,
    limit: int,
) -> None:
    """Tell what changed from one snapshot to another: files, and rows by the changelog.

    BEFORE and AFTER are ids, branches or tags; AFTER is main by default. BEFORE must be its ancestor.

    Example: hms-iceberg diff web.visits year-end main --rows
    """
    first = snapshot_named(table, before)
    last = snapshot_named(table, after)
    scan = table.changelog_scan(
        from_snapshot_id_exclusive=first,
        to_snapshot_id_inclusive=last,
        identifier_columns=identifiers or None,
        net_changes=not each_change,
    )
    counts, listed, columns = _rows(scan, limit if show_rows else 0)
    files = _files(table, first, last)
    if out.is_json:
        out.json(
            {
                "before": first,
                "after": last,
                "files": _totals(files),
                "rows": counts,
                **(
                    {"changed_files": [dict(zip(_FILE_COLUMNS, _cells(each), strict=True)) for each in files]}
                    if show_files
                    else {}
                ),
                **({"changed_rows": [dict(zip(columns, row, strict=True)) for row in listed]} if show_rows else {}),
            }
        )
        return
    out.pairs(_summary(first, last, files, counts))
    if show_files:
        say()
        out.rows(_FILE_COLUMNS, map(_cells, files))
    if show_rows:
        say()
        out.rows(columns, listed, null="null")
        if sum(counts.values()) > len(listed):
            say(f"These are {len(listed)} of {sum(counts.values())} changed rows. For more: --limit N", err=True)


def _summary(first: int, last: int, files: list[_FileChange], counts: dict[str, int]) -> dict[str, Any]:
    totals = _totals(files)
    updated = counts["UPDATE_AFTER"]
    return {
        "From snapshot": first,
        "To snapshot": last,
        **{
            f"Files {change}": f"{totals[change]['files']} ({totals[change]['bytes']:,} bytes)"
            for change in ("added", "removed")
        },
        "Rows inserted": counts["INSERT"],
        "Rows deleted": counts["DELETE"],
        **({"Rows updated": updated} if updated else {}),
    }


def _rows(scan: Any, limit: int) -> tuple[dict[str, int], list[tuple[Any, ...]], list[str]]:
    """The number of changed rows of each kind, and the first of them."""
    from hms_iceberg.cli.tables.row_values import json_values

    counts = dict.fromkeys(_KINDS, 0)
    listed: list[tuple[Any, ...]] = []
    reader = scan.to_arrow_batch_reader()
    for batch in reader:
        for kind, count in Counter(batch.column("_change_type").to_pylist()).items():
            counts[kind] += count
        if len(listed) < limit:
            listed += islice(zip(*map(json_values, batch.columns), strict=True), limit - len(listed))
    return counts, listed, reader.schema.names


def _files(table: Table, first: int, last: int) -> list[_FileChange]:
    before, after = _files_of(table, first), _files_of(table, last)
    added = (("added", each) for key, each in after.items() if key not in before)
    removed = (("removed", each) for key, each in before.items() if key not in after)
    return [
        _FileChange(
            change, FILE_CONTENTS[each["content"]], each["record_count"], each["file_size_in_bytes"], each["file_path"]
        )
        for change, each in chain(added, removed)
    ]


def _files_of(table: Table, snapshot_id: int) -> dict[tuple[str, int | None], dict[str, Any]]:
    names = ["content", "record_count", "file_size_in_bytes", "file_path", "content_offset"]
    found: Iterable[dict[str, Any]] = table.inspect.files(snapshot_id).select(names).to_pylist()
    return {(each["file_path"], each["content_offset"]): each for each in found}


def _totals(files: list[_FileChange]) -> dict[str, dict[str, int]]:
    totals = {}
    for change in ("added", "removed"):
        of_it = [each for each in files if each.change == change]
        totals[change] = {
            "files": len(of_it),
            "records": sum(each.records for each in of_it),
            "bytes": sum(each.size for each in of_it),
        }
    return totals


def _cells(file: _FileChange) -> tuple[Any, ...]:
    return file.change, file.content, file.records, file.size, file.file_path
