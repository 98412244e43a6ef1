"""One reading of topics: from where the tables are, batch by batch, until it ends or something fails."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping

from hms_iceberg.catalog import Catalog
from hms_iceberg.errors import (
    BadEventError,
    EventsLostError,
    IngestError,
    InvalidInputError,
    NoSuchNamespaceError,
    NoSuchTableError,
    NotAnIcebergTableError,
)
from hms_iceberg.ingest.batch import Batch, TablePart
from hms_iceberg.ingest.commit import BatchCommit, topic_ids
from hms_iceberg.ingest.dead_letters import DEAD_LETTERS, DeadLetter, check_dead_letters, dead_letter_rows
from hms_iceberg.ingest.envelopes.envelopes import Envelope
from hms_iceberg.ingest.progress import Offsets, Progress, named
from hms_iceberg.ingest.records import Change, EventProblem, Operation, Partition, Record
from hms_iceberg.ingest.settings import BatchReport, Observer, Settings
from hms_iceberg.ingest.source import KafkaSource
from hms_iceberg.ingest.table_rows import TableRows, created_schema
from hms_iceberg.metastore import Identifier
from hms_iceberg.table import Table

logger = logging.getLogger(__name__)

_LONGEST_READ_SECONDS = 0.2


class OffsetsMovedError(IngestError):
    """A table is not as it was when a batch began: its events have to be read again."""


class IngestRun:
    """Reads events from where the tables are, and commits them in batches."""

    def __init__(
        self,
        catalog: Catalog,
        settings: Settings,
        source: KafkaSource,
        observer: Observer,
        letters: Identifier | None,
    ) -> None:
        self._catalog = catalog
        self._settings = settings
        self._source = source
        self._observer = observer
        self._letters = letters
        self._progress = Progress({})
        self._positions: dict[Partition, int] = {}
        self._topic_ids: dict[str, str] = {}
        self._pending: deque[Record] = deque()
        self._quiet_since = self._looked_for_partitions = time.monotonic()

    # ------------------------------------------------------------------------------------------- the start

    def start(self) -> Offsets:
        """Finds out where to read from: NoSuchTableError if the one table is not there and not to be created,
        EventsLostError if the broker has deleted events that a table needs or a topic was made anew, and a
        SchemaMismatchError, TypeMismatchError or NullValueError if dead letters do not fit their table."""
        if self._letters is not None:
            check_dead_letters(self._catalog.create_table_if_not_exists(self._letters, DEAD_LETTERS))
        partitions, self._topic_ids = self._source.partitions(), self._source.topic_ids()
        found = {name: self._applied_to(name) for name in self._tables()}
        self._progress = Progress({name: applied for name, applied in found.items() if applied})
        for partition in partitions:
            self._positions[partition] = self._progress.start(
                partition,
                self._source.bounds(partition),
                self._settings.begin,
                self._settings.accept_gap,
                lambda name: name != self._letters,
            )
        self._source.start(self._positions)
        logger.info("Reading %s from %s", ", ".join(self._settings.topics), named(self._positions))
        self._observer.reading(self._lag(), 0)
        return named(self._positions)

    def ends(self) -> dict[Partition, int]:
        """Where the topics end now."""
        return {partition: self._source.bounds(partition)[1] for partition in self._positions}

    def _tables(self) -> Iterator[Identifier]:
        """The tables that events may belong to, as far as they exist, and that of dead letters."""
        template, fixed = self._settings.table, self._settings.table.fixed
        if self._letters is not None:
            yield self._letters
        if fixed is not None:
            if self._catalog.table_exists(fixed):
                yield fixed
            elif not self._settings.create:
                raise NoSuchTableError(
                    f"Table {'.'.join(fixed)} does not exist: create it, or let --create do so by its first event."
                )
            return
        for namespace in self._catalog.list_namespaces():
            if template.may_be(*namespace):
                yield from (each for each in self._catalog.list_tables(namespace) if template.may_be(*each))

    def _applied_to(self, identifier: Identifier) -> dict[str, int]:
        try:
            return self._applied(self._catalog.load_table(identifier))
        except NoSuchTableError:  # dropped since it was listed
            return {}

    def _applied(self, table: Table) -> dict[str, int]:
        applied = table.applied_offsets(self._settings.name)
        if applied:
            self._check_topics(topic_ids(table, self._settings.name), f"Table {'.'.join(table.name())}")
        return applied

    def _check_topics(self, known: Mapping[str, str], who: str) -> None:
        """Refuses topics that are not those whose events were read before."""
        for topic, now in self._topic_ids.items():
            if known.get(topic, now) != now:
                raise EventsLostError(
                    f"{who} has events of topic {topic} from before it was deleted and made anew: its offsets say "
                    f"nothing of the topic that is there now (id {now}, and it was {known[topic]}). Nothing of it was "
                    "written. Read it under another --name."
                )

    # ----------------------------------------------------------------------------------------- the batches

    def batches(
        self, envelope: Envelope, stop: threading.Event, ends: Mapping[Partition, int] | None
    ) -> Iterator[Offsets]:
        """Commits batch after batch up to `ends` (None: on and on), and gives the offsets behind each, until `stop` is
        set, or a topic has got more partitions."""
        while True:
            batch = self._collected(envelope, stop, ends)
            is_over = stop.is_set() or (ends is not None and self._is_behind(ends))
            is_quiet_over = is_over or time.monotonic() - self._quiet_since > self._settings.quiet_seconds
            if batch.changes_something or (is_quiet_over and self._progress.behind(self._positions)):
                yield self._committed(batch, is_quiet_over)
            if is_over or (ends is None and self._has_new_partitions()):
                return

    def _has_new_partitions(self) -> bool:
        """Whether a topic has got partitions since the start; asked for now and then."""
        if time.monotonic() - self._looked_for_partitions < self._settings.look_for_partitions_seconds:
            return False
        self._looked_for_partitions = time.monotonic()
        return not self._positions.keys() >= set(self._source.partitions())

    def _is_behind(self, ends: Mapping[Partition, int]) -> bool:
        return not self._pending and all(self._positions.get(each, 0) >= end for each, end in ends.items())

    def _collected(self, envelope: Envelope, stop: threading.Event, ends: Mapping[Partition, int] | None) -> Batch:
        """The events that come until a batch is full, or its time is over."""
        batch, settings = Batch(), self._settings
        deadline = time.monotonic() + settings.every_seconds
        while not stop.is_set() and not (ends is not None and self._is_behind(ends)):
            left = deadline - time.monotonic()
            if left <= 0 or batch.events >= settings.max_rows or batch.bytes >= settings.max_bytes:
                break
            if not self._pending:
                self._read(min(left, _LONGEST_READ_SECONDS))
                self._observer.reading(self._lag() + batch.events, batch.events)
            while self._pending and batch.events < settings.max_rows and batch.bytes < settings.max_bytes:
                if not self._take(self._pending[0], envelope, batch):
                    return batch
                self._pending.popleft()
        return batch

    def _read(self, seconds: float) -> None:
        self._pending.extend(self._source.read(seconds))
        if not self._pending:
            for partition, position in self._positions.items():
                self._positions[partition] = max(position, self._source.reached_end(partition))

    def _lag(self) -> int:
        return sum(self._source.lag(partition, position) for partition, position in self._positions.items())

    def _take(self, record: Record, envelope: Envelope, batch: Batch) -> bool:
        """Takes an event into a batch; False if it has to wait for the next one."""
        change = None
        try:
            change = envelope(record)
            if change is not None and not self._add(record, change, batch):
                return False
        except EventProblem as problem:
            # One that names no row of a table, or no table, has its delete before it, which names them.
            if change is None or change.operation is not Operation.TOMBSTONE:
                self._refuse(record, problem, batch)
        batch.events += 1
        batch.bytes += record.size
        self._positions[(record.topic, record.partition)] = record.offset + 1
        return not batch.is_closed

    def _add(self, record: Record, change: Change, batch: Batch) -> bool:
        identifier = self._settings.table.table_of(record, change)
        if self._progress.has(identifier, record):
            batch.repeated += 1
            return True
        if change.operation is Operation.TRUNCATE and identifier in batch.parts:
            return False
        part = batch.parts.get(identifier)
        if part is None:
            part = self._part(identifier, change)
        if part is None:
            return True
        if part.is_truncated:
            return False
        if change.operation is Operation.TRUNCATE:
            part.is_truncated = True
        else:
            part.rows.add(change, record)
        batch.parts[identifier] = part
        return True

    def _refuse(self, record: Record, problem: EventProblem, batch: Batch) -> None:
        if self._letters is None:
            raise BadEventError(
                f"The event of {record} is no change of a table: {problem}. Nothing of its batch was written. Mend it, "
                "or let --dead-letters keep such events in a table of their own."
            ) from problem
        if self._progress.has(self._letters, record):
            batch.repeated += 1
        else:
            batch.letters.append(DeadLetter(record, str(problem)))

    def _part(self, identifier: Identifier, change: Change) -> TablePart | None:
        """The part of a batch for a table, which may have to be created first; None if the table is missing, and
        there is nothing to do to it."""
        try:
            table = self._catalog.load_table(identifier)
        except NoSuchTableError as error:
            if change.operation is Operation.TOMBSTONE or (
                change.operation is Operation.TRUNCATE and self._settings.create
            ):
                return None
            table = self._created(identifier, change, error)
        return TablePart(table, TableRows(identifier, table.schema(), table.format_version, self._settings.rules))

    def _created(self, identifier: Identifier, change: Change, missing: NoSuchTableError) -> Table:
        name = ".".join(identifier)
        if not self._settings.create:
            raise EventProblem(f"its table {name} does not exist: create it, or let --create do so") from missing
        try:  # another process may have been first
            schema = created_schema(change, self._settings.rules.keys)
            made = self._catalog.create_table_if_not_exists(identifier, schema)
        except (NoSuchNamespaceError, NotAnIcebergTableError, InvalidInputError) as error:
            raise EventProblem(f"its table cannot be created: {error}") from error
        logger.info("Created table %s: %s", name, made.schema())
        return made

    def _refresh(self, part: TablePart) -> None:
        """Moves a table to its newest version, for which the rows must fit still."""
        name = ".".join(part.table.name())
        try:
            self._check_unmoved(part.table.refresh())
        except NoSuchTableError as error:
            raise OffsetsMovedError(f"Table {name} was dropped meanwhile: {error}") from error
        if part.table.schema() != part.rows.schema:
            raise OffsetsMovedError(f"The columns of table {name} were changed meanwhile.")

    def _unmoved(self, identifier: Identifier) -> Table:
        table = self._catalog.load_table(identifier)
        self._check_unmoved(table)
        return table

    def _check_unmoved(self, table: Table) -> None:
        """Refuses a table that has other offsets than it had when this last looked."""
        applied, known = self._applied(table), self._progress.tables.get(table.name(), {})
        if applied != dict(known):
            raise OffsetsMovedError(
                f"Table {'.'.join(table.name())} has offsets {applied} of {self._settings.name!r}, and had "
                f"{dict(known)}: another process of this name is at work, or the table was rolled back."
            )

    def _committed(self, batch: Batch, with_quiet: bool) -> Offsets:
        """Commits a batch, and the offsets of quiet tables if they are due."""
        started, after = time.monotonic(), named(self._positions)
        changed = set(batch.parts)
        if batch.letters and self._letters is not None:
            changed.add(self._letters)
        quiet = self._progress.behind(self._positions) - changed if with_quiet else set()
        commit, positions = BatchCommit(self._catalog, self._settings.name, self._topic_ids), self._positions
        try:
            for identifier, part in batch.parts.items():
                self._refresh(part)
                commit.apply(part, self._progress.after(identifier, positions))
            if batch.letters and self._letters is not None:
                letters = dead_letter_rows(batch.letters)
                commit.append(self._unmoved(self._letters), letters, self._progress.after(self._letters, positions))
            for identifier in quiet:
                commit.move(self._unmoved(identifier), self._progress.after(identifier, positions))
            before, self._topic_ids = self._topic_ids, self._source.topic_ids()
            self._check_topics(before, "This batch")
        except BaseException:
            commit.abandon()
            raise
        commit.commit()
        self._progress = self._progress.moved(changed | quiet, self._positions)
        if with_quiet:
            self._quiet_since = time.monotonic()
        self._observer.batch(
            BatchReport(
                rows={".".join(name): len(part.rows) for name, part in batch.parts.items()},
                dead_letters=len(batch.letters),
                repeated=batch.repeated,
                offsets=after,
                lag=self._lag(),
                seconds=time.monotonic() - started,
            )
        )
        return after
