"""`hms-iceberg maintain` and `report`: maintain many tables, and draw them."""

from __future__ import annotations

import dataclasses
import json
import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

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
from hms_iceberg.cli.metrics import metrics_options
from hms_iceberg.cli.output import OUTPUT_OPTION, Output, console, counted, log_options, say, shown
from hms_iceberg.cli.stopping import stopped_by_signals
from hms_iceberg.errors import IcebergError, MetastoreUnavailableError, NoSuchTableError
from hms_iceberg.printable import log_to_stderr

if TYPE_CHECKING:
    from hms_iceberg.catalog import Catalog
    from hms_iceberg.maintenance.service.service import MaintenanceService, RunReport, Step
    from hms_iceberg.report import Failure, TablePortrait


logger = logging.getLogger(__name__)
_TIME = "%Y-%m-%d %H:%M:%S"
_MOST_NAMED = 10


@click.command()
@catalog_options
@click.option("--table", "patterns", multiple=True, metavar="PATTERN", help="Such as 'web.*'; may be repeated [all].")
@click.option(
    "--policy",
    "policy_file",
    type=click.Path(dir_okay=False),
    help="What is kept up: a YAML file [that of maintenance-policy].",
)
@click.option("--once", is_flag=True, help="Look at every table once, and end; so it does unless --every is given.")
@click.option("--every", type=Duration(), help="Again and again, so long after each run: 90s, 10m, 2h.")
@click.option("--dry-run", is_flag=True, help="Only say what would be done, and why.")
@click.option("--jobs", type=click.IntRange(1), default=2, show_default=True, help="Tables worked on side by side.")
@click.option("--max-time", type=Duration(), help="After so long a run begins nothing new.")
@click.option("--max-bytes", type=Size(), help="Bytes of files that a run rewrites.")
@metrics_options("With --every: where Prometheus finds /metrics, and probes /health and /ready.")
@log_options("WARNING")
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
    metrics_port: int | None,
    metrics_host: str,
    log_format: str,
    log_level: str,
    output: str,
) -> None:
    """Look at every table, say what it needs, and do it within limits.

    Several services may run at once: a table is worked on by one of them. SIGTERM and SIGINT end a run cleanly; a
    single run then says what is left, with exit code 143 or 130.

    Example: hms-iceberg maintain --uri thrift://metastore:9083 --table 'web.*' --every 10m
    """
    from hms_iceberg.maintenance.service.service import Limits, MaintenanceService
    from hms_iceberg.maintenance_policy import Policies

    if once and every is not None:
        raise click.UsageError("--once and --every exclude each other")
    if every == 0:
        raise click.UsageError("--every needs a time above 0, such as 10m")
    if metrics_port is not None and every is None:
        raise click.UsageError("--metrics-port needs --every: a single run is over before anybody asks")
    policies = None if policy_file is None else Policies.load(policy_file)
    printer = _StepPrinter(output, is_service=every is not None)
    asked = click.get_current_context().get_parameter_source("log_level") is not ParameterSource.DEFAULT
    if every is not None or asked or log_format == "json":
        log_to_stderr(log_level.upper(), "%(asctime)s %(levelname)s: %(message)s", _TIME, log_format)
    with (
        stopped_by_signals() as stop,
        open_catalog(catalog_name, uri, properties, may_be_away=every is not None) as catalog,
    ):
        policies = policies or Policies.of_catalog(catalog.properties)
        service = MaintenanceService(catalog, patterns or ("*",), policies, Limits(jobs, max_time, max_bytes), stop)
        printer.run_id = lambda: service.run_id
        service.on_step = printer.step
        if every is not None and not dry_run:
            with _observed(service, printer, metrics_host, metrics_port) as (on_report, on_failure):
                service.run_every(every, on_report, on_failure)
            return
        report = service.run(dry_run)
        printer.report(report)
        if stop.number is not None:
            _say_left(report, printer)
            raise click.exceptions.Exit(128 + stop.number)
        if report.unmatched:
            raise NoSuchTableError(no_table_matches(report.unmatched[0]))
    if report.failed:
        raise click.exceptions.Exit(1)


@contextmanager
def _observed(
    service: MaintenanceService, printer: _StepPrinter, host: str, port: int | None
) -> Iterator[tuple[Callable[[RunReport], None], Callable[[IcebergError], None]]]:
    """The function that is called after runs: the printer, and if there is a port, the metrics there."""
    if port is None:
        yield printer.report, lambda error: None
        return
    from hms_iceberg.reporters.prometheus import count, metrics_server, prometheus

    registry = prometheus().CollectorRegistry()
    from hms_iceberg.maintenance.service.metrics import ServiceMetrics

    metrics = ServiceMetrics(registry)

    def on_step(step: Step) -> None:
        metrics.step(step)
        printer.step(step)

    def on_report(report: RunReport) -> None:
        metrics.report(report)
        printer.report(report)

    service.on_step = on_step
    probes = {"/health": lambda: None, "/ready": metrics.not_ready}
    with count(registry), metrics_server(host, port, registry, probes):
        yield on_report, metrics.failure


def _say_left(report: RunReport, printer: _StepPrinter) -> None:
    """Says which work a run that was stopped left."""
    left = [step for step in report.steps if step.outcome == "left"]
    names = [*(f"{step.table}: {step.action}" if step.action else step.table for step in left), *report.not_looked_at]
    if names and not printer.is_json:
        more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
        say(f"Stopped. Left for the next run: {', '.join(names[:_MOST_NAMED])}{more}.", err=True)
    elif not printer.is_json:
        say("Stopped. Nothing was left.", err=True)


class _StepPrinter:
    """Prints each step when it is done: a line of text on a terminal, a line of JSON otherwise or if asked for."""

    def __init__(self, output: str, is_service: bool) -> None:
        self.is_json = output == "json"
        self.run_id: Callable[[], str] = lambda: ""
        self._is_service = is_service
        self._timed = is_service and not self.is_json
        self._unmatched: tuple[str, ...] = ()
        self._lock = threading.Lock()

    def step(self, step: Step) -> None:
        if self.is_json:
            self._event("step", dataclasses.asdict(step))
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
        if self.is_json:
            left = {"not_looked_at": list(report.not_looked_at)} if report.not_looked_at else {}
            self._event("run", {"tables": report.tables, **counts, "seconds": round(report.seconds, 3), **left})
            return
        summary = ", ".join(f"{count} {outcome}" for outcome, count in counts.items() if count)
        self._echo(f"{counted(report.tables, 'table')} looked at: {summary or 'nothing to do'}.")

    def _event(self, event: str, told: dict[str, Any]) -> None:
        now = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
        self._echo(json.dumps({"event": event, "time": now, "run": self.run_id(), **told}))

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
        out.text(f"Wrote {to}: {counted(len(portraits), 'table')}.", {"path": str(to), "tables": len(portraits)})
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
    from hms_iceberg.maintenance_policy import Policies
    from hms_iceberg.report import Failure, portrait_of

    try:
        return portrait_of(catalog.load_table(name), policies=Policies.of_catalog(catalog.properties))
    except MetastoreUnavailableError:
        raise
    except IcebergError as error:
        return Failure(name, str(error))
