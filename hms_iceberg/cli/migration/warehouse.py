"""`hms-iceberg migrate` of many tables, by a plan, and rounds that follow a Hive table (`--follow`)."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hms_iceberg.cli.migration.spark import MigrationMethods
from hms_iceberg.cli.output import Output, progress_bars, say

if TYPE_CHECKING:
    from hms_iceberg.catalog import Catalog
    from hms_iceberg.migration import FollowRound, MigrationOptions
    from hms_iceberg.migration.warehouse.warehouse_plan import TablePlan, WarehousePlan


def follow_rounds(
    output: Output, catalog: Catalog, names: tuple[str, str], options: MigrationOptions, interval: float | None
) -> None:
    """Makes rounds, and prints each that changed something or failed; one round if `interval` (seconds) is None.

    `names` are the Hive table and the table that follows it.
    """
    from hms_iceberg.migration import Follower, follow

    if interval is None:
        with progress_bars() as progress:
            found = Follower(catalog, *names, options=options, progress=progress).round()
        output.text(describe_round(found), dataclasses.asdict(found))
        return
    for found in follow(catalog, *names, interval=interval, options=options):
        if found.failure:
            say(describe_round(found), err=True)
        elif found.added or found.removed or found.ended:
            output.text(describe_round(found), dataclasses.asdict(found))


def describe_round(found: FollowRound) -> str:
    """A line about a round."""
    if found.ended:
        return f"{found.source} is an Iceberg table now; {found.target} follows no more, and can be dropped."
    if found.failure:
        return f"{found.target} was not brought up to date, and will be tried again: {found.failure}"
    waiting = f" {found.waiting} partitions are being written; the next round takes them." if found.waiting else ""
    return (
        f"{found.target} is up with {found.source}: {found.added:,} files added, {found.removed:,} removed, in "
        f"{found.seconds:.1f} s.{waiting}"
    )


_COLUMNS = ("table", "state", "partitions", "files", "rows", "size", "seconds", "why")


@dataclass(frozen=True)
class WarehouseMigration:
    """One run of the command: `plan_file` keeps the plan, `html` is its page, None for none."""

    catalog: Catalog
    options: MigrationOptions
    jobs: int
    output: Output
    methods: MigrationMethods
    plan_file: Path | None = None
    html: Path | None = None

    def migrate(
        self, patterns: Sequence[str], exclude: Sequence[str], dry_run: bool = False, accept_choices: bool = False
    ) -> None:
        """Makes a plan, or takes up that of an earlier run (without regard to the patterns), and carries it out."""
        from hms_iceberg.migration.warehouse.warehouse_plan import Outcome
        from hms_iceberg.migration.warehouse.warehouse_run import migrate_warehouse

        plan = self._plan(patterns, exclude)
        if not dry_run:
            plan = migrate_warehouse(
                self.catalog,
                plan,
                self.options,
                jobs=self.jobs,
                rewrite=self.methods.copy if self.methods.rewrite else None,
                in_place=self.methods.in_place,
                accept_choices=accept_choices,
                kept_in=self.plan_file,
                on_done=_print_outcome,
            )
        self._report(plan)
        if not dry_run and any(each.outcome in (Outcome.FAILED, Outcome.LEFT) for each in plan.tables):
            raise click.exceptions.Exit(1)

    def _plan(self, patterns: Sequence[str], exclude: Sequence[str]) -> WarehousePlan:
        from hms_iceberg.migration.warehouse.warehouse_plan import WarehousePlan
        from hms_iceberg.migration.warehouse.warehouse_planner import plan_warehouse

        if self.plan_file is not None and self.plan_file.exists():
            return WarehousePlan.read(self.plan_file)
        with progress_bars() as progress:
            plan = plan_warehouse(self.catalog, patterns, exclude, self.options, jobs=self.jobs, progress=progress)
        if self.plan_file is not None:
            plan.write(self.plan_file)
        return plan

    def _report(self, plan: WarehousePlan) -> None:
        from hms_iceberg.migration.warehouse.warehouse_plan import human_size, shown_state, shown_why

        if self.html is not None:
            self.html.write_text(migration_page(plan), encoding="utf-8")
        if self.output.is_json:
            self.output.json([each.to_json() for each in plan.tables])
            return
        self.output.rows(
            _COLUMNS,
            [
                (
                    each.table,
                    shown_state(each),
                    each.partitions,
                    each.files,
                    each.rows,
                    human_size(each.bytes),
                    each.took or each.seconds,
                    shown_why(each),
                )
                for each in plan.tables
            ],
        )
        left = f"; about {plan.seconds:,.0f} s of work left" if plan.seconds else ""
        say(f"{len(plan.tables)} tables: {_outcomes(plan)}{left}.", err=True)


def migration_page(plan: WarehousePlan) -> str:
    """An HTML page with the state of every table, which sorts and searches."""
    from hms_iceberg.migration.warehouse.warehouse_plan import human_size, shown_state, shown_why
    from hms_iceberg.report.page import page_templates

    environment = page_templates().overlay()
    environment.filters = {**environment.filters, "state": shown_state, "why": shown_why, "human_size": human_size}
    return environment.get_template("migration.html").render(tables=plan.tables, summary=_outcomes(plan))


def _outcomes(plan: WarehousePlan) -> str:
    from hms_iceberg.migration.warehouse.warehouse_plan import shown_state

    counts = Counter(map(shown_state, plan.tables))
    return ", ".join(f"{number:,} {state}" for state, number in sorted(counts.items()))


def _print_outcome(entry: TablePlan) -> None:
    from hms_iceberg.migration.warehouse.warehouse_plan import shown_state

    text = f": {entry.message}" if entry.message else f" in {entry.took:.1f} s"
    say(f"{entry.table} {shown_state(entry)}{text}", err=True)
