"""Options of a read: ``spark.read.format("iceberg").option("snapshot-id", ...).load("db.t")``.

The names are those of Apache Iceberg (Java).
"""

from __future__ import annotations

import difflib
import logging
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from hms_iceberg.errors import InvalidInputError, NoSuchRefError
from hms_iceberg.scan.appends import snapshot_or_current, snapshots_between
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.storage import Storage
from hms_iceberg.table.reading.scan import TableScan

logger = logging.getLogger(__name__)

TRAVELS = ("snapshot-id", "as-of-timestamp", "branch", "tag", "versionasof", "timestampasof")
START, END = "start-snapshot-id", "end-snapshot-id"
START_TIME, END_TIME = "start-timestamp", "end-timestamp"  # of changelogs
_SIZES = ("split-size", "file-open-cost")
_STREAMING_NUMBERS = (
    "stream-from-timestamp",
    "streaming-max-files-per-micro-batch",
    "streaming-max-rows-per-micro-batch",
)
_SWITCHES = ("streaming-skip-overwrite-snapshots", "streaming-skip-delete-snapshots")
_STREAMING = (*_STREAMING_NUMBERS, *_SWITCHES)
# Hints on how to read, for readers that this one is not; and what Spark itself puts among the options.
_IGNORED = (
    "path",
    "lookback",
    "locality",
    "batch-size",
    "vectorization-enabled",
    "aggregate-push-down-enabled",
    "async-micro-batch-planning-enabled",
    "streaming-snapshot-polling-interval-ms",
    "async-queue-preload-file-limit",
    "async-queue-preload-row-limit",
)
_MISSPELLED = 0.65  # how alike names are that are taken for one another
# A writer's options choose its table as a reader's do, and say how rows are written besides.
_OF_WRITES = (
    "write-format",
    "delete-format",
    "target-file-size-bytes",
    "target-delete-file-size-bytes",
    "check-nullability",
    "check-ordering",
    "fanout-enabled",
    "output-spec-id",
    "output-sort-order-id",
    "overwrite-mode",
    "distribution-mode",
    "use-table-distribution-and-ordering",
    "merge-schema",
    "mergeschema",
    "validate-from-snapshot-id",
    "isolation-level",
    "compression-codec",
    "compression-level",
    "compression-strategy",
    "advisory-partition-size",
    "delete-granularity",
    "shred-variants",
    "variant-inference-buffer-size",
    "use-merge-append-for-streaming",
    "checkpointlocation",
    "outputmode",
    "queryname",
)
_SNAPSHOT_PROPERTY = "snapshot-property."
_KNOWN = (*TRAVELS, START, END, *_SIZES, *_STREAMING, *_IGNORED, *_OF_WRITES)


@dataclass(frozen=True)
class Selection:
    """The part of a table that a read wants."""

    scan: TableScan
    start_snapshot_id: int | None = None  # the snapshot after which only appended rows are read


def check_options(options: Mapping[str, str], table: str, streaming: bool = False) -> None:
    """Refuses options (names in lower case) that are misspelled or say too much; unknown ones are for other readers."""
    for name in (START_TIME, END_TIME):
        if name in options:
            raise InvalidInputError(
                f"Cannot read the table {table}: {name} is an option of changelogs. Read {table}.changes, or choose a "
                "version with as-of-timestamp."
            )
    refuse_misspelled(options, _KNOWN, table)
    for name in ("snapshot-id", "as-of-timestamp", START, END, *_SIZES, *_STREAMING_NUMBERS):
        if name in options:
            least = 0 if "timestamp" in name else 1
            _number(options, name, table, least=None if name.endswith("-id") else least)
    for name in _SWITCHES:
        if options.get(name, "true").lower() not in ("true", "false"):
            raise InvalidInputError(f"Cannot read the table {table}: {name} is {options[name]!r}, not true or false.")
    chosen = [name for name in (*TRAVELS, START, END) if name in options]
    if len(chosen) > 1 and chosen != [START, END]:
        raise InvalidInputError(
            f"Cannot read the table {table}: the options {' and '.join(chosen)} contradict each other. Give one of "
            f"{', '.join(TRAVELS)}, or {START} with or without {END}."
        )
    if chosen == [END]:
        raise InvalidInputError(f"Cannot read the table {table}: {END} needs {START}, after which to begin.")
    if streaming and chosen:
        raise InvalidInputError(
            f"Cannot stream the table {table}: the option {chosen[0]} selects rows of one read. Use "
            "stream-from-timestamp to say where the stream begins."
        )


