"""Plans the migration of every table of a warehouse, and changes nothing."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

from hms_iceberg.catalog import Catalog
from hms_iceberg.errors import IcebergError, InvalidInputError
from hms_iceberg.hms.hive_tables import HiveTables
from hms_iceberg.hms.rows.hive_rows import VIEWS, HiveTable
from hms_iceberg.migration.hive.source_reasons import Refusal, Remedy
from hms_iceberg.migration.migration_plan import MigrationOptions, MigrationPlan, MigrationPlanner
from hms_iceberg.migration.migration_progress import Progress, in_threads, silent
from hms_iceberg.migration.migration_state import MigrationState, find_state, staging_name
from hms_iceberg.migration.warehouse.warehouse_plan import State, TablePlan, WarehousePlan
from hms_iceberg.table.needed_files.needed_by_others import MIGRATION_ID, default_backup_name

LOOKING = "Looking at tables"
_NOT_FINISHED = "an earlier migration of it was not finished."
# What a switch takes besides looking at the files, and how much a rewrite reads and writes in a second.
_SWITCH_SECONDS = 1.0
_REWRITTEN_BYTES = 20 * 1024 * 1024
# Tried one after the other, then together, if only a choice is missing.
_CHOICES: tuple[dict[str, Any], ...] = (
    {"char_as_string": True},
    {"include_subdirectories": True},
    {"timestamp_type": "timestamp"},
    {"timestamp_type": "timestamptz"},
    {"char_as_string": True, "include_subdirectories": True, "timestamp_type": "timestamp"},
)


def plan_warehouse(
    catalog: Catalog,
    patterns: Sequence[str],
    exclude: Sequence[str] = (),
    options: MigrationOptions | None = None,
    *,
    jobs: int = 1,
    progress: Progress = silent,
) -> WarehousePlan:
    """Predicts the migration of each table of a warehouse.

    Args:
        catalog: the catalog on whose metastore the tables are.
        patterns: names in which `*` and `?` stand for anything: `web.*`, `sales.fact_*`, `web.clicks`.
        exclude: patterns of tables to leave out.
        options: the user's choices for all tables.
        jobs: how many tables are examined side by side.
        progress: is called with each stage, and how many tables are done.

    Returns:
        the tables in the order of their names, each with a plan, or why it cannot be migrated.

    Raises:
        InvalidInputError: no table has such a name.
    """
    hive = HiveTables.of(catalog.metastore)
    tables = sorted(_matching(hive, patterns, exclude), key=str)
    if not tables:
        raise InvalidInputError(f"No table is called {' or '.join(patterns)}. Look with: hms-iceberg list")
    planner = _TablePlanner(catalog, hive, options or MigrationOptions())
    found = []
    for done, each in enumerate(in_threads(planner.plan, tables, jobs), start=1):
        found.append(each)
        progress(LOOKING, done, len(tables))
    return WarehousePlan(tuple(found))


def _matching(hive: HiveTables, patterns: Sequence[str], exclude: Sequence[str]) -> Iterator[HiveTable]:
    wanted, unwanted = [each.lower() for each in patterns], [each.lower() for each in exclude]
    for each in wanted:
        if "." not in each:
            raise InvalidInputError(f"The pattern {each!r} has no namespace. Expected a form such as 'web.*'.")
    for database in hive.databases():
        if not any(fnmatchcase(database.lower(), each.partition(".")[0]) for each in wanted):
            continue
        for table in hive.tables(database):
            name = str(table).lower()
            if any(fnmatchcase(name, each) for each in unwanted):
                continue
            # A view is no table to be migrated, and so no pattern means it; the plan of one that is named says why.
            if name in wanted or (table.table_type not in VIEWS and any(fnmatchcase(name, each) for each in wanted)):
                yield table


class _TablePlanner:
    def __init__(self, catalog: Catalog, hive: HiveTables, options: MigrationOptions) -> None:
        self._catalog = catalog
        self._hive = hive
        self._options = options

    def plan(self, table: HiveTable) -> TablePlan:
        """Predicts the migration of one table."""
        name = str(table)
        marked = MIGRATION_ID in table.parameters
        try:
            if table.is_iceberg:
                return self._at_iceberg_table(table)
            state = find_state(self._hive, self._catalog.storage, table.database, table.name, None)
            if state is not None and (state.journal is not None or not marked):
                return _begun(state, table)
            if marked:
                return self._without_name(table) or TablePlan(name, State.BACKUP)
            return self._at_hive_table(table)
        except (IcebergError, OSError) as error:
            return TablePlan(name, State.IMPOSSIBLE, (str(error),))

    def _at_iceberg_table(self, table: HiveTable) -> TablePlan:
        """The plan of an Iceberg table: nothing to do, or the last step of a migration that was killed before it."""
        mark, name = table.parameters.get(MIGRATION_ID), staging_name(table.name)
        staging = self._hive.find(table.database, name) if mark is not None else None
        if staging is not None and staging.parameters.get(MIGRATION_ID) == mark:
            return TablePlan(str(table), State.UNFINISHED, (_NOT_FINISHED,))
        return TablePlan(str(table), State.ICEBERG)

    def _without_name(self, backup: HiveTable) -> TablePlan | None:
        """The plan of the table of a backup, if its migration ended between the two renames."""
        name = backup.name.removesuffix(default_backup_name(""))
        state = find_state(self._hive, self._catalog.storage, backup.database, name, None)
        return _begun(state, backup) if state is not None and state.table is None else None

    def _at_hive_table(self, table: HiveTable) -> TablePlan:
        started = time.monotonic()
        found = self._with(table, {})
        if isinstance(found, MigrationPlan):
            return _ready(found, State.READY, time.monotonic() - started)
        reasons = tuple(reason.text for reason in found.reasons)
        if found.remedy is Remedy.OPTION:
            for choices in _CHOICES:
                chosen = self._with(table, choices)
                if isinstance(chosen, MigrationPlan):
                    plan = _ready(chosen, State.CHOICES, time.monotonic() - started)
                    return replace(plan, reasons=reasons, choices=choices)
        if found.remedy is Remedy.NOTHING:
            return TablePlan(str(table), State.IMPOSSIBLE, reasons)
        files, size = self._size(table)
        seconds = _SWITCH_SECONDS + size / _REWRITTEN_BYTES
        return TablePlan(str(table), State.REWRITE, reasons, files=files, bytes=size, seconds=round(seconds, 1))

    def _with(self, table: HiveTable, choices: dict[str, Any]) -> MigrationPlan | Refusal:
        options = replace(self._options, **choices)
        return MigrationPlanner(self._hive, self._catalog.storage, options).plan_or_refusal(table)

    def _size(self, table: HiveTable) -> tuple[int, int]:
        """Files and bytes of a table of any format."""
        partitions = list(self._hive.partitions(table.database, table.name)) if table.partition_keys else []
        places = [row.storage.location for row in partitions] or [table.location]
        found = [info for place in places if place for info in self._catalog.storage.list(place)]
        return len(found), sum(info.size for info in found)


def _begun(state: MigrationState, hive: HiveTable) -> TablePlan:
    copied = state.journal is not None and state.journal.is_copy
    planned = State.REWRITE if copied else State.UNFINISHED
    return TablePlan(f"{state.database}.{state.name}", planned, (_NOT_FINISHED,))


def _ready(plan: MigrationPlan, state: State, looked: float) -> TablePlan:
    return TablePlan(
        str(plan.source.table),
        state,
        partitions=len(plan.source.partitions) if plan.source.is_partitioned else 0,
        files=len(plan.data_files),
        rows=plan.records,
        bytes=plan.listing.total_bytes,
        seconds=round(looked + _SWITCH_SECONDS, 1),
    )
