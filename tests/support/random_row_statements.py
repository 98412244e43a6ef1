"""Random MERGE, UPDATE and DELETE statements, and what they leave in SQLite: an oracle that shares no code.

Statements name the target, other tables and the target itself again; sources have rows twice, keys of null, and queries
in their conditions. SQLite knows no MERGE: what becomes of each row is asked of it by queries, clause by clause.
"""

from __future__ import annotations

import random
import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

COLUMNS = ("k", "v", "s", "p")
Row = tuple[int | None, int | None, str | None, int | None]

_CONDITIONS = (
    "{a}.v > 3", "not ({a}.v > 2)", "{a}.v is null", "{a}.s = 'a'", "{a}.s <> 'b'", "{a}.k % 2 = 0",
    "{a}.v in (1, null)", "{a}.v not in (1, 3)", "{a}.p = 1 or {a}.v is null", "{a}.k between 2 and 5", "true", "false",
    "{a}.k > 2 and {a}.s > 'a'",
)  # fmt: skip
_QUERIES = (
    "t.k in (select x.k from {other} x where {c})", "t.k not in (select x.k from {other} x where {c})",
    "t.v not in (select x.v from {other} x where x.v is not null)", "(t.k, t.v) in (select x.k, x.v from {other} x)",
    "exists (select 1 from {other} x where x.v = t.v and {c})", "t.v > (select min(x.v) from {other} x where {c})",
    "not exists (select 1 from {other} x where x.k = t.k and x.v > t.v)", "t.k = (select max(x.k) from {other} x)",
    "t.v = (select max(x.v) from {other} x where x.k = t.k)",
)  # fmt: skip
_ON = (
    "t.k = s.k", "t.k = s.k", "t.k = s.k", "t.k <=> s.k", "t.k = s.k and t.s = s.s", "t.k <=> s.k and t.p <=> s.p",
    "t.k = s.k + 1", "t.k = s.k or t.k is null", "t.k > s.k and s.k > 4", "true", "false", "t.k = s.k and s.v > 2",
    "t.k = s.k and t.p = 1", "t.v = s.v", "t.k in (1, 2) and t.k = s.k", "s.k < t.k", "t.k = s.k and t.v is null",
)  # fmt: skip
_NUMBERS = ("{a}.v", "{a}.v + 1", "{a}.k", "{a}.p", "null", "7", "coalesce({a}.v, 0)")
_TEXTS = ("{a}.s", "{a}.s || 'x'", "'new'", "null")


@dataclass(frozen=True)
class Clause:
    """A WHEN clause: its condition or None, and the value of each column that it sets; None deletes."""

    condition: str | None
    values: Mapping[str, str] | None

    @property
    def when(self) -> str:
        """What it asks of a row, in SQL."""
        return self.condition or "true"


@dataclass(frozen=True)
class Merge:
    """A MERGE into `{target}`, in words that Spark and SQLite share."""

    source: str
    on: str
    matched: tuple[Clause, ...]
    missing: tuple[Clause, ...]
    by_source: tuple[Clause, ...]

    @property
    def sql(self) -> str:
        """The statement as Spark knows it."""
        clauses = [_clause("matched", each) for each in self.matched]
        clauses += [_insert(each) for each in self.missing]
        clauses += [_clause("not matched by source", each) for each in self.by_source]
        return f"merge into {{target}} as t using ({self.source}) as s on {self.on} {' '.join(clauses)}"

    @property
    def counts_matches(self) -> bool:
        """Whether a second match of a row is an error: not if all matched rows go, or nothing is done to them."""
        goes = len(self.matched) == 1 and self.matched[0] == Clause(None, None)
        return bool(self.matched) and not goes


def _clause(when: str, clause: Clause) -> str:
    condition = "" if clause.condition is None else f" and {clause.condition}"
    if clause.values is None:
        return f"when {when}{condition} then delete"
    return f"when {when}{condition} then update set {', '.join(f'{k} = {v}' for k, v in clause.values.items())}"


def _insert(clause: Clause) -> str:
    condition = "" if clause.condition is None else f" and {clause.condition}"
    assert clause.values is not None
    names, values = ", ".join(clause.values), ", ".join(clause.values.values())
    return f"when not matched{condition} then insert ({names}) values ({values})"


