"""The metadata table ``db.t.changes`` for Spark, its options, and views of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hms_iceberg.errors import InvalidInputError, UnsupportedError
from hms_iceberg.spark.read_options import END, END_TIME, START, START_TIME, TRAVELS, refuse_misspelled
from hms_iceberg.spark.read_questions import LoadTable
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.storage import Storage
from hms_iceberg.table.reading.incremental_scans import ChangelogScan

OPTIONS = (START, END, START_TIME, END_TIME)
IDENTIFIERS = "identifier-columns"
UPDATES, NET, CARRYOVERS = "compute-updates", "net-changes", "carryovers"
_SWITCHES = (UPDATES, NET, CARRYOVERS)


def metadata_table_scan(metadata: TableMetadata, storage: Storage, asked: LoadTable) -> ChangelogScan:
    """The scan of ``db.t.changes``: all that was inserted and deleted, rows that were only copied to other files too.
    So Apache Iceberg has it. Further options make of it what the views of its procedure create_changelog_view have."""
    name = asked.name
    options = {key: value for key, value in asked.options.items() if key != "path"}
    travels = [each for each in TRAVELS if each in options]
    if travels or asked.version is not None or asked.as_of_micros is not None:
        raise UnsupportedError(
            f"Cannot read {name}.changes as of a version: it is what happened between two versions of the table. "
            f"Choose these with the options {', '.join(OPTIONS)}."
        )
    refuse_misspelled(options, (*OPTIONS, IDENTIFIERS, *_SWITCHES), name)
    given = {each: _switch(each, options[each], name) for each in _SWITCHES if each in options}
    scan = ChangelogScan(
        metadata,
        storage,
        identifier_columns=identifier_columns(options),
        compute_updates=given.get(UPDATES),
        net_changes=given.get(NET, False),
        table_name=name,
    )
    shows_copies = not (given.get(UPDATES, IDENTIFIERS in options) or scan.net_changes)
    scan = replace(scan, carryovers=given.get(CARRYOVERS, shows_copies))
    return between(scan, {key: value for key, value in options.items() if key in OPTIONS}, name)


def identifier_columns(options: Mapping[str, str]) -> tuple[str, ...] | None:
    """The columns that an option says identify a row; None without it."""
    return tuple(name.strip() for name in options[IDENTIFIERS].split(",")) if IDENTIFIERS in options else None


def _switch(name: str, value: str, table: str) -> bool:
    if value.lower() not in ("true", "false"):
        raise InvalidInputError(f"Cannot read the changes of table {table}: {name} is {value!r}, not true or false.")
    return value.lower() == "true"


def between(scan: ChangelogScan, options: Mapping[str, str], table: str) -> ChangelogScan:
    """The scan of changes between the snapshots that the options, of those in `OPTIONS`, say."""
    given = {name.lower(): value for name, value in options.items()}
    unknown = given.keys() - set(OPTIONS)
    if unknown:
        raise InvalidInputError(
            f"Cannot read the changes of table {table}: unknown option {min(unknown)!r}. Known are {START}, {END}, "
            f"{START_TIME} and {END_TIME}."
        )
    for one, other in ((START, START_TIME), (END, END_TIME)):
        if one in given and other in given:
            raise InvalidInputError(f"Cannot set both {one} and {other} for changelogs of table {table}.")
    numbers = {name: _number(name, value, table) for name, value in given.items()}
    first, last = numbers.get(START), numbers.get(END)
    if START_TIME in numbers and END_TIME in numbers and numbers[START_TIME] >= numbers[END_TIME]:
        raise InvalidInputError(f"Cannot set {START_TIME} to be greater than or equal to {END_TIME} for changelogs.")
    if START_TIME in numbers:
        first = _snapshot_before(scan.metadata, numbers[START_TIME])
    if END_TIME in numbers:
        last = _snapshot_at(scan.metadata, numbers[END_TIME])
        if last is None:  # there was none yet
            first = last = scan.metadata.current_snapshot_id
    return replace(scan, from_snapshot_id=first, to_snapshot_id=last)


def _number(name: str, value: str, table: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise InvalidInputError(f"Cannot read the changes of table {table}: {name} is {value!r}, no number.") from None


def _snapshot_before(metadata: TableMetadata, time_ms: int) -> int | None:
    """The snapshot after which a changelog from a time begins. A snapshot of that very millisecond is left out, as
    Apache Iceberg does."""
    first: int | None = None
    for snapshot in metadata.ancestors_of(metadata.current_snapshot_id):
        if snapshot.timestamp_ms <= time_ms:
            return snapshot.snapshot_id
        first = snapshot.parent_snapshot_id
    return first


def _snapshot_at(metadata: TableMetadata, time_ms: int) -> int | None:
    ancestors = metadata.ancestors_of(metadata.current_snapshot_id)
    return next((each.snapshot_id for each in ancestors if each.timestamp_ms <= time_ms), None)
