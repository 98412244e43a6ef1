"""Queries at random over references to tables, which stand in them as `{0}`, `{1}` …"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from tests.support.random_queries.draws import Draws
from tests.support.random_queries.expressions import WIDE, Column, Expressions
from tests.support.random_queries.tables import Reference
from tests.support.random_queries.values import BOOLEAN, DOUBLE, INT, LONG, STRING, is_float, is_simple

MOST_ROWS = 30_000


@dataclass(frozen=True)
class Relation:
    """Rows that a query can be made from.

    Attributes:
        text: what stands in FROM.
        columns: what can be reached in a row.
        rows: how many there are at most, about.
        key: columns of which no two rows have the same values; none where rows may repeat.
        reference: the table that it is.
    """

    text: str
    columns: tuple[Column, ...]
    rows: float
    key: tuple[str, ...] = ()
    reference: int | None = None


@dataclass(frozen=True)
class Query:
    """A query; `text` has the places of tables, `odd` what stands for `{m0}` in ours and in that on copies."""

    text: str
    is_ordered: bool
    features: frozenset[str]
    odd: tuple[tuple[str, str], ...] = ()

    def on(self, references: Sequence[Reference], ours: bool) -> str:
        """It, on the tables or on their copies."""
        odd = {f"m{number}": both[0 if ours else 1] for number, both in enumerate(self.odd)}
        return self.text.format(*(each.ours if ours else each.plain for each in references), **odd)


class Queries(Expressions):
    """Draws queries.

    Args:
        draw: of it.
        references: what it can name.
    """

    def __init__(self, draw: Draws, references: Sequence[Reference]) -> None:
        super().__init__(draw)
        self.references = references
        self._aliases = itertools.count()
        self._named: list[tuple[str, str, Relation]] = []
        self._hints: list[str] = []
        self._by_version: list[tuple[str, str]] = []

    def query(self) -> Query:
        """One query."""
        for _ in range(self.draw.of([0, 0, 0, 1, 2])):
            name, made = f"w{next(self._aliases)}", self._select(1)
            self._named.append((name, made.text, replace(made, text=name)))
            self.features.add("named twice")
        made = self._metadata() if self.draw.maybe(12) else self._select(2)
        text, is_ordered = made.text, False
        if made.rows > MOST_ROWS:
            text = self._summed(made)
        elif self.draw.maybe(20) and (order := self._order(made)):
            limit = f" limit {self.draw.of([5, 1, 100])}" if self.draw.maybe(70) else ""
            offset = f" offset {self.draw.of([3, 50])}" if self.draw.maybe(40) else ""
            self.features |= {"order by", *(["limit"] if limit else []), *(["offset"] if offset else [])}
            text, is_ordered = f"select * from ({text}) {order}{limit}{offset}", True
        named = ", ".join(f"{name} as ({own})" for name, own, _ in self._named)
        text = f"with {named} {text}" if named else text
        return Query(text, is_ordered, frozenset(self.features), tuple(self._by_version))

    # ---------------------------------------------------------------------------------------- what is read

    def _table(self) -> Relation:
        number = self.draw.below(len(self.references))
        each = self.references[number]
        if not each.is_current:
            self.features.add("time travel")
        columns: list[Column] = []
        for name, kind in each.types.items():
            pool, is_partitioned = tuple(each.pools.get(name, ())), name in each.partitioned
            distinct = max(each.rows if name == "id" else len(pool), 1)
            columns.append(Column(name, kind, pool, distinct, is_partitioned))
            columns += _leaves(name, kind)
        return Relation(f"{{{number}}}", tuple(columns), each.rows, ("id",), number)

    def _relation(self, depth: int) -> Relation:
        if self._named and self.draw.maybe(35):
            return self.draw.of(self._named)[2]
        if depth > 0 and self.draw.maybe(30):
            made = self._select(depth - 1)
            return replace(made, text=f"({made.text})")
        return self._table()

    def _source(self, depth: int) -> Relation:
        """One relation or a join, with its alias; columns are reached by their whole texts."""
        left = self._aliased(self._relation(depth))
        for _ in range(self.draw.of([0, 0, 1, 1, 2]) if depth > 0 else 0):
            left = self._join(left, self._aliased(self._relation(depth - 1)))
        return left

    def _aliased(self, made: Relation) -> Relation:
        alias = f"a{next(self._aliases)}"
        columns = tuple(each.of(alias) for each in made.columns)
        return replace(
            made, text=f"{made.text} {alias}", columns=columns, key=tuple(f"{alias}.{each}" for each in made.key)
        )

    def _join(self, left: Relation, right: Relation) -> Relation:
        kinds = ["join", "left join", "left semi join", "left anti join", "right join", "full join"]
        kind = self.draw.of(kinds)
        on, rows = self._on(left, right)
        if rows > 4 * MOST_ROWS:
            return left
        self.features.add(kind)
        if left.reference is not None and left.reference == right.reference:
            self.features.add("self-join")
        if self.draw.maybe(25):
            on += f" and {self.condition([*left.columns, *right.columns], 1)}"
        if self.draw.maybe(15):
            hint = self.used("hint", self.draw.of(["broadcast", "merge", "shuffle_hash", "shuffle_replicate_nl"]))
            alias = right.text.rpartition(" ")[2]
            self._hints = [*self._hints, f"{hint}({alias})"]
        text = f"{left.text} {kind} {right.text} on {on}"
        if kind.startswith("left ") and kind != "left join":
            return replace(left, text=text, reference=None)
        key = (*left.key, *right.key) if left.key and right.key else ()
        return Relation(text, (*left.columns, *right.columns), rows + left.rows + right.rows, key)

    def _on(self, left: Relation, right: Relation) -> tuple[str, float]:
        """A condition of a join, and how many rows it may give."""
        pairs = [
            (one, other)
            for one in left.columns
            for other in right.columns
            if is_simple(one.type) and (one.type == other.type or {one.type, other.type} == {INT, LONG})
        ]
        size = left.rows * right.rows
        if not pairs:
            return "1 = 1", size
        good = [pair for pair in pairs if size / max(pair[0].distinct, pair[1].distinct) < MOST_ROWS] or pairs
        parted = [pair for pair in good if pair[0].is_partitioned or pair[1].is_partitioned]
        if self.draw.maybe(4) and size < MOST_ROWS:
            return self.used("cross join", "1 = 1"), size
        one, other = self.draw.of(parted if parted and self.draw.maybe(50) else good)
        if parted:
            self.features.add("join by partition column")
        operator = "=" if self.draw.maybe(90) else self.used("null-safe join", "<=>")
        text, rows = f"{one.text} {operator} {other.text}", size / max(one.distinct, other.distinct, 1)
        if self.draw.maybe(30):
            one, other = self.draw.of(pairs)
            text += f" and {one.text} = {other.text}"
            self.features.add("join by two columns")
        return text, rows

    def _filtered(self, source: Relation, depth: int, often: int = 65) -> str:
        """FROM and WHERE."""
        parts = []
        if self.draw.maybe(often):
            parts.append(self.condition(source.columns))
        if self.draw.maybe(30):
            parts.append(self._query_in_condition(source, depth))
        if source.reference is not None and self.draw.maybe(8):
            parts += self._by_metadata_columns(source)
        return f" from {source.text}" + (f" where {' and '.join(parts)}" if parts else "")

    def _by_metadata_columns(self, source: Relation) -> list[str]:
        if source.reference is None or not self.references[source.reference].is_current:
            return []
        alias = source.text.rpartition(" ")[2]
        ours = self.draw.of(
            [
                f"{alias}._pos >= 0",
                f"{alias}._file like '%/%'",
                f"{alias}._spec_id >= 0",
                f"concat({alias}._file, {alias}._pos) is not null",
                f"({alias}._file, {alias}._pos) in (select _file, _pos from {{{source.reference}}})",
            ]
        )
        self.features.add("metadata columns")
        self._by_version.append(
            (ours.replace(f"{{{source.reference}}}", self.references[source.reference].ours), "true")
        )
        return [f"{{m{len(self._by_version) - 1}}}"]

    def _query_in_condition(self, source: Relation, depth: int) -> str:
        inner = self._aliased(self._relation(min(depth, 1) - 1 if depth else 0))
        pairs = [
            (one, other)
            for one in source.columns
            for other in inner.columns
            if is_simple(one.type) and one.type == other.type
        ]
        if not pairs:
            return "true"
        outer, own = self.draw.of(pairs)
        where = self.condition(inner.columns, 1)
        body, negated = f"from {inner.text} where {where}", self.draw.of(["", "not "])
        equal = f"{own.text} = {outer.text}"
        number = self._numbered(inner)
        feature, text = self.draw.of(
            [
                ("in", f"{outer.text} {negated}in (select {own.text} {body})"),
                ("exists", f"{negated}exists (select 1 {body} and {equal})"),
                ("scalar subquery", f"{outer.text} = (select max({own.text}) {body})"),
                ("scalar subquery", f"{outer.text} <=> (select min({own.text}) {body})"),
                ("correlated scalar subquery", f"(select count(*) {body} and {equal}) > {self.draw.of([0, 1, 5])}"),
                ("correlated scalar subquery", f"{outer.text} = (select max({own.text}) {body} and {equal})"),
                ("correlated scalar subquery", f"(select max({number}) {body} and {equal}) > 10"),
                ("in", f"{outer.text} {negated}in (select {own.text} {body} and {own.text} is not null)"),
                ("exists", f"({negated}exists (select 1 {body} and {equal}) or {self.condition(source.columns, 2)})"),
                ("scalar subquery", f"{outer.text} >= (select min({own.text}) {body})"),
            ]
        )
        return self.used(feature, text)

    def _numbered(self, made: Relation) -> str:
        numbers = [each for each in made.columns if each.type in (INT, LONG)]
        return self.draw.of(numbers).text if numbers else "1"

    # ------------------------------------------------------------------------------------------- queries

    def _select(self, depth: int) -> Relation:
        """A whole query, whose columns have names of their own."""
        outer, self._hints = self._hints, []
        makers: list[Callable[[int], Relation]] = [
            self._plain,
            self._plain,
            self._plain,
            self._grouped,
            self._grouped,
            self._window,
            self._distinct,
            self._sets,
            self._exploded,
            self._cut,
            self._lateral,
            self._known,
        ]
        made = (self.draw.of(makers) if depth > 0 else self._plain)(depth)
        self._hints = outer
        return made

    def _outputs(self, chosen: Sequence[Column], word: str = "") -> tuple[str, tuple[Column, ...]]:
        """What stands after SELECT, and its columns."""
        names = [f"c{next(self._aliases)}" for _ in chosen]
        words = ", ".join(f"{each.text} as {name}" for each, name in zip(chosen, names, strict=True))
        hints = f"/*+ {', '.join(self._hints)} */ " if self._hints else ""
        self._hints = []
        return hints + word + words, tuple(replace(each, text=name) for each, name in zip(chosen, names, strict=True))

    def _keyed(self, source: Relation, chosen: Sequence[Column]) -> tuple[list[Column], bool]:
        """Columns with those of the key before them, mostly, and whether they are there."""
        if not source.key or not self.draw.maybe(85):
            return list(chosen), False
        return [*(each for each in source.columns if each.text in source.key), *chosen], True

    def _plain(self, depth: int) -> Relation:
        source = self._source(depth)
        chosen = [self.value(source.columns) for _ in range(1 + self.draw.below(3))]
        nested = [each for each in source.columns if not is_simple(each.type)]
        if nested and self.draw.maybe(35):
            chosen.append(self.draw.of(nested))
            self.features.add("nested values")
        chosen, is_keyed = self._keyed(source, chosen)
        words, columns = self._outputs(chosen)
        key = tuple(each.text for each in columns[: len(source.key)]) if is_keyed else ()
        return Relation(f"select {words}{self._filtered(source, depth)}", columns, source.rows, key)

    def _distinct(self, depth: int) -> Relation:
        source = self._source(depth)
        words, columns = self._outputs([self.value(source.columns) for _ in range(1 + self.draw.below(3))], "distinct ")
        text = f"select {words}{self._filtered(source, depth)}"
        self.features.add("distinct")
        return Relation(text, columns, source.rows, tuple(each.text for each in columns))

    def _aggregates(self, scope: Sequence[Column]) -> list[Column]:
        return [self._aggregate(scope) for _ in range(1 + self.draw.below(3))]

    def _aggregate(self, scope: Sequence[Column]) -> Column:
        column, number = self.simple(scope), self._number(scope)
        text, kind = column.text, column.type
        # Which of two equal zeros comes first is nobody's promise.
        zero = " + cast(0 as float)" if kind == pa.float32() else " + 0d" if is_float(kind) else ""
        possible = [
            ("count", "count(*)", LONG),
            ("count", f"count({text})", LONG),
            ("min and max", f"min({text}){zero}", kind),
            ("min and max", f"max({text}){zero}", kind),
            ("distinct aggregate", f"count(distinct {text})", LONG),
            ("sum", f"sum(cast({number} as decimal(38, 3)))", WIDE),
            ("distinct aggregate", f"sum(distinct cast({number} as decimal(38, 3)))", WIDE),
            ("sum", f"avg(cast({number} as decimal(20, 3)))", pa.decimal128(24, 7)),
            ("aggregate filter", f"count(*) filter (where {self.condition(scope, 2)})", LONG),
            ("distinct aggregate", f"count(distinct {text}, {self.simple(scope).text})", LONG),
            ("aggregates of others", f"count_if({self.condition(scope, 2)})", LONG),
            ("aggregates of others", f"bool_or({self.condition(scope, 2)})", BOOLEAN),
            ("aggregates of others", f"max_by({text}, struct({text}, {number})){zero}", kind),
            ("aggregates of others", f"approx_count_distinct({text})", LONG),
            ("aggregates of others", f"bit_xor({number})", INT),
            ("aggregates of others", f"percentile({number}, 0.5)", DOUBLE),
            ("collected", f"to_json(sort_array(collect_list({number})))", STRING),
            ("collected", f"size(collect_set({text}))", INT),
        ]
        feature, words, new = self.draw.of(possible)
        new = self._type_of(number, scope) if words.startswith("bit_xor") else new
        return Column(self.used(feature, words), new)

    def _number(self, scope: Sequence[Column]) -> str:
        numbers = [each for each in scope if each.type in (INT, LONG)]
        return self.draw.of(numbers).text if numbers else "1"

    @staticmethod
    def _type_of(text: str, scope: Sequence[Column]) -> pa.DataType:
        return next((each.type for each in scope if each.text == text), INT)

    def _grouped(self, depth: int) -> Relation:
        source = self._source(depth)
        keys = [self.value(source.columns) for _ in range(self.draw.of([1, 0, 2, 3]))]
        keys = list({each.text: each for each in keys}.values())
        found = self._aggregates(source.columns)
        words, columns = self._outputs([*keys, *found])
        text, names = f"select {words}{self._filtered(source, depth)}", ", ".join(each.text for each in keys)
        key = tuple(each.text for each in columns[: len(keys)])
        if keys:
            form = self.draw.of(["group by", "group by", "group by", "rollup", "cube", "grouping sets"])
            self.features.add(form)
            sets = ", ".join([f"({names})", *(f"({each.text})" for each in keys[:-1]), "()"])
            text += {
                "group by": f" group by {names}",
                "rollup": f" group by rollup({names})",
                "cube": f" group by cube({names})",
                "grouping sets": f" group by grouping sets ({sets})",
            }[form]
            if form != "group by":
                key = ()
            if self.draw.maybe(20):
                text += self.used("having", f" having count(*) > {self.draw.of([1, 2, 30])}")
        return Relation(text, columns, source.rows * 2, key)

    def _known(self, depth: int) -> Relation:
        """Aggregates of one table that its metadata may know, and must not answer by itself if rows are chosen."""
        source = self._aliased(self._table())
        columns = [each for each in source.columns if is_simple(each.type) and not is_float(each.type)]
        found = [Column("count(*)", LONG)]
        for column in self.draw.some(columns, 0, 3):
            text = column.text
            found.append(
                self.draw.of(
                    [
                        Column(f"min({text})", column.type),
                        Column(f"max({text})", column.type),
                        Column(f"count({text})", LONG),
                    ]
                )
            )
        words, outputs = self._outputs(found)
        self.features.add("what metadata knows")
        if self.draw.maybe(50):
            where = f" from {source.text} where {self._query_in_condition(source, depth)}"
        else:
            where = self._filtered(source, depth)
        return Relation(f"select {words}{where}", outputs, 1, ())

    def _window(self, depth: int) -> Relation:
        source = self._source(depth)
        parts, by = self.simple(source.columns).text, self.simple(source.columns).text
        of, number = self.draw.of, self._number(source.columns)
        order = f"order by {by} {of(['asc', 'desc'])} nulls {of(['first', 'last'])}, {', '.join(source.key)}"
        functions = [
            f"rank() over (partition by {parts} order by {by})",
            f"count(*) over (partition by {parts})",
            f"dense_rank() over (partition by {parts} order by {by} desc)",
        ]
        if source.key:
            frame = f"(partition by {parts} {order})"
            rows = f"(partition by {parts} {order} rows between 2 preceding and current row)"
            functions = [
                f"row_number() over {frame}",
                *functions,
                f"lag({number}, 2) over {frame}",
                f"lead({by}) over {frame}",
                f"sum(cast({number} as decimal(38, 3))) over {rows}",
                f"count({by}) over {rows}",
                f"ntile(3) over {frame}",
                f"first_value({number}) over {frame}",
                f"max({number}) over {rows}",
            ]
        chosen, is_keyed = self._keyed(source, [Column(of(functions), INT), self.value(source.columns)])
        chosen = [
            replace(each, type=self._type_of_window(each.text, source.columns)) if " over (" in each.text else each
            for each in chosen
        ]
        words, columns = self._outputs(chosen)
        key = tuple(each.text for each in columns[: len(source.key)]) if is_keyed else ()
        text = f"select {words}{self._filtered(source, depth)}"
        self.features.add("window")
        if self.draw.maybe(30):
            ranked = next(each for each, of_it in zip(columns, chosen, strict=True) if " over (" in of_it.text)
            text = f"select * from ({text}) where {ranked.text} is not null"
            if self.draw.maybe(50) and ranked.type in (INT, LONG):
                text += self.used("window limit", f" and {ranked.text} <= 3")
        return Relation(text, columns, source.rows, key)

    def _type_of_window(self, text: str, scope: Sequence[Column]) -> pa.DataType:
        function, _, rest = text.partition("(")
        if function in ("lag", "lead", "first_value", "max"):
            return self._type_of(rest.partition(" over")[0].rstrip(")").removesuffix(", 2"), scope)
        return {"count": LONG, "sum": WIDE}.get(function, INT)

    def _sets(self, depth: int) -> Relation:
        left, right = self._source(depth - 1), self._source(depth - 1)
        kinds = [each.type for each in left.columns if is_simple(each.type)]
        shared = [kind for kind in kinds if any(each.type == kind for each in right.columns)]
        if not shared:
            return self._plain(depth)
        wanted = self.draw.some(shared, 1, 3)
        sides = []
        for source in (left, right):
            chosen = [self.draw.of([each for each in source.columns if each.type == kind]) for kind in wanted]
            words, columns = self._outputs(chosen)
            sides.append((f"select {words}{self._filtered(source, depth - 1)}", columns))
        word = self.draw.of(["union all", "union", "except", "intersect", "except all", "intersect all", "minus"])
        self.features.add(word)
        columns = tuple(replace(each, pool=(), is_partitioned=False) for each in sides[0][1])
        key = () if word.endswith("all") else tuple(each.text for each in columns)
        rows = left.rows + right.rows
        return Relation(f"select * from ({sides[0][0]} {word} {sides[1][0]})", columns, rows, key)

    def _exploded(self, depth: int) -> Relation:
        """Elements of nested columns, or a pivot where there are none."""
        source = self._aliased(self._table())
        nested = [each for each in source.columns if pa.types.is_list(each.type) or pa.types.is_map(each.type)]
        if not nested or self.draw.maybe(20):
            return self._pivot(source, depth)
        column, alias = self.draw.of(nested), f"e{next(self._aliases)}"
        outer = self.draw.of(["", "outer "])
        if pa.types.is_map(column.type):
            value = column.type.item_type
            view, made = f"explode({column.text}) {alias} as key_{alias}, {alias}v", [Column(f"key_{alias}", STRING)]
            made += _leaves(f"{alias}v", value)
        else:
            value = column.type.value_type
            view = f"posexplode({column.text}) {alias} as pos_{alias}, {alias}v"
            made = [Column(f"pos_{alias}", INT), *_leaves(f"{alias}v", value)]
            made += [Column(f"{alias}v", value)] if is_simple(value) else []
        self.features.add("lateral view outer" if outer else "lateral view")
        scope = (*source.columns, *made)
        kept, _ = self._keyed(source, [self.draw.of(made), self.value(scope)])
        words, columns = self._outputs(kept)
        where = f" where {self.condition(scope, 1)}" if self.draw.maybe(50) else ""
        return Relation(
            f"select {words} from {source.text} lateral view {outer}{view}{where}", columns, source.rows * 2
        )

    def _pivot(self, source: Relation, depth: int) -> Relation:
        column, by = self.simple(source.columns), self.simple(source.columns)
        number = self._numbered(source)
        body = f"select {column.text} as pc, {by.text} as pb, {number} as pn{self._filtered(source, depth)}"
        values = list(dict.fromkeys(self.literal(column) for _ in range(3)))
        names = [f"c{next(self._aliases)}" for _ in values]
        cases = ", ".join(f"{each} as {name}" for each, name in zip(values, names, strict=True))
        function, kind = self.draw.of([("count(pn)", LONG), ("max(pn)", self._type_of(number, source.columns))])
        self.features.add("pivot")
        columns = (Column("pb", by.type), *(Column(name, kind) for name in names))
        return Relation(f"select * from ({body}) pivot ({function} for pc in ({cases}))", columns, source.rows, ("pb",))

    def _cut(self, depth: int) -> Relation:
        """The first rows of an order."""
        made = self._plain(depth - 1)
        order = self._order(made)
        if not order:
            return made
        self.features |= {"order by", "limit"}
        limit = self.draw.of([10, 1, 300])
        return replace(made, text=f"select * from ({made.text}) {order} limit {limit}", rows=min(made.rows, limit))

    def _lateral(self, depth: int) -> Relation:
        """A query that sees the row before it."""
        source, inner = self._aliased(self._table()), self._aliased(self._table())
        pairs = [
            (one, other)
            for one in source.columns
            for other in inner.columns
            if is_simple(one.type) and one.type == other.type
        ]
        one, other = self.draw.of(pairs)
        alias, number = f"q{next(self._aliases)}", self._numbered(inner)
        body = f"select count(*) as n, max({number}) as x from {inner.text} where {other.text} = {one.text}"
        found = [Column(f"{alias}.n", LONG), Column(f"{alias}.x", self._type_of(number, inner.columns))]
        chosen, is_keyed = self._keyed(source, [*found, self.value(source.columns)])
        words, columns = self._outputs(chosen)
        self.features.add("lateral subquery")
        where = f" where {self.condition([*source.columns, *found], 1)}"
        key = tuple(each.text for each in columns[:1]) if is_keyed else ()
        return Relation(
            f"select {words} from {source.text}, lateral ({body}) {alias}{where}", columns, source.rows, key
        )

    def _metadata(self) -> Relation:
        """Aggregates of one table that its metadata might answer."""
        source = self._aliased(self._table())
        texts = ["count(*)"]
        for _ in range(self.draw.below(4)):
            column = self.simple(source.columns)
            zero = " + cast(0 as float)" if column.type == pa.float32() else " + 0d" if is_float(column.type) else ""
            texts.append(self.draw.of(["min({}){}", "max({}){}", "count({})"]).format(column.text, zero))
        limited, rows = self._filtered(source, 1, 50), 1
        by = [
            each for each in source.columns if each.is_partitioned and is_simple(each.type) and not is_float(each.type)
        ]
        end = ""
        if self.draw.maybe(15):  # which rows they are is nobody's promise, only how many
            alias, limit = f"a{next(self._aliases)}", self.draw.of([1, 10, 1000])
            texts, limited = ["count(*)"], f" from (select {source.columns[0].text}{limited} limit {limit}) {alias}"
            self.features.add("limit")
        elif by and self.draw.maybe(30):
            group = self.draw.of(by)
            texts, end, rows = [group.text, *texts], f" group by {group.text}", group.distinct
            self.features.add("group by a partition column")
        self.features.add("metadata aggregates")
        words, columns = self._outputs([Column(text, STRING) for text in texts])
        return Relation(f"select {words}{limited}{end}", columns, rows)

    def _order(self, made: Relation) -> str:
        """An order in which no two rows are equal, or differ; empty where there is none."""
        simple = [each.text for each in made.columns if is_simple(each.type)]
        if made.key:
            names = [*self.draw.some([each for each in simple if each not in made.key], 0, 1), *made.key]
        elif len(simple) == len(made.columns) and not any(is_float(each.type) for each in made.columns):
            names = simple
        else:
            return ""
        ways = ["", " desc", " nulls last", " desc nulls first"]
        return f"order by {', '.join(f'{name}{self.draw.of(ways)}' for name in names)}"

    def _summed(self, made: Relation) -> str:
        simple = [each.text for each in made.columns if is_simple(each.type)]
        counts = "".join(f", count({name}), sum(cast(xxhash64({name}) as decimal(38, 0)))" for name in simple)
        return f"select count(*){counts} from ({made.text})"


def _leaves(name: str, kind: pa.DataType) -> list[Column]:
    """The fields of a struct, at every depth; lists in it as well."""
    if not pa.types.is_struct(kind):
        return []
    return [
        leaf
        for field in kind
        for leaf in (Column(f"{name}.{field.name}", field.type), *_leaves(f"{name}.{field.name}", field.type))
    ]
