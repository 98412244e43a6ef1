"""How far a migration came, read from the metastore's rows and the journal.

Three names take part: the table's own, the backup's (the Hive table after the switch) and the staging table's (the
Iceberg table before it). The kinds of the tables that have these names show where a migration stopped:

    table      backup     staging    meaning                                     a repeated `migrate` ...
    Hive       -          -/Iceberg  before the switch                           undoes it and starts anew
    Hive       copy       -/Iceberg  before the switch of a table in one step    undoes it and starts anew
    -          Hive       Iceberg    in the middle of the pair of renames        finishes it
    -          Hive       -          a rename was carried out after an undo      undoes it and starts anew
    Iceberg    Hive       -/Iceberg  done, but for a staging row                 says that it is done
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hms_iceberg.hms.hive_tables import HiveRowChange, HiveTables
from hms_iceberg.hms.rows.hive_rows import METADATA_LOCATION, HiveTable
from hms_iceberg.migration.hive.source_reasons import table_location
from hms_iceberg.migration.migration_journal import Journal, MigrationRecord
from hms_iceberg.storage import Storage
from hms_iceberg.table.needed_files.needed_by_others import MIGRATION_ID, default_backup_name

MIGRATION_ORIGINAL = "hms_iceberg.migration-original"
MIGRATION_JOURNAL = "hms_iceberg.migration-journal"
"""In the properties of the Iceberg table: the folder that holds the journal."""
HIVE_TABLE = "hive-table"
"""In the summary of the snapshot that a migration makes: the Hive table."""
# Where Iceberg puts metadata and data below a table's location.
METADATA, DATA = "metadata", "data"
# Hive and Spark do not read below names that start with `_`.
HIDDEN_FOLDER = "_iceberg"
HIDDEN_METADATA = f"{HIDDEN_FOLDER}/{METADATA}"


@dataclass(frozen=True)
class Original:
    """The original values of everything in a Hive table's row that a migration changes; also kept in the row."""

    table_type: str
    parameters: Mapping[str, str | None]
    create_time: int

    @classmethod
    def of(cls, table: HiveTable, changed: tuple[str, ...]) -> Original:
        return cls(table.table_type, {key: table.parameters.get(key) for key in changed}, table.create_time)

    def to_text(self) -> str:
        """The values as text, to be kept in a row's parameter."""
        return json.dumps(self.to_json(), separators=(",", ":"))

    def to_json(self) -> dict[str, Any]:
        return {"type": self.table_type, "parameters": dict(self.parameters), "created": self.create_time}

    @classmethod
    def from_text(cls, text: str) -> Original:
        content = json.loads(text)
        return cls(content["type"], content["parameters"], content["created"])

    def restored(self) -> HiveRowChange:
        """The change that restores the values, without the marks of the migration."""
        parameters = {**self.parameters, MIGRATION_ID: None, MIGRATION_ORIGINAL: None}
        return HiveRowChange(parameters, table_type=self.table_type)


def staging_name(table: str) -> str:
    """The name of the Iceberg table before the switch."""
    return f"{table}__iceberg_staging"


@dataclass(frozen=True)
class MigrationState:
    """The rows of a migration, and its record."""

    database: str  # database, name: the table's name
    name: str
    record: MigrationRecord | None  # None if it was lost, or deleted by an undo
    # table, backup, staging: rows that belong to the migration, or (the table's) stand in its place; else None
    table: HiveTable | None
    backup: HiveTable | None
    staging: HiveTable | None

    @property
    def journal(self) -> Journal | None:
        return None if self.record is None else self.record.journal

    @property
    def is_done(self) -> bool:
        """Whether the table's name leads to the Iceberg table that this migration made."""
        return self.table is not None and self.table.is_iceberg and self._is_ours(self.table)

    @property
    def is_between_renames(self) -> bool:
        """Whether no table has the name, and the Iceberg table is ready to take it."""
        return self.table is None and self.backup is not None and self.staging is not None

    @property
    def hive_table(self) -> HiveTable | None:
        """The Hive table, under whichever name."""
        return self.backup or (self.table if self.table is not None and not self.table.is_iceberg else None)

    def shows_switch_back(self, version: str) -> bool:
        """Whether the rows show that the Hive table took its name back from this version of the Iceberg table."""
        if self.staging is not None:
            return self.staging.parameters.get(METADATA_LOCATION) == version
        if self.table is None or self.table.is_iceberg or self.backup is None:
            return False
        # One row that was changed, and changed back; `create_time` tells it from one that somebody made anew.
        return self.table.create_time == Original.from_text(self.backup.parameters[MIGRATION_ORIGINAL]).create_time

    def _is_ours(self, row: HiveTable) -> bool:
        known = self.journal.migration_id if self.journal else row.parameters.get(MIGRATION_ID)
        return known is not None and row.parameters.get(MIGRATION_ID) == known


def find_state(
    hive: HiveTables, storage: Storage, database: str, name: str, backup_name: str | None
) -> MigrationState | None:
    """The state of a table's migration, by its lower-case name; None if there is no trace of one."""
    rows = {
        "table": hive.find(database, name),
        "staging": hive.find(database, staging_name(name)),
        "backup": hive.find(database, (backup_name or default_backup_name(name)).lower()),
    }
    folders = (folder for row in rows.values() for folder in _metadata_folders(row))
    found = (MigrationRecord.find(storage, folder) for folder in folders)
    record = next(
        (r for r in found if r is not None and (r.journal.database, r.journal.table) == (database, name)), None
    )
    journal = None if record is None else record.journal
    if journal is not None and (rows["backup"] is None or rows["backup"].name != journal.backup):
        rows["backup"] = hive.find(database, journal.backup)
    table = rows["table"]
    identity = journal.migration_id if journal else None
    backup = _belonging(rows["backup"], identity, iceberg=False)
    staging = _belonging(rows["staging"], identity, iceberg=True)
    marked = table is not None and MIGRATION_ID in table.parameters
    places = {row.location for row in (backup, staging) if row} | {journal.location if journal else ""}
    if table is not None and not marked and table_location(table) not in places:
        return None  # a table that was made later, under the name of one that was migrated
    if journal is None and backup is None and staging is None and not marked:
        return None
    return MigrationState(database, name, record, table, backup, staging)


def _metadata_folders(row: HiveTable | None) -> Iterator[str]:
    if row is None:
        return
    if row.is_iceberg and MIGRATION_JOURNAL in row.parameters:
        yield row.parameters[MIGRATION_JOURNAL]
    if table_location(row):
        for name in (HIDDEN_METADATA, METADATA):
            yield f"{table_location(row)}/{name}"


def _belonging(row: HiveTable | None, migration_id: str | None, iceberg: bool) -> HiveTable | None:
    if row is None or row.is_iceberg != iceberg:
        return None
    mark = row.parameters.get(MIGRATION_ID)
    return row if mark is not None and migration_id in (None, mark) else None
