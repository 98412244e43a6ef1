"""Migrates the tables of a plan, several side by side; the failure of one is not another's."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from hms_iceberg.catalog import Catalog
from hms_iceberg.migration.migrate import MigrationResult, migrate
from hms_iceberg.migration.migration_plan import MigrationOptions
from hms_iceberg.migration.warehouse.warehouse_plan import Outcome, State, TablePlan, WarehousePlan

logger = logging.getLogger(__name__)


class MigrateTable(Protocol):
    """Migrates one table; see `hms_iceberg.migration.migrate`."""

    def __call__(self, catalog: Catalog, identifier: str, options: MigrationOptions) -> MigrationResult: ...


OnDone = Callable[[TablePlan], None]


def migrate_warehouse(
    catalog: Catalog,
    plan: WarehousePlan,
    options: MigrationOptions | None = None,
    *,
    jobs: int = 1,
    rewrite: MigrateTable | None = None,
    in_place: MigrateTable = migrate,
    accept_choices: bool = False,
    kept_in: Path | None = None,
    on_done: OnDone = lambda _: None,
) -> WarehousePlan:
    """Carries a plan out, or what is left of it.

    Every table is examined again before it is migrated, so that a plan may be old. A table that failed is tried again
    by the next run; a migrated one is not.

    Args:
        catalog: the catalog on whose metastore the tables are.
        plan: the plan.
        options: the user's choices for all tables; a table's own choices in the plan go before.
        jobs: how many tables are migrated side by side.
        rewrite: copies a table that cannot stay where it is; None to leave such tables alone.
        in_place: migrates a table in place.
        accept_choices: whether tables are migrated with the choices that the plan has for them; else they are left
            alone.
        kept_in: a file for the plan, written after each table.
        on_done: is called with each table when it is done.

    Returns:
        the plan with the outcome of each table.
    """
    run = _WarehouseRun(
        catalog, plan, options or MigrationOptions(), (in_place, rewrite), accept_choices, kept_in, on_done
    )
    with ThreadPoolExecutor(jobs) as pool:
        try:
            for future in as_completed([pool.submit(run.table, each) for each in plan.tables if not each.is_done]):
                future.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return run.plan


class _WarehouseRun:
    def __init__(
        self,
        catalog: Catalog,
        plan: WarehousePlan,
        options: MigrationOptions,
        ways: tuple[MigrateTable, MigrateTable | None],
        accept_choices: bool,
        kept_in: Path | None,
        on_done: OnDone,
    ) -> None:
        self.plan = plan
        self._catalog = catalog
        self._options = options
        self._in_place, self._rewrite = ways
        self._accept_choices = accept_choices
        self._kept_in = kept_in
        self._on_done = on_done
        self._lock = threading.Lock()

    def table(self, entry: TablePlan) -> None:
        """Migrates one table, and notes its outcome."""
        started = time.monotonic()
        changed = replace(self._done(entry), took=round(time.monotonic() - started, 2))
        with self._lock:
            self.plan = self.plan.with_table(changed)
            if self._kept_in is not None:
                self.plan.write(self._kept_in)
            self._on_done(changed)

    def _done(self, entry: TablePlan) -> TablePlan:
        if entry.state is State.IMPOSSIBLE:
            return replace(entry, outcome=Outcome.LEFT, message=" ".join(entry.reasons))
        if entry.choices and not self._accept_choices:
            return replace(entry, outcome=Outcome.LEFT, message=f"{' '.join(entry.reasons)} Or pass --accept-choices.")
        copied = entry.state is State.REWRITE
        if copied and self._rewrite is None:
            return replace(entry, outcome=Outcome.LEFT, message="It can only be copied: pass --rewrite.")
        act = self._rewrite if copied and self._rewrite is not None else self._in_place
        try:
            result = act(self._catalog, entry.table, replace(self._options, **entry.choices))
        except Exception as error:  # whatever it is, the other tables go on, and the report has it
            logger.warning("Table %s was not migrated: %s", entry.table, error)
            return replace(entry, outcome=Outcome.FAILED, message=_brief(error))
        return replace(
            entry,
            outcome=Outcome.REWRITTEN if copied else Outcome.MIGRATED,
            message="",
            partitions=result.partitions,
            files=result.files,
            rows=result.records,
            bytes=result.bytes,
        )


def _brief(error: Exception) -> str:
    """An error's text, without the stack of Java in which Spark's errors end."""
    lines = str(error).splitlines()
    stack = next((number for number, line in enumerate(lines) if line.lstrip().startswith("at ")), len(lines))
    return "\n".join(lines[:stack]).strip() or type(error).__name__
