"""`hms-iceberg check` and `doctor`: check the files of tables; check machine, metastore and storage."""

from __future__ import annotations

import dataclasses
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from hms_iceberg.cli.catalog_options import catalog_options, complete_table, matching_tables, on_catalog, open_catalog
from hms_iceberg.cli.output import OUTPUT_OPTION, Output, counted, say, say_over, shown
from hms_iceberg.errors import IcebergError, MetastoreUnavailableError

if TYPE_CHECKING:
    from hms_iceberg.catalog import Catalog
    from hms_iceberg.maintenance.doctor import Diagnosis


_RENEWED_SECONDS = 0.2


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
    results: list[dict[str, Any]] = []
    for name in matching_tables(catalog, patterns):
        result = _checked(
            catalog,
            name,
            files=not no_files,
            record_counts=record_counts,
            values=values,
            snapshot_ids=snapshot_ids or None,
        )
        results.append(result)
        if not out.is_json:
            _print_result(result)
    problems = sum(len(each["findings"]) for each in results)
    bad = sum(1 for each in results if each["findings"])
    if out.is_json:
        out.json(results)
    elif len(results) != 1:
        say(f"{counted(len(results), 'table')} checked, {counted(problems, 'problem')} in {bad} of them.")
    if problems:
        raise click.exceptions.Exit(1)


def _checked(catalog: Catalog, name: str, **choices: Any) -> dict[str, Any]:
    """Checks one table; a table that cannot be read is a finding, so that the others are checked too."""
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
    """Shows the progress of checking a table on one line of the terminal, and clears it at the end."""
    renewed = 0.0

    def show(what: str, done: int, of: int) -> None:
        nonlocal renewed
        if sys.stderr.isatty() and time.monotonic() - renewed > _RENEWED_SECONDS:
            renewed = time.monotonic()
            say_over(f"{name}: {done:,} of {of:,} {what}")

    try:
        yield show
    finally:
        if renewed:
            say_over("")


def _print_result(result: dict[str, Any]) -> None:
    findings = result["findings"]
    looked = ""
    if "files" in result:
        looked = f" ({', '.join(counted(result[each], each[:-1]) for each in ('snapshots', 'manifests', 'files'))})"
    say(f"{result['table']}: {counted(len(findings), 'problem') if findings else 'ok'}{looked}")
    for finding in findings:
        say(shown(f"  {finding['message']}"))


_MARKS = {"good": "ok ", "doubtful": "?? ", "bad": "!! "}


@click.command()
@catalog_options
@OUTPUT_OPTION
def doctor(catalog_name: str | None, uri: str | None, properties: tuple[str, ...], output: str) -> None:
    """Check what is around the tables: versions, Java, the metastore and its settings, locks, storage, clocks.

    Without a metastore it checks this machine only. The exit code is 1 if something does not work.

    Example: hms-iceberg doctor --uri thrift://metastore:9083
    """
    from hms_iceberg.config import known_catalogs as configured_catalogs
    from hms_iceberg.maintenance.doctor import Health, examine_surroundings

    out, found = Output(output), []
    is_named = bool(catalog_name or uri or properties or configured_catalogs())
    with open_catalog(catalog_name, uri, properties, may_be_away=True) if is_named else nullcontext() as catalog:
        for diagnosis in examine_surroundings(catalog):
            found.append(diagnosis)
            if not out.is_json:
                _print_diagnosis(diagnosis)
    if out.is_json:
        out.json([_json(each) for each in found])
    if any(each.state is Health.BAD for each in found):
        raise click.exceptions.Exit(1)


def _print_diagnosis(diagnosis: Diagnosis) -> None:
    say(f"{_MARKS[diagnosis.state]} {diagnosis.subject}: {diagnosis.said}")
    if diagnosis.remedy is not None:
        say(f"    {diagnosis.remedy}")


def _json(diagnosis: Diagnosis) -> dict[str, Any]:
    return {**asdict(diagnosis), "state": str(diagnosis.state)}