class Statements:
    """Draws statements."""

    def __init__(self, choice: random.Random) -> None:
        self.choice = choice

    def rows(self, count: int) -> list[Row]:
        """Rows whose keys are few, so that many are there twice."""
        keys, values, texts, parts = (*range(8), None), (0, 1, 3, 5, None), ("a", "b", "ab", None), (0, 1, None)
        of = self.choice.choice
        return [(of(keys), of(values), of(texts), of(parts)) for _ in range(count)]

    def statement(self) -> str | Merge:
        """A statement: text that both know, or a MERGE."""
        kind = self.choice.choice(["merge", "merge", "merge", "update", "delete"])
        if kind == "merge":
            return self.merge()
        where = self.choice.choice([self.condition("t"), self.query(), f"{self.query()} or {self.condition('t')}"])
        if kind == "delete":
            return f"delete from {{target}} as t where {where}"
        values = self.values(["t"])
        if self.choice.random() < 0.2:
            values["v"] = f"(select max(x.v) from {self.other()} x)"
        return f"update {{target}} as t set {', '.join(f'{k} = {v}' for k, v in values.items())} where {where}"

    def merge(self) -> Merge:
        """A MERGE of one clause at least."""
        of = self.choice.choice
        while True:
            matched = [self.clause(["t", "s"]) for _ in range(of([0, 0, 1, 1, 2]))]
            if matched and of([True, False, False]):
                matched = [Clause(None, None)]
            missing = [Clause(self.maybe("s"), self.values(["s"]) | {"k": "s.k"}) for _ in range(of([0, 1, 1, 2]))]
            by_source = [self.clause(["t"]) for _ in range(of([0, 1, 1, 2]))]
            if matched or missing or by_source:
                return Merge(self.source(), of(_ON), _last(matched), _last(missing), _last(by_source))

    def source(self) -> str:
        """Rows of another table or of the target, some of them twice."""
        of, plain = self.choice.choice, "select x.k, x.v, x.s, x.p from {other} x"
        one = f"{plain} where {self.condition('x')}".replace("{other}", self.other())
        return of(
            [
                plain.replace("{other}", self.other()),
                one,
                f"{one} union all {plain.replace('{other}', self.other())}",
                f"select distinct y.k, y.v, y.s, y.p from ({one}) y",
                f"select y.k, max(y.v) as v, min(y.s) as s, max(y.p) as p from ({one}) y group by y.k",
                f"{one} order by x.k, x.v, x.s, x.p limit {of([1, 3, 6])}",
                f"select y.k, y.v, y.s, y.p from {self.other()} y join ({one}) z on y.k = z.k",
            ]
        )

    def other(self) -> str:
        """Another table, the target as it was, or a view of that."""
        return self.choice.choice(["{others}", "{others}", "{self}", "{view}"])

    def query(self) -> str:
        """A condition on a row of the target with a query in it."""
        text = self.choice.choice(_QUERIES)
        return text.replace("{other}", self.other()).replace("{c}", self.condition("x"))

    def condition(self, alias: str) -> str:
        """A condition on a row of one table."""
        return self.choice.choice(_CONDITIONS).replace("{a}", alias)

    def maybe(self, alias: str) -> str | None:
        """A condition or none."""
        return self.condition(alias) if self.choice.random() < 0.6 else None

    def clause(self, aliases: Sequence[str]) -> Clause:
        """An update or a delete."""
        condition = self.maybe(self.choice.choice(aliases))
        return Clause(condition, None if self.choice.random() < 0.4 else self.values(aliases))

    def values(self, aliases: Sequence[str]) -> dict[str, str]:
        """New values of some columns."""
        chosen = self.choice.sample(COLUMNS, self.choice.choice([1, 2, 4]))
        return {
            name: self.choice.choice(_TEXTS if name == "s" else _NUMBERS).replace("{a}", self.choice.choice(aliases))
            for name in chosen
        }


def _last(clauses: list[Clause]) -> tuple[Clause, ...]:
    """Only the last clause of a kind may have no condition."""
    before = [Clause(each.condition or "true", each.values) for each in clauses[:-1]]
    return (*before, *clauses[-1:])


class TwiceMatchedError(Exception):
    """A MERGE found two rows of its source for one of the target."""


class Oracle:
    """A table `t`, another table `u`, and a view of the first, in SQLite."""

    def __init__(self, target: Sequence[Row], others: Sequence[Row]) -> None:
        self.database = sqlite3.connect(":memory:", isolation_level=None)
        self.database.execute("pragma case_sensitive_like = on")
        for name, rows in (("t", target), ("u", others)):
            self.database.execute(f"create table {name} (k integer, v integer, s text, p integer)")
            self.database.executemany(f"insert into {name} values (?, ?, ?, ?)", rows)

    def rows(self) -> list[Row]:
        """What the target holds."""
        return self.database.execute("select k, v, s, p from t").fetchall()

    def run(self, statement: str | Merge) -> None:
        """Carries a statement out; what it reads of the target is the target before it.

        Raises:
            TwiceMatchedError: it is an error of SQL.
        """
        self.database.execute("drop table if exists before")
        self.database.execute("create table before as select * from t")
        if isinstance(statement, Merge):
            self._merge(statement)
        else:
            self.database.execute(_text(statement))

    def _merge(self, merge: Merge) -> None:
        source, on = f"({_text(merge.source)}) s", _text(merge.on)
        matches = self._acted(f"t join {source} on {on}", merge.matched, "t.rowid")
        if merge.counts_matches and max(Counter(match[0] for match in matches).values(), default=0) > 1:
            raise TwiceMatchedError
        alone = self._acted(f"t where not exists (select 1 from {source} where {on})", merge.by_source, "t.rowid")
        new = self._acted(f"{source} where not exists (select 1 from t where {on})", merge.missing, "null")
        kept = {match[0]: match for match in (*matches, *alone)}
        after = [match[2:] for match in kept.values() if match[1] != "delete"]
        after += [match[2:] for match in new if match[1] == "set"]
        self.database.execute("delete from t")
        self.database.executemany("insert into t values (?, ?, ?, ?)", after)

    def _acted(self, rows: str, clauses: Sequence[Clause], number: str) -> list[tuple[Any, ...]]:
        """Of each row its number, what is done to it (set, delete, or nothing), and the values that it then has."""
        done = [f"when {each.when} then '{'delete' if each.values is None else 'set'}'" for each in clauses]
        act = f"case {' '.join(done)} else 'keep' end" if done else "'keep'"
        columns = []
        for name in COLUMNS:
            old = "null" if number == "null" else f"t.{name}"
            cases = [f"when {each.when} then {(each.values or {}).get(name, old)}" for each in clauses]
            columns.append(f"case {' '.join(cases)} else {old} end" if cases else old)
        return self.database.execute(_text(f"select {number}, {act}, {', '.join(columns)} from {rows}")).fetchall()


def _text(words: str) -> str:
    view = "(select * from before where v is null or v < 5)"
    return words.format(target="t", others="u", self="before", view=view).replace("<=>", "is")
