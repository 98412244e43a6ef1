"""Random tables and statements in Spark's SQL, for tests that run them by two engines and compare.

The types, values, predicates and partition transforms are those of `expression_strategies`. A table has the columns
`a`, `b`, a struct `s` and a number `n`; later perhaps `e`. In the statements `{t}` stands for the table's name, and
`{system}` for the catalog whose procedures are called.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from hms_iceberg.expressions.literals import stored_literal
from hms_iceberg.expressions.tree import BooleanExpression
from hms_iceberg.spec.data_types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    StringType,
    TimestampType,
    TimestamptzType,
)
from hms_iceberg.spec.partition_transforms import BucketTransform, Transform, TruncateTransform
from hms_iceberg.spec.promotion import can_promote
from tests.support.expression_strategies import (
    TRANSFORMS,
    expressions,
    near_values,
    own_literals,
    predicates,
    tables,
)
from tests.support.random_tables import WIDER
from tests.support.spark_conditions import condition, literal_text

# What Spark's SQL creates.
KINDS: tuple[IcebergType, ...] = (
    BooleanType(),
    IntegerType(),
    LongType(),
    FloatType(),
    DoubleType(),
    DecimalType(5, 2),
    DecimalType(38, 0),
    DateType(),
    TimestampType(),
    TimestamptzType(),
    StringType(),
    BinaryType(),
)
FORMATS = ("parquet", "orc", "avro")
MODES = ("copy-on-write", "merge-on-read")
COMMANDS = ("delete", "update", "merge")
# Version, mode and format that tables begin with.
FORMS = (
    (2, "copy-on-write", "orc"),
    (3, "merge-on-read", "avro"),
    (1, "copy-on-write", "avro"),
    (2, "merge-on-read", "orc"),
    (3, "copy-on-write", "parquet"),
    (2, "merge-on-read", "parquet"),
    (3, "merge-on-read", "orc"),
    (2, "copy-on-write", "avro"),
    (1, "copy-on-write", "parquet"),
    (3, "merge-on-read", "parquet"),
)
_NAMES = {LongType(): "bigint", TimestampType(): "timestamp_ntz", TimestamptzType(): "timestamp"}
_TIMES = (TimestampType, TimestamptzType)


@dataclass(frozen=True)
class Step:
    """A statement, and the table after it.

    Args:
        sql: the statement.
        ours: whether it is ours to run, and not the peer's.
        columns: all that a row holds, as values that are the same wherever they are shown.
        version: of the table's format.
        conditions: to read the table by.
    """

    sql: str
    ours: bool
    columns: str
    version: int
    conditions: tuple[str, ...] = ()

    def __repr__(self) -> str:
        wheres = "".join(f"\n  where {each}" for each in self.conditions)
        return f"\n{'ours' if self.ours else 'theirs'}: {self.sql};{wheres}"


def random_histories(number: int, count: int, steps: int = 8) -> list[list[Step]]:
    """So many tables with so many statements each, the last of which has conditions; the same for the same number.

    Formats, modes and versions are taken in turn.
    """
    found: list[list[Step]] = []

    @seed(number)
    @settings(
        max_examples=count + 1,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate,),
    )
    @given(st.data())
    def collect(data: st.DataObject) -> None:
        found.append(_history(data.draw, FORMS[(len(found) - 1) % len(FORMS)], steps))

    collect()
    return found[1 : count + 1]  # hypothesis begins with the least of all, whose statements all do the same


def _history(draw: Callable[[st.SearchStrategy[Any]], Any], form: tuple[int, str, str], steps: int) -> list[Step]:
    table = _Table(draw, form)
    history = []
    for number in range(steps):
        make = table.create if number == 0 else table.insert if number < 3 else table.statement
        sql, ours = make(), draw(st.sampled_from([True, True, False]))
        conditions = tuple(table.condition() for _ in range(2 if number == steps - 1 else 0))
        history.append(Step(sql, ours, table.columns(), table.version, conditions))
    return history


class _Table:
    """A table as its statements make it if they succeed, and the statements that may come next.

    Args:
        draw: hypothesis's.
        form: its first version, mode and format.
    """

    def __init__(self, draw: Callable[[st.SearchStrategy[Any]], Any], form: tuple[int, str, str]) -> None:
        self._draw = draw
        self.version, self._mode, self._format = form
        schema = self._draw(tables(KINDS))
        self.kinds: dict[str, IcebergType] = {name: schema.find_type(name) for name in ("a", "b", "s.c")}
        self._required = {name for name in ("a", "b", "s", "s.c") if schema.find_field(name).required}
        self._terms: list[str] = []
        self._sources: set[str] = set()
        self._known: dict[str, list[str]] = {}
        self._next = 0

    def _chance(self, one_in: int) -> bool:
        return bool(self._draw(st.sampled_from([True, *[False] * (one_in - 1)])))

    # ------------------------------------------------------------------------------------------- the table

    def create(self) -> str:
        """The first statement."""
        columns = [f"{name} {self._sql_type(name)}{self._not_null(name)}" for name in ("a", "b", "s")]
        properties = {"format-version": str(self.version), "write.format.default": self._format}
        properties |= {f"write.{command}.mode": self._mode for command in COMMANDS}
        self._terms = [
            term for term in (self._term() for _ in range(self._draw(st.sampled_from([0, 0, 1, 2])))) if term
        ]
        partitioned = f" partitioned by ({', '.join(self._terms)})" if self._terms else ""
        told = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
        return f"create table {{t}} ({', '.join(columns)}, n bigint) using iceberg{partitioned} tblproperties ({told})"

    def columns(self) -> str:
        """As `Step` has them."""
        flat = ["n", "s is null", *self.kinds]
        return ", ".join(
            f"unix_micros({name})" if isinstance(self.kinds.get(name), TimestamptzType) else name for name in flat
        )

    def _sql_type(self, name: str) -> str:
        if name == "s":
            return f"struct<c: {self._sql_type('s.c')}{self._not_null('s.c')}>"
        return _NAMES.get(self.kinds[name], str(self.kinds[name]))

    def _not_null(self, name: str) -> str:
        return " not null" if name in self._required else ""

    def _term(self) -> str | None:
        """A partition field of a column that has none yet."""
        possible = [
            (name, each)
            for name, kind in self.kinds.items()
            for each in TRANSFORMS
            # Truncating the least of 38 digits gives one of 39; Spark's SQL knows no transform `void`.
            if each.can_transform(kind)
            and not each.is_void
            and name not in self._sources
            and not (isinstance(each, TruncateTransform) and kind == DecimalType(38, 0))
            and not isinstance(kind, (FloatType, DoubleType))
        ]
        if not possible:
            return None
        name, transform = self._draw(st.sampled_from(possible))
        self._sources.add(name)
        return _term_text(transform, name)

    # -------------------------------------------------------------------------------------------- values

    def _literal(self, name: str) -> str:
        """A value of a column; null as often as it may be, and now and then where it may not."""
        if name == "s":
            if "s" not in self._required and self._chance(6):
                return f"cast(null as {self._sql_type('s')})"
            return f"named_struct('c', {self._literal('s.c')})"
        kind = self.kinds[name]
        if self._chance(40 if name in self._required else 5):
            return f"cast(null as {_NAMES.get(kind, kind)})"
        known = self._known.setdefault(name, [])
        if known and not self._chance(3):  # rows of one partition, and of one file
            return str(self._draw(st.sampled_from(known)))
        known.append(literal_text(stored_literal(_held(self._draw(near_values(kind)), kind), kind)))
        return known[-1]

    def _names(self) -> list[str]:
        return ["a", "b", "s", *(["e"] if "e" in self.kinds else [])]

    def _rows(self, least: int, most: int) -> str:
        """Rows of all columns, `n` first, numbered on."""
        rows = []
        for _ in range(self._draw(st.integers(least, most))):
            self._next += 1
            rows.append(f"({', '.join([f'{self._next}L', *(self._literal(name) for name in self._names())])})")
        return f"values {', '.join(rows)}"

    def condition(self, subqueries: bool = False) -> str:
        kinds = {**self.kinds, "n": LongType()}
        leaves = st.one_of(*(predicates(name, kind, _own) for name, kind in kinds.items()))
        found: BooleanExpression = self._draw(expressions(leaves, 3))
        number = self._draw(st.integers(1, max(self._next, 1)))
        text = condition(found)
        ways = [text, f"n = {number}", f"n < {number}", f"n in ({number}, {number + 2})", f"n % 3 = {number % 3}"]
        ways += [f"{text} and n <> {number}", f"{text} or n = {number}"]
        text = self._draw(st.sampled_from(ways))
        if not subqueries or not self._chance(4):
            return text
        return str(
            self._draw(
                st.sampled_from(
                    [
                        f"n in (select n from {{t}} where {text})",
                        f"n not in (select n from {{t}} where {text})",
                        f"{text} and n > (select min(n) from {{t}})",
                        f"exists (select 1 from (values (1L), (4L), (null)) v(x) where v.x = n) or {text}",
                    ]
                )
            )
        )

    # ------------------------------------------------------------------------------------------ statements

    def statement(self) -> str:
        """Any statement but the first."""
        kinds: list[Callable[[], str]] = [self.insert, self._delete, self._delete, self._update, self._update]
        kinds += [self._merge, self._merge, self._merge, self._define, self._set, self._rewrite]
        return str(self._draw(st.sampled_from(kinds))())

    def insert(self) -> str:
        """Rows into one file, or one for each partition."""
        names = ", ".join(["n", *self._names()])
        return f"insert into {{t}} ({names}) select /*+ coalesce(1) */ * from {self._rows(3, 8)}"

    def _delete(self) -> str:
        return f"delete from {{t}} where {self.condition(subqueries=True)}"

    def _assignments(self, source: str = "") -> str:
        names = self._draw(st.lists(st.sampled_from([*self._names(), "n", "s.c"]), min_size=1, max_size=2, unique=True))
        if {"s", "s.c"} <= set(names):
            names.remove("s.c")
        told = []
        for name in names:
            value = "n + 100" if name == "n" else self._literal(name)
            told.append(f"{name} = {f'{name}{source}' if source and name != 's.c' else value}")
        return ", ".join(told)

    def _update(self) -> str:
        return f"update {{t}} set {self._assignments()} where {self.condition(subqueries=True)}"

    def _merge(self) -> str:
        names = ["n", *self._names()]
        known = self._draw(st.lists(st.integers(1, max(self._next, 1)), max_size=5, unique=True))
        rows = [f"({', '.join([f'{n}L', *(self._literal(name) for name in names[1:])])})" for n in known]
        new = self._rows(1, 2).removeprefix("values ")
        source = f"(select * from values {', '.join([*rows, new])} as src({', '.join(f'{name}2' for name in names)}))"
        on = "n = n2" + (f" and {self.condition()}" if self._chance(3) else "")
        clauses = []
        if self._chance(3):
            clauses.append(f"when matched and {self.condition()} then delete")
        taken = ", ".join(f"{name} = {name}2" for name in names[1:])
        last = self._draw(
            st.sampled_from(["delete", f"update set {taken}", f"update set {self._assignments('2')}", ""])
        )
        clauses += [f"when matched then {last}"] if last else []
        if not clauses or not self._chance(3):
            values = ", ".join(f"{name}2" for name in names)
            clauses.append(f"when not matched then insert ({', '.join(names)}) values ({values})")
        if self._chance(4):
            what = self._draw(st.sampled_from(["delete", "update set n = n - 1000"]))
            clauses.append(f"when not matched by source and {self.condition()} then {what}")
        return f"merge into {{t}} using {source} src on {on} {' '.join(clauses)}"

    def _define(self) -> str:
        """Another column, type or partitioning."""
        ways: list[Callable[[], str | None]] = [self._add_column, self._promote, self._repartition, self._repartition]
        return self._draw(st.sampled_from(ways))() or self.insert()

    def _add_column(self) -> str | None:
        if "e" in self.kinds:
            return None
        self.kinds["e"] = self._draw(st.sampled_from(KINDS))
        return f"alter table {{t}} add column e {self._sql_type('e')}"

    def _promote(self) -> str | None:
        for name in ("a", "b"):
            for wider in WIDER:
                kind = self.kinds[name]
                if kind != wider and name not in self._sources and can_promote(kind, wider, self.version):
                    self.kinds[name] = wider
                    return f"alter table {{t}} alter column {name} type {self._sql_type(name)}"
        return None

    def _repartition(self) -> str | None:
        if self._terms and self._chance(2):
            return f"alter table {{t}} drop partition field {self._terms.pop()}"
        term = self._term()
        if term is None:
            return None
        self._terms.append(term)
        return f"alter table {{t}} add partition field {term}"

    def _set(self) -> str:
        ways = [("write.format.default", self._draw(st.sampled_from(FORMATS)))]
        if self.version > 1:
            ways += [(f"write.{command}.mode", self._draw(st.sampled_from(MODES))) for command in COMMANDS]
        if self.version < 3:
            ways.append(("format-version", str(self.version + 1)))
        key, value = self._draw(st.sampled_from(ways))
        self.version = int(value) if key == "format-version" else self.version
        return f"alter table {{t}} set tblproperties ('{key}' = '{value}')"

    def _rewrite(self) -> str:
        where = self._draw(st.sampled_from(["", ", where => 'n < 6'", ", where => 'n in (1, 3, 7)'"]))
        options = "options => map('rewrite-all', 'true')"
        return f"call {{system}}.system.rewrite_data_files(table => '{{t}}'{where}, {options})"


def _term_text(transform: Transform, name: str) -> str:
    if isinstance(transform, BucketTransform):
        return f"bucket({transform.num_buckets}, {name})"
    if isinstance(transform, TruncateTransform):
        return f"truncate({transform.width}, {name})"
    return name if str(transform) == "identity" else f"{transform}s({name})"


def _own(kind: IcebergType) -> st.SearchStrategy[Any]:
    return own_literals(kind).map(lambda each: stored_literal(_held(each.value, kind), kind))


def _held(value: Any, kind: IcebergType) -> Any:
    """A value that Python shows and ORC's writers hold: the years 1 to 9999, times from 1970 to 2255.

    -0.0 is left out: Java's ORC and Avro readers do not find it where Spark says that it equals 0.0.
    """
    if isinstance(kind, (FloatType, DoubleType)):
        return value + 0.0
    if isinstance(kind, DateType):
        return value % 700_000 if abs(value) > 700_000 else value
    return abs(value) % 2**53 if isinstance(kind, _TIMES) else value
