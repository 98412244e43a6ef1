"""Events of a DataFrame, or of a stream of them, applied to a table: Spark finds the newest of each key, and merges it.

The driver sees no rows but those of an error. The statement runs in a copy of the frame's session, whose settings give
its snapshot the offsets: they are committed with the rows, or not at all.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from hms_iceberg.errors import (
    ChangeEventError,
    CommitConflictError,
    InvalidInputError,
    SchemaMismatchError,
    UnsupportedError,
)
from hms_iceberg.spark.spark_versions import release
from hms_iceberg.spec.snapshots_and_refs import MAIN_BRANCH
from hms_iceberg.table.change_events.apply_changes import AppliedChanges, ApplyOptions, source_reader
from hms_iceberg.table.change_events.events import DELETES, UPSERTS, EventColumns
from hms_iceberg.table.changes.row_change import BY_COST
from hms_iceberg.table.table import APPLY_BY_SPARK, Table
from hms_iceberg.updates.applied_offsets import KNOWN_OFFSETS, OFFSETS, SourceReader, as_text, is_applied

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

logger = logging.getLogger(__name__)

_PLACE, _RANK, _EVENTS, _FAULT, _DELETES = (
    f"__change_{each}" for each in ("place", "rank", "events", "fault", "deletes")
)
_SNAPSHOT_PROPERTY = "spark.sql.iceberg.snapshot-property."
_QUERY_ID = "sql.streaming.queryId"
_TRIES = 5
_FIRST_THAT_EVOLVES = (4, 2)


def apply_changes(
    events: DataFrame,
    table: str,
    *,
    keys: Sequence[str],
    operation: str | None = None,
    order: str | Sequence[str] | None = None,
    offsets: Mapping[str, int] | None = None,
    name: str | None = None,
    evolve: bool = False,
    branch: str = MAIN_BRANCH,
    since: Mapping[str, int] | None = None,
) -> AppliedChanges:
    """Applies the events of a DataFrame to a table of its session, as `Table.apply_changes` does, by a MERGE.

    Args:
        events: the events, of an extended session.
        table: the table's name in that session.
        keys, operation, order, offsets, name, since: as of `Table.apply_changes`. Among events of one order the later
            one is that of the later partition, and in it the later row.
        branch: the branch to change, which must exist.
        evolve: whether columns that the table lacks are added, and types made wider (from Spark 4.2 on).

    Returns:
        what became of the events; Spark does not count rows.

    Raises:
        ChangeEventError: an event has no key, no order or an unknown operation; nothing was written.
        SchemaMismatchError: a column is missing, or the table lacks it.
        InvalidInputError: an argument is wrong; or some of the events are applied already, or some before them are not.
        UnsupportedError: a frame of Spark Connect, or `evolve` with a Spark before 4.2.
        CommitConflictError: other writers changed the same rows again and again.
    """
    columns = EventColumns.of(keys, operation, order, table)
    return _Merge(events, table, columns, evolve, branch).run(name, offsets, since)


def changes_to(
    table: str,
    *,
    keys: Sequence[str],
    operation: str | None = None,
    order: str | Sequence[str] | None = None,
    name: str,
    evolve: bool = False,
    branch: str = MAIN_BRANCH,
) -> Callable[[DataFrame, int], None]:
    """A function for `foreachBatch` that applies each batch of a stream to a table, exactly once.

    >>> stream.writeStream.foreachBatch(changes_to("db.orders", keys=["id"], operation="op", name="orders")).start()

    The part of the source is the stream's query id, which its checkpoint keeps, and its offset the next batch. A batch
    that comes again after a restart is recognised. A stream with a new checkpoint is a new part, and begins anew. If
    the table was rolled back behind the stream's back, the next batch is refused: give the stream a new checkpoint.

    Args:
        table, keys, operation, order, name, evolve, branch: as of `apply_changes`.

    Returns:
        the function, of a batch's DataFrame and number.
    """
    columns = EventColumns.of(keys, operation, order, table)

    def apply_batch(events: DataFrame, batch: int) -> None:
        query = events.sparkSession.sparkContext.getLocalProperty(_QUERY_ID) or "batches"
        merge = _Merge(events, table, columns, evolve, branch)
        merge.run(name, {query: batch + 1}, {query: batch})

    return apply_batch


def _apply_by_spark(events: Any, table: Table, columns: EventColumns, options: ApplyOptions) -> AppliedChanges:
    """Applies a DataFrame to a table that was loaded in Python, if its session has the same."""
    if options.mode != BY_COST:
        raise UnsupportedError(
            f"Cannot apply changes of Spark to table {'.'.join(table.name())} in mode {options.mode!r}: Spark's MERGE "
            "does as the table's write.merge.mode says. Set that, and leave the mode out."
        )
    session = events.sparkSession
    catalog = table.catalog_name
    known = session.conf.get(f"spark.sql.catalog.{catalog}", None) if catalog else None
    name = _quoted((catalog if known else "spark_catalog", *table.name()))
    table.refresh()
    log = session.sql(f"select file from {name}.metadata_log_entries").collect()
    if table.metadata_location not in {row[0] for row in log}:
        raise InvalidInputError(
            f"Cannot apply changes of Spark to table {'.'.join(table.name())}: {name} in the session is another table. "
            "Use hms_iceberg.spark.apply_changes with the name that the session has for it."
        )
    reader = options.reader
    given = (None, None, None) if reader is None else (reader.name, reader.offsets, reader.since)
    applied = _Merge(events, name, columns, options.evolve, options.branch).run(*given)
    table.refresh()
    return applied


APPLY_BY_SPARK.set(_apply_by_spark)


class _Merge:
    """One application of a frame's events."""

    def __init__(self, events: DataFrame, table: str, columns: EventColumns, evolve: bool, branch: str) -> None:
        if type(events).__module__.startswith("pyspark.sql.connect"):
            raise UnsupportedError(
                f"Cannot apply changes to table {table}: the frame is one of Spark Connect, whose settings and views "
                "cannot be copied. Apply it in a classic session."
            )
        if evolve and release(events.sparkSession.version) < _FIRST_THAT_EVOLVES:
            raise UnsupportedError(
                f"Cannot apply changes to table {table} with evolve: MERGE adds columns from Spark 4.2 on, and this is "
                f"{events.sparkSession.version}. Add the columns first (alter table)."
            )
        self._events = events
        self._table = table
        self._columns = columns
        self._evolve = evolve
        self._branch = branch
        columns.require_in(events.columns, table)

    def run(
        self, name: str | None, offsets: Mapping[str, int] | None, since: Mapping[str, int] | None
    ) -> AppliedChanges:
        """Applies the events, once more after each conflict."""
        reader = source_reader(self._table, name, offsets, since, lambda known: self._applied(self._events, known))
        if reader is not None:
            if is_applied(reader.offsets, reader.known):
                return AppliedChanges(is_repeated=True, offsets=reader.known, **_UNCOUNTED)
            reader.check(reader.known, self._table)
        after = {} if reader is None else {**reader.known, **reader.offsets}
        view = f"__change_events_{uuid.uuid4().hex}"
        statement = self._statement(view)
        with self._newest(self._in_copied_session()) as newest:
            session = newest.sparkSession
            events, keys = self._checked(newest)
            newest.where(f"{_RANK} = 1").createTempView(view)
            if reader is not None:
                session.conf.set(_SNAPSHOT_PROPERTY + OFFSETS + reader.name, as_text(after))
                session.conf.set(_SNAPSHOT_PROPERTY + KNOWN_OFFSETS + reader.name, as_text(reader.known))
            self._merge(session, statement, reader)
        return AppliedChanges(events, events_superseded=events - keys, offsets=after, **_UNCOUNTED)

    def _applied(self, frame: DataFrame, name: str) -> dict[str, int]:
        """The offsets that the table has, as the session's catalog says."""
        session = frame.sparkSession
        parts = session._jsparkSession.sessionState().sqlParser().parseMultipartIdentifier(self._table)
        catalog = f"{_quoted((parts.apply(0),))}." if parts.size() > 2 else ""
        arguments = f"table => {_text(self._table)}, name => {_text(name)}, branch => {_text(self._branch)}"
        rows = session.sql(f"call {catalog}system.applied_offsets({arguments})").collect()
        return {row[0]: row[1] for row in rows}

    # ------------------------------------------------------------------------------------------- frames

    def _in_copied_session(self) -> DataFrame:
        """The frame in a session like its own, for settings that no other statement sees."""
        from pyspark import SparkContext
        from pyspark.sql import SparkSession

        own = self._events.sparkSession
        jvm: Any = SparkContext._jvm
        copied = own._jsparkSession.cloneSession()
        sql = jvm.org.apache.spark.sql
        datasets = sql.Dataset if release(own.version) < (4, 0) else sql.classic.Dataset
        plan = self._events._jdf.queryExecution().logical()
        return type(self._events)(datasets.ofRows(copied, plan), SparkSession(own.sparkContext, copied))

    @contextmanager
    def _newest(self, frame: DataFrame) -> Iterator[DataFrame]:
        """The newest event of each key, and any event at fault, as they are now: a MERGE may read them twice. Executors
        keep them until the block ends."""
        from pyspark.sql import Window
        from pyspark.sql import functions as f

        keys = [f.col(_quoted(key.split("."))) for key in self._columns.keys]
        order = [f.col(_quoted((name,))) for name in self._columns.order]
        same_key = Window.partitionBy(*keys)
        newest_first = same_key.orderBy(*(each.desc() for each in order), f.col(_PLACE).desc())
        ranked = (
            frame.withColumn(_PLACE, f.monotonically_increasing_id())
            .withColumn(_FAULT, self._fault(keys, order))
            .withColumn(_DELETES, self._operation().isin(*DELETES) if self._columns.operation else f.lit(False))
            .withColumn(_RANK, f.row_number().over(newest_first))
            .withColumn(_EVENTS, f.count(f.lit(1)).over(same_key))
        )
        kept = ranked.where(f"{_RANK} = 1 or {_FAULT} is not null").localCheckpoint()
        try:
            yield kept
        finally:
            kept._jdf.queryExecution().logical().rdd().unpersist(False)

    def _operation(self) -> Column:
        from pyspark.sql import functions as f

        assert self._columns.operation is not None
        return f.lower(f.col(_quoted((self._columns.operation,))).cast("string"))

    def _fault(self, keys: Sequence[Column], order: Sequence[Column]) -> Column:
        """Why an event cannot be applied; null if it can."""
        from pyspark.sql import functions as f

        fault = f.lit(None).cast("string")
        if self._columns.operation is not None:
            operation = self._operation()
            said = f.concat(f.lit("has the unknown operation '"), operation, f.lit("'"))
            fault = f.when(~operation.isin(*DELETES, *UPSERTS), said).otherwise(fault)
            fault = f.when(operation.isNull(), f.lit("has no operation")).otherwise(fault)
        for names, columns, what in ((self._columns.order, order, "order"), (self._columns.keys, keys, "key")):
            for name, column in zip(names, columns, strict=True):
                fault = f.when(column.isNull(), f.lit(f"has no {what}: {name!r} is null")).otherwise(fault)
        return fault

    def _checked(self, newest: DataFrame) -> tuple[int, int]:
        """The numbers of events and of keys; refuses events at fault."""
        from pyspark.sql import functions as f

        named = [f.col(_quoted((each.split(".")[0],))) for each in (*self._columns.keys, *self._columns.order)]
        shown = f.to_json(f.struct(*named), {"ignoreNullFields": "false"})
        found = newest.agg(
            f.sum(f.when(f.col(_RANK) == 1, f.col(_EVENTS))),
            f.count(f.when(f.col(_RANK) == 1, f.lit(1))),
            f.min(f.when(f.col(_FAULT).isNotNull(), f.struct(_PLACE, _FAULT, shown.alias("shown")))),
        ).first()
        assert found is not None
        if found[2] is not None:
            raise ChangeEventError(
                f"Cannot apply changes to table {self._table}: an event ({found[2]['shown']}) {found[2][_FAULT]}. "
                "Known operations are insert, update, upsert, delete, and c, r, u, i, d.",
                found[2][_PLACE],
            )
        return found[0] or 0, found[1]

    # -------------------------------------------------------------------------------------------- the statement

    def _merge(self, session: SparkSession, statement: str, reader: SourceReader | None) -> None:
        for attempt in range(1, _TRIES + 1):
            try:
                session.sql(statement)
                return
            except Exception as error:
                if CommitConflictError.__name__ not in str(error) or attempt == _TRIES:
                    raise
                logger.info("Changes of %s lost attempt %d, trying again: %s", self._table, attempt, error)
            if reader is not None:
                reader.check(self._applied(self._events, reader.name), self._table)

    def _statement(self, view: str) -> str:
        """The MERGE of the events in a view; refuses columns that the table lacks."""
        session = self._events.sparkSession
        target = self._table if self._branch == MAIN_BRANCH else f"{self._table}.{_quoted((f'branch_{self._branch}',))}"
        own = session.table(self._table).columns
        is_exact = session.conf.get("spark.sql.caseSensitive", "false") == "true"
        same = {each if is_exact else each.lower(): each for each in own}
        control = {each for each in self._columns.control if (each if is_exact else each.lower()) not in same}
        data = [each for each in self._events.columns if each not in control]
        unknown = [each for each in data if (each if is_exact else each.lower()) not in same]
        if unknown and not self._evolve:
            raise SchemaMismatchError(
                f"Cannot apply changes to table {self._table}: it lacks the column {', '.join(map(repr, unknown))} of "
                f"the events; it has {', '.join(own)}. Leave it out, or add it (evolve=True)."
            )
        on = " and ".join(f"t.{_quoted(key.split('.'))} = s.{_quoted(key.split('.'))}" for key in self._columns.keys)
        guard = self._guard(control)
        assigned = [_quoted((each,)) for each in data]
        sets = ", ".join(f"{each} = s.{each}" for each in assigned)
        evolution = "with schema evolution " if self._evolve else ""
        return (
            f"merge {evolution}into {target} t using {view} s on {on} "
            f"when matched and s.{_DELETES}{guard} then delete "
            f"when matched and not s.{_DELETES}{guard} then update set {sets} "
            f"when not matched and not s.{_DELETES} then insert ({', '.join(assigned)}) "
            f"values ({', '.join(f's.{each}' for each in assigned)})"
        )

    def _guard(self, control: set[str]) -> str:
        """The condition that the row of the table is not newer than the event, if it has the order."""
        if not self._columns.order or control & set(self._columns.order):
            return ""
        stored, given = (
            f"struct({', '.join(f'{side}.{_quoted((name,))}' for name in self._columns.order)})" for side in "ts"
        )
        return f" and not {stored} > {given}"


_UNCOUNTED: dict[str, Any] = {"rows_inserted": None, "rows_updated": None, "rows_deleted": None}


def _quoted(parts: Sequence[str]) -> str:
    """A name of several parts in SQL."""
    return ".".join(f"`{part.replace('`', '``')}`" for part in parts)


def _text(value: str) -> str:
    """A text literal of Spark's SQL."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
