"""`hms-iceberg maintain` and `report`: maintain many tables, and draw them."""

from __future__ import annotations

import dataclasses
import json
import logging
import signal
import sys
import threading
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hms_iceberg.cli.catalog_options import (
    Duration,
    Size,
    catalog_options,
    complete_table,
    matching_tables,
    no_table_matches,
    on_catalog,
    open_catalog,
)
from hms_iceberg.cli.output import OUTPUT_OPTION, Output, console, counted, say, shown
from hms_iceberg.errors import IcebergError, MetastoreUnavailableError, NoSuchTableError
from hms_iceberg.printable import log_to_stderr

if TYPE_CHECKING:
    from hms_iceberg.catalog import Catalog
    from hms_iceberg.maintenance.service.service import RunReport, Step
    from hms_iceberg.report import Failure, TablePortrait


logger = logging.getLogger(__name__)
_TIME = "%Y-%m-%d %H:%M:%S"


@click.command()
@catalog_options
@click.option("--table", "patterns", multiple=True, metavar="PATTERN", help="Such as 'web.*'; may be repeated [all].")
@click.option("--policy", "policy_file", type=click.Path(dir_okay=False), help="What is kept up: a YAML file.")
@click.option("--once", is_flag=True, help="Look at every table once, and end; so it does unless --every is given.")
@click.option("--every", type=Duration(), help="Again and again, so long after each run: 90s, 10m, 2h.")
@click.option("--dry-run", is_flag=True, help="Only say what would be done, and why.")
@click.option("--jobs", type=click.IntRange(1), default=2, show_default=True, help="Tables worked on side by side.")
@click.option("--max-time", type=Duration(), help="After so long a run begins nothing new.")
@click.option("--max-bytes", type=Size(), help="Bytes of files that a run rewrites.")
@OUTPUT_OPTION
def maintain(
    catalog_name: str | None,
    uri: str | None,
    properties: tuple[str, ...],
    patterns: tuple[str, ...],
    policy_file: str | None,
    once: bool,
    every: float | None,
    dry_run: bool,
    jobs: int,
    max_time: float | None,
    max_bytes: int | None,
    output: str,
) -> None:
    """Look at every table, say what it needs, and do it within limits.

    Several services may run at once: a table is worked on by one of them. SIGTERM ends a run cleanly.

    Example: hms-iceberg maintain --uri thrift://metastore:9083 --table 'web.*' --every 10m
    """
    from hms_iceberg.maintenance.service.policy import Policies
    from hms_iceberg.maintenance.service.service import Limits, MaintenanceService

    if once and every is not None:
        raise click.UsageError("--once and --every exclude each other")
    if every == 0:
        raise click.UsageError("--every needs a time above 0, such as 10m")
    stop = threading.Event()
    policies = Policies() if policy_file is None else Policies.load(policy_file)
    printer = _StepPrinter(output, is_service=every is not None)
    if every is not None and not logging.getLogger().handlers:
        log_to_stderr("WARNING", "%(asctime)s %(levelname)s: %(message)s", _TIME)
    before = {number: signal.signal(number, lambda *_: stop.set()) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        with open_catalog(catalog_name, uri, properties, may_be_away=every is not None) as catalog:
            service = MaintenanceService(
                catalog, patterns or ("*",), policies, Limits(jobs, max_time, max_bytes), stop, printer.step
            )
            if every is not None and not dry_run:
                service.run_every(every, printer.report)
                return
            report = service.run(dry_run)
            printer.report(report)
            if report.unmatched:
                raise NoSuchTableError(no_table_matches(report.unmatched[0]))
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if report.failed:
        raise click.exceptions.Exit(1)


class _StepPrinter:
    """Prints each step when it is done: a line of text on a terminal, a line of JSON otherwise or if asked for."""

    def __init__(self, output: str, is_service: bool) -> None:
        self._json = output == "json"
        self._is_service = is_service
        self._timed = is_service and not self._json
        self._unmatched: tuple[str, ...] = ()
        self._lock = threading.Lock()

    def step(self, step: Step) -> None:
        if self._json:
            self._echo(json.dumps({"event": "step", **dataclasses.asdict(step)}))
            return
        subject = f"{step.table}: {step.action}" if step.action else step.table
        details = [each for each in (step.why, step.result) if each]
        self._echo(f"{step.outcome:8}{subject}" + (f" - {'; '.join(details)}" if details else ""))

    def report(self, report: RunReport) -> None:
        if self._is_service and report.unmatched != self._unmatched:
            self._unmatched = report.unmatched
            for pattern in report.unmatched:
                logger.warning("%s", no_table_matches(pattern))
        outcomes = [step.outcome for step in report.steps]
        counts = {each: outcomes.count(each) for each in ("planned", "done", "failed", "left")}
        if self._json:
            self._echo(json.dumps({"event": "run", "tables": report.tables, **counts}))
            return
        summary = ", ".join(f"{count} {outcome}" for outcome, count in counts.items() if count)
        self._echo(f"{counted(report.tables, 'table')} looked at: {summary or 'nothing to do'}.")

    def _echo(self, line: str) -> None:
        with self._lock:
            say(shown(f"{time.strftime(_TIME)} {line}" if self._timed else line))
            sys.stdout.flush()


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
        screen = console()
        for number, portrait in enumerate(portraits):
            if number:
                screen.rule()
            print_portrait(portrait, screen, snapshots)
    for failure in failures:
        say(f"Not shown: {failure.name}: {failure.message}", err=True)
    if failures:
        raise click.exceptions.Exit(1)


def _portrait(catalog: Catalog, name: str) -> TablePortrait | Failure:
    """The picture of a table; None for a table that cannot be read, so that the others are shown."""
    from hms_iceberg.report import Failure, portrait_of

    try:
        return portrait_of(catalog.load_table(name))
    except MetastoreUnavailableError:
        raise
    except IcebergError as error:
        return Failure(name, str(error))
