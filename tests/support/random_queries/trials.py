"""Runs queries on tables and on their copies, and tells what differs."""

from __future__ import annotations

import random
import re
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support.random_queries.draws import Draws, smaller
from tests.support.random_queries.queries import Queries, Query
from tests.support.random_queries.settings import drawn
from tests.support.random_queries.tables import LivingTable, Reference

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hms_iceberg.catalog import Catalog

TABLES, QUERIES_OF_A_BATCH, SMALLER_TRIALS, SMALLER_SECONDS = 3, 60, 60, 60
MOST_ROWS = 50_000  # of a query that is compared: a join of two tables may have millions, which Python cannot hold
# Partition fields of most tables of a batch.
SHARED = (
    (),
    ("bucket(4, k)",),
    ("bucket(4, id)",),
    ("truncate(10, k)",),
    ("months(dt)",),
    ("bucket(2, s)", "days(dt)"),
)
# What plans do, by words in them.
PLANS = {
    "plan: broadcast join": "BroadcastHashJoin",
    "plan: sorted join": "SortMergeJoin",
    "plan: hashed join": "ShuffledHashJoin",
    "plan: nested loop": "NestedLoopJoin",
    "plan: pruned at run time": "pruning",
    "plan: bloom filter": "might_contain",
    "plan: exchange used again": "ReusedExchange",
}


@dataclass
class Tally:
    """What was run: figures, and what differed."""

    queries: int = 0
    with_rows: int = 0
    seconds: float = 0
    making: float = 0
    errors: Counter[str] = field(default_factory=Counter)
    features: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        share = f"{100 * self.with_rows // max(self.queries, 1)}% with rows"
        errors = f"{sum(self.errors.values())} errors on both sides: {dict(self.errors.most_common(8))}"
        features = ", ".join(f"{name} {count}" for name, count in self.features.most_common())
        times = f"{self.queries} queries in {self.seconds:.0f} s ({self.making:.0f} of them for tables)"
        return f"{times}, {share}, {len(self.faults)} faults; {errors}\n{features}"


@dataclass(frozen=True)
class Outcome:
    """What a query gave: rows with their types, or an error."""

    types: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()
    error: str = ""
    message: str = field(default="", compare=False)  # it has numbers of Spark's, which differ
    plan: frozenset[str] = field(default=frozenset(), compare=False)

    def told(self, other: Outcome) -> str:
        """What it has that another has not."""
        if self.error or other.error:
            return f"{self.error or f'{len(self.rows)} rows'} {self.message[:1500]}"
        more = list((Counter(self.rows) - Counter(other.rows)).elements())
        types = self.types if self.types != other.types else ""
        return f"{len(self.rows)} rows, {len(more)} of them only here: {more[:3]} {types}"