def refuse_misspelled(options: Mapping[str, str], known: Collection[str], table: str) -> None:
    """Refuses options that are nearly a known one; warns once of others that are not known."""
    unknown = [name for name in options if name not in known and not name.startswith(_SNAPSHOT_PROPERTY)]
    for name in unknown:
        near = difflib.get_close_matches(name, known, 1, _MISSPELLED)
        if near:
            raise InvalidInputError(
                f"Cannot read the table {table}: unknown option {name!r}; did you mean {near[0]!r}?"
            )
    if unknown:
        logger.warning("Reading the table %s without the options %s, which are not known.", table, ", ".join(unknown))


def select(
    metadata: TableMetadata,
    storage: Storage,
    table: str,
    version: str | None,
    as_of_micros: int | None,
    options: Mapping[str, str],
) -> Selection:
    """Finds which version a read asks for, or between which its changes are: by VERSION AS OF (snapshot id, branch or
    tag), TIMESTAMP AS OF (microseconds since 1970 UTC), and options in lower case."""
    check_options(options, table)
    chosen = [name for name in (*TRAVELS, START) if name in options]
    scan = TableScan(metadata, storage)
    if chosen and (version is not None or as_of_micros is not None):
        raise InvalidInputError(
            f"Cannot read the table {table}: the option {chosen[0]} contradicts VERSION AS OF or TIMESTAMP AS OF. "
            "Give one of them."
        )
    if as_of_micros is not None:
        return Selection(scan.as_of(as_of_micros // 1000))
    if version is not None:
        is_id = re.fullmatch(r"[-+]?\d+", version)  # goes before a branch of that name, as in Iceberg's Java
        return Selection(scan.use_snapshot(int(version)) if is_id else scan.use_ref(version))
    if "snapshot-id" in options:
        return Selection(scan.use_snapshot(int(options["snapshot-id"])))
    if "as-of-timestamp" in options:
        return Selection(scan.as_of(int(options["as-of-timestamp"])))
    for kind in ("branch", "tag"):
        if kind in options:
            return Selection(_ref(scan, options[kind], kind))
    if START in options:
        return _appends(scan, int(options[START]), options)
    return Selection(scan)


def _ref(scan: TableScan, name: str, kind: str) -> TableScan:
    ref = scan.metadata.refs.get(name)
    if ref is not None and ref.is_branch != (kind == "branch"):
        other = "tag" if kind == "branch" else "branch"
        raise NoSuchRefError(
            f"The table at {scan.metadata.location} has no {kind} {name!r}: {name!r} is a {other}. Use the option "
            f"{other!r}."
        )
    return scan.use_ref(name)


def _appends(scan: TableScan, start: int, options: Mapping[str, str]) -> Selection:
    """Rows that were appended, in the table's schema of today."""
    metadata = scan.metadata
    last = snapshot_or_current(metadata, int(options[END]) if END in options else None)
    snapshots_between(metadata, start, last)
    return Selection(replace(scan, snapshot_id=None if last is None else last.snapshot_id), start)


def _number(options: Mapping[str, str], name: str, table: str, least: int | None) -> int:
    try:
        number = int(options[name])
    except ValueError:
        number = None
    if number is None or (least is not None and number < least):
        wanted = "a number" if least is None else f"a number from {least}"
        raise InvalidInputError(f"Cannot read the table {table}: {name} is {options[name]!r}, expected {wanted}.")
    return number
