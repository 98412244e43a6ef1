"""Conditions and values over the columns in reach."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from tests.support.random_queries.draws import Draws
from tests.support.random_queries.values import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INSTANT,
    INT,
    LONG,
    STRING,
    TIME,
    is_float,
    is_simple,
    literal,
    sql_type,
    values_of,
)

WIDE = pa.decimal128(38, 3)


@dataclass(frozen=True)
class Column:
    """Something that has a value in every row.

    Attributes:
        text: how SQL reaches it.
        type: its type.
        pool: some values that it has.
        distinct: how many it has, about.
        is_partitioned: whether files are parted by it.
    """

    text: str
    type: pa.DataType
    pool: tuple[Any, ...] = ()
    distinct: int = 10
    is_partitioned: bool = False

    @property
    def name(self) -> str:
        """The last part of its text."""
        return self.text.rpartition(".")[2]

    def of(self, alias: str) -> Column:
        """It, as a column of something that is called so."""
        return replace(self, text=f"{alias}.{self.text}")


class Expressions:
    """Draws expressions, and counts their features."""

    def __init__(self, draw: Draws) -> None:
        self.draw = draw
        self.features: set[str] = set()

    def used(self, feature: str, text: str) -> str:
        """A text, after its feature was counted."""
        self.features.add(feature)
        return text

    def simple(self, scope: Sequence[Column]) -> Column:
        """A column that can be compared."""
        chosen = [each for each in scope if is_simple(each.type)]
        return self.draw.of(chosen)

    def literal(self, column: Column) -> str:
        """A value, mostly one that the column has."""
        has = column.pool if column.pool and self.draw.maybe(75) else values_of(column.type)
        return literal(self.draw.of(has), column.type)

    def condition(self, scope: Sequence[Column], depth: int = 0) -> str:
        """A condition on a row."""
        if depth < 2 and self.draw.maybe(30):
            word = self.draw.of(["and", "or"])
            return f"({self.condition(scope, depth + 1)} {word} {self.condition(scope, depth + 1)})"
        if depth < 2 and self.draw.maybe(8):
            return f"not ({self.condition(scope, depth + 1)})"
        partitioned = [each for each in scope if each.is_partitioned]
        column = self.simple(partitioned if partitioned and self.draw.maybe(30) else scope)
        make = self.draw.of([self._comparison, self._comparison, self._comparison, self._list, self._odd, self._own])
        return make(column, scope)

    def _comparison(self, column: Column, scope: Sequence[Column]) -> str:
        operator = self.draw.of(["=", "<", "<=", ">", ">=", "<>", "<=>"])
        self.features.add("null-safe" if operator == "<=>" else "comparison")
        others = [each for each in scope if each.type == column.type and each.text != column.text]
        if others and self.draw.maybe(15):
            return self.used("two columns", f"{column.text} {operator} {self.draw.of(others).text}")
        sides = [column.text, self.literal(column)]
        return f" {operator} ".join(sides if self.draw.maybe(85) else sides[::-1])

    def _list(self, column: Column, scope: Sequence[Column]) -> str:
        word = self.draw.of(["", "not "])
        values = [self.literal(column) for _ in range(self.draw.of([2, 3, 12]))]
        if self.draw.maybe(30):
            return self.used("between", f"{column.text} {word}between {values[0]} and {values[1]}")
        if self.draw.maybe(15):
            values.append("null")
        return self.used("in list", f"{column.text} {word}in ({', '.join(values)})")

    def _odd(self, column: Column, scope: Sequence[Column]) -> str:
        """Nulls, conditions about conditions, and such as are always or never true."""
        of, text = self.draw.of, column.text
        equal = f"{text} = {self.literal(column)}"
        feature, words = of(
            [
                ("is null", f"{text} is null"),
                ("is null", f"{text} is not null"),
                ("is true", f"({equal}) is not true"),
                ("is true", f"({equal}) is {of(['true', 'false', 'unknown'])}"),
                ("coalesce", f"coalesce({equal}, true)"),
                ("case", f"case when {equal} then true when {text} is null then false else {text} is not null end"),
                ("always", f"({text} = {text} or {text} is null)"),
                ("always", "1 = 1"),
                ("never", f"({text} is null and {text} is not null)"),
                ("never", f"({text} < {self.literal(column)} and 1 = 0)"),
                ("never", "cast(null as boolean)"),
            ]
        )
        return self.used(feature, words)

    def _own(self, column: Column, scope: Sequence[Column]) -> str:
        """What only some types have."""
        of, text, kind = self.draw.of, column.text, column.type
        if kind == STRING:
            return (
                self.used("text", text + of([" like 'ab%'", " like '%a'", " not like 'a%'", " rlike '^a'"]))
                if (self.draw.maybe(60))
                else self.used(
                    "text",
                    of(
                        [
                            f"substr({text}, 1, 2) = 'ab'",
                            f"upper({text}) = 'A'",
                            f"startswith({text}, 'abcdefghijklmnopqrst')",
                            f"length({text}) > 2",
                            f"{text} || 'x' = 'ax'",
                            f"{text} > 'abc' and {text} < 'b'",
                        ]
                    ),
                )
            )
        if kind == DATE:
            return self.used(
                "date functions",
                of(
                    [
                        f"year({text}) = 2020",
                        f"{text} > '2020-01-01'",
                        f"trunc({text}, 'MM') = date'2020-02-01'",
                        f"{text} < timestamp'2020-03-01 00:00:01'",
                        f"month({text}) in (2, 3)",
                        f"day({text}) = 1",
                        f"date_add({text}, -1) = date'2020-02-28'",
                        f"datediff({text}, date'2020-02-28') between 0 and 9",
                        f"date_format({text}, 'yyyy') = '2020'",
                        f"cast({text} as timestamp) >= timestamp'2020-01-01'",
                        f"cast({text} as string) like '2020%'",
                    ]
                ),
            )
        if kind in (INSTANT, TIME):
            return self.used(
                "date functions",
                of(
                    [
                        f"date({text}) = date'2020-02-29'",
                        f"{text} >= date'2020-02-29'",
                        f"year({text}) in (1969, 2020)",
                        f"date_trunc('hour', {text}) = '2020-02-29 12:00:00'",
                        f"hour({text}) = 23",
                        f"to_date({text}) is null",
                        f"cast({text} as string) like '2020%'",
                        f"date_trunc('month', {text}) < '2020-03-01'",
                        f"cast({text} as date) between date'1960-01-01' and date'1970-01-01'",
                    ]
                ),
            )
        if kind in (INT, LONG):
            return self.used(
                "numbers",
                of(
                    [
                        f"{text} % 3 = 1",
                        f"{text} < 2.5",
                        f"{text} = '1'",
                        f"{text} > 3000000000",
                        f"{text} in (1, 2L, 3.0)",
                        f"cast({text} as string) = '5'",
                        f"cast({text} as double) = 1",
                        f"{text} = 7.0d",
                        f"-2 < {text}",
                        f"cast({text} as decimal(20, 1)) <= 3",
                        f"{text} <=> null",
                        f"abs(try_add({text}, 1)) = 3",
                    ]
                ),
            )
        if is_float(kind):
            return self.used(
                "numbers",
                of(
                    [
                        f"isnan({text})",
                        f"not isnan({text})",
                        f"{text} > 1",
                        f"{text} = 0",
                        f"{text} <= cast('NaN' as double)",
                        f"{text} in (0.0, 1.5)",
                        f"nanvl({text}, 0) = 0",
                        f"{text} < cast(1.5 as decimal(3, 1))",
                    ]
                ),
            )
        if kind == BOOLEAN:
            return of([text, f"not {text}", f"{text} = (1 = 1)"])
        if kind == BINARY:
            return self.used("text", of([f"length({text}) < 3", f"hex({text}) = 'FF'", f"{text} > X'01'"]))
        return self.used(
            "numbers",
            of(
                [
                    f"{text} > 1.49",
                    f"{text} = 7",
                    f"round({text}) = 2",
                    f"{text} in (0, 1.5)",
                    f"{text} < 2.25d",
                    f"cast({text} as int) = 1",
                    f"-{text} > 1",
                ]
            ),
        )

    # --------------------------------------------------------------------------------------------- values

    def value(self, scope: Sequence[Column]) -> Column:
        """A value of a simple type: mostly a column itself."""
        column = self.simple(scope)
        if not self.draw.maybe(30):
            return column
        of, text, kind = self.draw.of, column.text, column.type
        possible = [
            ("coalesce", f"coalesce({text}, {self.literal(column)})", kind),
            ("case", f"case when {self.condition(scope, 2)} then {text} else {self.literal(column)} end", kind),
            ("case", f"if({self.condition(scope, 2)}, {text}, null)", kind),
            ("coalesce", f"nullif({text}, {self.literal(column)})", kind),
            ("casts", f"cast({text} as string)", STRING) if kind != BINARY else ("casts", f"hex({text})", STRING),
            *_of_type(text, kind),
        ]
        feature, words, new = of(possible)
        return Column(self.used(feature, words), new, (), column.distinct)


def _of_type(text: str, kind: pa.DataType) -> list[tuple[str, str, pa.DataType]]:
    if kind in (DATE, INSTANT, TIME):
        return [
            ("date functions", f"year({text})", INT),
            ("date functions", f"last_day(date({text}))", DATE),
            ("date functions", f"date_trunc('month', {text})", TIME if kind == TIME else INSTANT),
            ("casts", f"cast({text} as date)", DATE),
            ("casts", f"cast({text} as timestamp)", INSTANT),
        ]
    if kind == STRING:
        return [
            ("text", f"substr({text}, 2, 3)", STRING),
            ("text", f"concat({text}, '-', {text})", STRING),
            ("text", f"length({text})", INT),
            ("casts", f"try_cast({text} as int)", INT),
            ("casts", f"try_cast({text} as date)", DATE),
        ]
    if kind in (INT, LONG):
        return [
            ("numbers", f"{text} % 7", kind),
            ("numbers", f"try_add({text}, {'1' if kind == INT else '1L'})", kind),
            ("casts", f"cast({text} as double)", DOUBLE),
            ("casts", f"cast({text} as decimal(38, 3))", WIDE),
            ("casts", f"try_cast({text} as int)", INT),
        ]
    if kind in (FLOAT, DOUBLE):
        return [("numbers", f"isnan({text})", BOOLEAN), ("casts", f"try_cast({text} as bigint)", LONG)]
    if kind == BOOLEAN:
        return [("casts", f"cast({text} as int)", INT)]
    if pa.types.is_decimal(kind):
        return [
            ("casts", f"cast({text} as double)", DOUBLE),
            ("numbers", f"try_cast({text} as {sql_type(WIDE)})", WIDE),
        ]
    return [("text", f"length({text})", INT)]