class Trials:
    """Batches of tables and queries.

    Args:
        spark: a session.
        catalog: the same tables.
        namespace: where tables are made.
        folder: a local folder for files.
        seed: of everything.
        tell: gets each fault, that of a query before and after it was made smaller.
    """

    def __init__(
        self,
        spark: SparkSession,
        catalog: Catalog,
        namespace: str,
        folder: Path,
        seed: int,
        tell: Callable[[str], None] = lambda fault: None,
    ) -> None:
        self.spark, self.catalog, self.namespace = spark, catalog, namespace
        self.folder, self.seed, self._tell = folder, seed, tell
        self.tally = Tally()

    def batch(
        self,
        number: int,
        seconds: float,
        only: int | None = None,
        queries: int = QUERIES_OF_A_BATCH,
        tables: int = TABLES,
    ) -> None:
        """Makes tables and runs queries on them.

        Args:
            number: of the batch.
            seconds: after how many to begin no further query.
            only: the one query to run; all by default.
            queries: how many there are.
            tables: how many there are.
        """
        begun = time.monotonic()
        living = [table for place in range(tables) if (table := self._living(number, place)) is not None]
        references = [reference for table in living for reference in self._references(table)]
        made = time.monotonic()
        self.tally.making += made - begun
        for query in range(queries) if only is None else [only]:
            if references and time.monotonic() < made + seconds:
                self._try(living, references, number, query)
        for table in living:
            self.spark.sql(f"drop table {table.name} purge")
        self.tally.seconds += time.monotonic() - begun

    def _living(self, number: int, place: int) -> LivingTable | None:
        choose, table = random.Random(f"{self.seed}/{number}/{place}"), list[LivingTable]()
        name = f"{self.namespace}.t{number}_{place}"
        try:
            shared, is_big = SHARED[(self.seed + number) % len(SHARED)], choose.random() < 0.3
            table.append(LivingTable(self.spark, self.catalog, name, choose, self.folder, shared, is_big))
            table[0].live()
        except Exception:
            told = table[0].told if table else []
            self._fault(f"{self.seed}/{number}: life of table {place} ended", traceback.format_exc(limit=-8), *told)
            return None
        return table[0]

    def _references(self, table: LivingTable) -> list[Reference]:
        references = table.references()
        for each in references[2:]:
            ours, plain = (self._run(f"select * from {name}", False) for name in (each.ours, each.plain))
            self.tally.queries += 1
            self.tally.with_rows += bool(ours.rows)
            if ours != plain:
                self._fault(f"{self.seed}: rows of {each.ours}", ours.told(plain), plain.told(ours), *table.told)
                return []
        return references

    # ----------------------------------------------------------------------------------------- one query

    def _try(self, tables: Sequence[LivingTable], references: Sequence[Reference], number: int, query: int) -> None:
        source = random.Random(f"{self.seed}/{number}/query/{query}")
        chosen, drawing = Draws(source), Draws(source)
        settings = drawn(chosen)
        made = Queries(drawing, references).query()
        ours, plain = self._both(made, references, settings)
        self.tally.queries += 1
        self.tally.features.update(made.features | ours.plan)
        if ours.error and ours.error == plain.error:
            self.tally.errors[ours.error] += 1
        elif ours.rows:
            self.tally.with_rows += 1
        if ours == plain:
            return
        self._tell(f"{self.seed}/{number}/{query}: {settings} {made.on(references, True)}")
        made, settings = self._smallest(drawing.numbers, references, settings)
        ours, plain = self._both(made, references, settings)
        self._fault(
            f"{self.seed}/{number}/{query}",
            f"settings {settings}",
            made.on(references, True),
            f"ours: {ours.told(plain)}",
            f"plain: {plain.told(ours)}",
            made.on(references, False),
            *(
                f"{table.name}: {line}"
                for table in tables
                for line in table.told
                if table.name in made.on(references, True)
            ),
        )

    def _smallest(
        self, numbers: Sequence[int], references: Sequence[Reference], settings: dict[str, str]
    ) -> tuple[Query, dict[str, str]]:
        """A smaller query, and fewer settings, that still differ."""

        end = time.monotonic() + SMALLER_SECONDS

        def differs(numbers: Sequence[int], settings: dict[str, str]) -> bool:
            if time.monotonic() > end:
                return False
            ours, plain = self._both(Queries(Draws(None, numbers), references).query(), references, settings)
            return ours != plain

        for name in sorted(settings):
            fewer = {key: value for key, value in settings.items() if key != name}
            if differs(numbers, fewer):
                settings = fewer
        numbers = smaller(numbers, lambda each: differs(each, settings), SMALLER_TRIALS)
        return Queries(Draws(None, numbers), references).query(), settings

    def _both(self, query: Query, references: Sequence[Reference], settings: dict[str, str]) -> tuple[Outcome, Outcome]:
        before = {name: self.spark.conf.get(name, None) for name in settings}
        for name, value in settings.items():
            self.spark.conf.set(name, value)
        try:
            plain = self._run(query.on(references, False), query.is_ordered, MOST_ROWS)
            if len(plain.rows) > MOST_ROWS:
                return plain, plain
            ours = self._run(query.on(references, True), query.is_ordered)
        finally:
            for name, old in before.items():
                if old is None:
                    self.spark.conf.unset(name)
                else:
                    self.spark.conf.set(name, old)
        return ours, plain

    def _run(self, text: str, is_ordered: bool, most: int | None = None) -> Outcome:
        """Runs a query; `most` is how many rows it may have, and one more is taken if it has more."""
        try:
            frame = self.spark.sql(text)
            rows = [repr(row) for row in (frame if most is None else frame.limit(most + 1)).collect()]
        except Exception as error:
            return Outcome(error=error_class(error), message=str(error))
        types = tuple(each.simpleString() for each in frame.schema)
        plan = frame._jdf.queryExecution().executedPlan().toString()
        found = {feature for feature, word in PLANS.items() if word in plan}
        if "Join" in plan and "Exchange" not in plan and "Broadcast" not in plan:
            found.add("plan: join without exchange")
        return Outcome(types, tuple(rows if is_ordered else sorted(rows)), plan=frozenset(found))

    def _fault(self, *lines: Any) -> None:
        self.tally.faults.append("\n    ".join(map(str, lines)))
        self._tell(self.tally.faults[-1])


def error_class(error: Exception) -> str:
    """What kind of error it is: Spark's condition, or the class."""
    found = re.search(r"\[([A-Z][A-Z0-9_]+)[\].]", str(error))
    return found[1] if found else f"{type(error).__name__}: {str(error)[:80]}"
