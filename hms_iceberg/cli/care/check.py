"""`hms-iceberg check`: does what a table's metadata says hold for its files?"""

from __future__ import annotations

import dataclasses
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from hms_iceberg.cli.catalog_options import complete_table, on_catalog
from hms_iceberg.cli.output import Output
from hms_iceberg.cli.patterns import matching_tables
from hms_iceberg.errors import IcebergError, MetastoreUnavailableError

if TYPE_CHECKING:
    from hms_iceberg.catalog import Catalog

_RENEWED_SECONDS = 0.2
_CLEAR = "\x1b[K"


@click.command()
@click.argument("patterns", metavar="DB.TABLE | PATTERN...", shell_complete=complete_table, nargs=-1, required=True)
@click.option("--no-files", is_flag=True, help="Only metadata: do not look for every data file.")
@click.option("--record-counts", is_flag=True, help="Also open every live file and count its rows.")
@click.option("--values", is_flag=True, help="Also read every live file whole, and compare values with bounds.")
@click.option("--snapshot", "snapshot_ids", type=int, multiple=True, metavar="ID", help="Only this; may be repeated.")
@on_catalog
def check(
    catalog: Catalog,
    out: Output,
    patterns: tuple[str, ...],
    no_files: bool,
    record_counts: bool,
    values: bool,
    snapshot_ids: tuple[int, ...],
) -> None:
    """Check the metadata of tables against their files. The exit code is 1 if anything is found.

    Example: hms-iceberg check 'web.*' --record-counts
    """
    if no_files and (record_counts or values):
        raise click.UsageError("--no-files excludes --record-counts and --values")
    told: list[dict[str, Any]] = []
    for name in matching_tables(catalog, patterns):
        result = _checked(
            catalog,
            name,
            files=not no_files,
            record_counts=record_counts,
            values=values,
            snapshot_ids=snapshot_ids or None,
        )
        told.append(result)
        if not out.is_json:
            _tell(result)
    problems = sum(len(each["findings"]) for each in told)
    bad = sum(1 for each in told if each["findings"])
    if out.is_json:
        out.json(told)
    elif len(told) != 1:
        click.echo(f"{len(told)} tables checked, {problems} problems in {bad} of them.")
    if problems:
        raise click.exceptions.Exit(1)


def _checked(catalog: Catalog, name: str, **choices: Any) -> dict[str, Any]:
    """What was found in one table; a table that cannot be read is a finding, so that the others are checked too."""
    from hms_iceberg.maintenance import check_table

    try:
        with _progress(name) as progress:
            report = check_table(catalog.load_table(name), progress=progress, **choices)
    except MetastoreUnavailableError:
        raise
    except IcebergError as error:
        return {"table": name, "findings": [{"kind": type(error).__name__, "message": str(error)}]}
    findings = [
        {"kind": type(each).__name__, "message": str(each), **dataclasses.asdict(each)} for each in report.findings
    ]
    counts = {key: getattr(report, key) for key in ("snapshots", "manifests", "files")}
    return {"table": name, **counts, "findings": findings}


@contextmanager
def _progress(name: str) -> Iterator[Callable[[str, int, int], None]]:
    """Shows how far the check of a table is, on a line of the terminal that goes when it is done."""
    shown = 0.0

    def show(what: str, done: int, of: int) -> None:
        nonlocal shown
        if sys.stderr.isatty() and time.monotonic() - shown > _RENEWED_SECONDS:
            shown = time.monotonic()
            click.echo(f"\r{_CLEAR}{name}: {done:,} of {of:,} {what}", nl=False, err=True)

    try:
        yield show
    finally:
        if shown:
            click.echo(f"\r{_CLEAR}", nl=False, err=True)


def _tell(result: dict[str, Any]) -> None:
    findings = result["findings"]
    looked = ""
    if "files" in result:
        looked = f" ({result['snapshots']} snapshots, {result['manifests']} manifests, {result['files']} files)"
    click.echo(f"{result['table']}: {f'{len(findings)} problems' if findings else 'ok'}{looked}")
    for finding in findings:
        click.echo(f"  {finding['message']}")
