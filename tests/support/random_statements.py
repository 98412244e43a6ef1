"""Random tables and statements in Spark's SQL, for tests that run them by two engines and compare.

The types, values, predicates and partition transforms are those of `expression_strategies`. A table has the columns
`a`, `b`, a struct `s` and a number `n`; later perhaps `e`. In the statements `{t}` stands for the table's name, and
`{system}` for the catalog whose procedures are called.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

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
from hms_iceberg.spec.promotion import can_promote
from hms_iceberg.spec.transforms.partition_transforms import BucketTransform, Transform, TruncateTransform
from tests.support.expression_strategies import (
    TRANSFORMS,
    expressions,
    near_values,
    own_literals,
    predicates,
    tables,
)
from tests.support.new_types import NEW_TYPES
from tests.support.python_values import to_python
from tests.support.random_tables import WIDER, can_be_default
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
FORMATS = ("parquet", "avro", "orc")
MODES = ("copy-on-write", "merge-on-read")
COMMANDS = ("delete", "update", "merge")


class Form(NamedTuple):
    """What a table is at first.

    Args:
        version: of its format.
        mode: how its rows are changed.
        file_format: of its data files.
        place: the catalog that it is in: the metastore (`hive`), the same with keys (`keyed`), or folders (`files`).
        columns: names of columns of `NEW_TYPES`, which files of that format hold.
        both: whether both of us change it, and not only the peer.
    """

    version: int
    mode: str
    file_format: str
    place: str = "hive"
    columns: tuple[str, ...] = ()
    both: bool = True


FORMS = (
    Form(2, "copy-on-write", "orc"),
    Form(3, "merge-on-read", "avro"),
    Form(1, "copy-on-write", "avro"),
    Form(2, "merge-on-read", "orc"),
    Form(3, "copy-on-write", "parquet"),
    Form(2, "merge-on-read", "parquet"),
    Form(3, "merge-on-read", "orc"),
    Form(2, "copy-on-write", "avro"),
    Form(1, "copy-on-write", "parquet"),
    Form(3, "merge-on-read", "parquet"),
)
# Apache Iceberg's Spark 4.1 writes shapes into Parquet files only, and variants into no ORC files; it encrypts no ORC
# files, and a metastore does not take its columns of the new types. We write variants into Parquet files only.
NEW_FORMS = (
    Form(3, "merge-on-read", "parquet", "files", ("v", "g", "p")),
    Form(3, "copy-on-write", "parquet", "keyed"),
    Form(3, "copy-on-write", "parquet", "files", ("v", "w", "l")),
    Form(3, "merge-on-read", "avro", "keyed"),
    Form(3, "copy-on-write", "parquet", "files", ("g", "m", "p")),
    Form(3, "merge-on-read", "parquet", "keyed"),
    Form(3, "merge-on-read", "avro", "files", ("v", "w", "l"), both=False),
    Form(3, "merge-on-read", "parquet", "files", ("v", "w", "m")),
)
_NAMES = {LongType(): "bigint", TimestampType(): "timestamp_ntz", TimestamptzType(): "timestamp"}
_TIMES = (TimestampType, TimestamptzType)


@dataclass(frozen=True)
class Default:
    """A column with a default, which is added; or another default of one that there is, if `kind` is None."""

    column: tuple[str, ...]
    kind: IcebergType | None
    value: Any
    required: bool = False


@dataclass(frozen=True)
class Step:
    """A statement, and the table after it.

    Args:
        sql: the statement.
        ours: whether it is ours to run, and not the peer's.
        columns: all that a row holds, as values that are the same wherever they are shown.
        version: of the table's format.
        conditions: to read the table by.
        default: what is done in the place of the statement, since Apache Iceberg's SQL has no defaults.
    """

    sql: str
    ours: bool
    columns: str
    version: int
    conditions: tuple[str, ...] = ()
    default: Default | None = None

    def __repr__(self) -> str:
        wheres = "".join(f"\n  where {each}" for each in self.conditions)
        return f"\n{'ours' if self.ours else 'theirs'}: {self.sql};{wheres}"


def random_histories(
    number: int, count: int, forms: Sequence[Form] = FORMS, steps: int = 8
) -> list[tuple[Form, list[Step]]]:
    """So many tables with so many statements each, the last of which has conditions; the same for the same number.

    Forms are taken in turn.
    """
    turns = [forms[index % len(forms)] for index in range(count)]
    return [(form, _drawn(f"{number}:{index}", form, steps)) for index, form in enumerate(turns)]


def _drawn(name: str, form: Form, steps: int) -> list[Step]:
    found: list[list[Step]] = []

    @seed(name)
    @settings(
        max_examples=2,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate,),
    )
    @given(st.data())
    def collect(data: st.DataObject) -> None:
        found.append(_history(data.draw, form, steps))

    collect()
    return found[-1]  # hypothesis begins with the least of all, whose statements all do the same


def _history(draw: Callable[[st.SearchStrategy[Any]], Any], form: Form, steps: int) -> list[Step]:
    table = _Table(draw, form)
    history = []
    for number in range(steps):
        make = table.create if number == 0 else table.insert if number < 3 else table.statement
        made, ours = make(), form.both and draw(st.sampled_from([True, True, False]))
        conditions = tuple(table.condition() for _ in range(2 if number == steps - 1 else 0))
        default = made if isinstance(made, Default) else None
        history.append(Step(str(made), ours, table.columns(), table.version, conditions, default))
    return history


class _Table:
    """A table as its statements make it if they succeed, and the statements that may come next.

    Args:
        draw: hypothesis's.
        form: its first version, mode and format.
    """

    def __init__(self, draw: Callable[[st.SearchStrategy[Any]], Any], form: Form) -> None:
        self._draw = draw
        self._form = form
        self.version = form.version
        schema = self._draw(tables(KINDS))
        self.kinds: dict[str, IcebergType] = {name: schema.find_type(name) for name in ("a", "b", "s.c")}
        self._required = {name for name in ("a", "b", "s", "s.c") if schema.find_field(name).required}
        self._terms: list[str] = []
        self._sources: set[str] = set()
        self._known: dict[str, list[str]] = {}
        self._defaults: set[str] = set()
        self._formats = {form.file_format}
        self._next = 0

    def _chance(self, one_in: int) -> bool:
        return bool(self._draw(st.sampled_from([True, *[False] * (one_in - 1)])))

    # ------------------------------------------------------------------------------------------- the table

    def create(self) -> str:
        """The first statement."""
        columns = [f"{name} {self._sql_type(name)}{self._not_null(name)}" for name in self._names()]
        properties = {"format-version": str(self.version), "write.format.default": self._form.file_format}
        properties |= {f"write.{command}.mode": self._form.mode for command in COMMANDS}
        if self._form.place == "keyed":
            size = self._draw(st.sampled_from(["16", "24", "32"]))
            properties |= {"encryption.key-id": f"k{size}", "encryption.data-key-length": size}
        elif "v" in self._form.columns:
            # Java's vectorized reader fails on variants that are shredded, and on what tests them.
            properties["read.parquet.vectorization.enabled"] = "false"
            properties["write.parquet.shred-variants"] = self._draw(st.sampled_from(["true", "false"]))
        self._terms = [
            term for term in (self._term() for _ in range(self._draw(st.sampled_from([0, 0, 1, 2])))) if term
        ]
        partitioned = f" partitioned by ({', '.join(self._terms)})" if self._terms else ""
        told = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
        return f"create table {{t}} ({', '.join(columns)}, n bigint) using iceberg{partitioned} tblproperties ({told})"

    def columns(self) -> str:
        """As `Step` has them."""
        flat = ["n", "s is null", *self.kinds]
        told = [f"unix_micros({name})" if isinstance(self.kinds.get(name), TimestamptzType) else name for name in flat]
        return ", ".join(told + [NEW_TYPES[name].shown.format(name) for name in self._form.columns])

    def _sql_type(self, name: str) -> str:
        if name in self._form.columns:
            return NEW_TYPES[name].sql
        if name == "s":
            inner = [f"{each[2:]}: {self._sql_type(each)}{self._not_null(each)}" for each in self._inner()]
            return f"struct<{', '.join(inner)}>"
        return _NAMES.get(self.kinds[name], str(self.kinds[name]))

    def _inner(self) -> list[str]:
        """The fields of the struct."""
        return [name for name in self.kinds if name.startswith("s.")]

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
            # Java reads a null struct of a Parquet file, all of whose fields are partition values, as one of nulls.
            and not (name == "s.c" and str(each) == "identity" and "s" not in self._required)
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
            values = [f"'{each[2:]}', {self._literal(each)}" for each in self._inner()]
            return f"named_struct({', '.join(values)})"
        if name in self._form.columns:
            drawn = self._draw(NEW_TYPES[name].values)
            return f"cast(null as {NEW_TYPES[name].sql})" if self._chance(5) else drawn
        kind = self.kinds[name]
        if self._chance(40 if name in self._required else 5):
            return f"cast(null as {_NAMES.get(kind, kind)})"
        known = self._known.setdefault(name, [])
        if known and not self._chance(3):  # rows of one partition, and of one file
            return str(self._draw(st.sampled_from(known)))
        known.append(literal_text(stored_literal(_held(self._draw(near_values(kind)), kind), kind)))
        return known[-1]

    def _names(self) -> list[str]:
        return ["a", "b", "s", *self._form.columns, *(["e"] if "e" in self.kinds else [])]

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
        if self._form.columns:
            name = self._draw(st.sampled_from(self._form.columns))
            new = self._draw(NEW_TYPES[name].conditions).replace("{}", name)
            ways += [new, f"not ({new})", f"({new}) and {text}", f"({new}) or n = {number}"] * 2
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

    def statement(self) -> str | Default:
        """Any statement but the first."""
        kinds: list[Callable[[], str | Default]] = [self.insert, self._delete, self._delete, self._update, self._update]
        kinds += [self._merge, self._merge, self._merge, self._define, self._set, self._rewrite]
        kinds += [self._default, self._insert_defaults] if self.version == 3 else []
        return self._draw(st.sampled_from(kinds))()

    def insert(self) -> str:
        """Rows into one file, or one for each partition."""
        names = ", ".join(["n", *self._names()])
        return f"insert into {{t}} ({names}) select /*+ coalesce(1) */ * from {self._rows(3, 8)}"

    def _insert_defaults(self) -> str:
        """A row that has values of the columns only that need them."""
        needed = [name for name in ("a", "b", "s") if name in self._required]
        self._next += 1
        values = [f"{self._next}L", *(self._literal(name) for name in needed)]
        return f"insert into {{t}} ({', '.join(['n', *needed])}) values ({', '.join(values)})"

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

    def _default(self) -> str | Default:
        """A column with a default, or another default."""
        # Java's reader of ORC files gives older rows no defaults.
        absent = [name for name in ("e", "s.d") if name not in self.kinds and "orc" not in self._formats]
        name = self._draw(st.sampled_from([*absent, *absent, *sorted(self._defaults), *self.kinds]))
        kind = self._draw(st.sampled_from(KINDS)) if name in absent else self.kinds[name]
        stored = self._draw(near_values(kind).map(lambda each: _held(each, kind)).filter(partial(can_be_default, kind)))
        value, path = to_python(kind, stored), tuple(name.split("."))
        if name not in absent:
            return Default(path, None, value)
        required = self._chance(3)
        self.kinds[name] = kind
        self._defaults.add(name)
        self._required |= {name} if required else set()
        return Default(path, kind, value, required)

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
        formats = FORMATS[:2] if self._form.place == "keyed" or self._defaults else FORMATS
        formats = (self._form.file_format,) if self._form.columns else formats
        ways = [("write.format.default", self._draw(st.sampled_from(formats)))]
        if "v" in self._form.columns:
            ways.append(("write.parquet.shred-variants", self._draw(st.sampled_from(["true", "false"]))))
        if self.version > 1:
            ways += [(f"write.{command}.mode", self._draw(st.sampled_from(MODES))) for command in COMMANDS]
        if self.version < 3:
            ways.append(("format-version", str(self.version + 1)))
        key, value = self._draw(st.sampled_from(ways))
        self.version = int(value) if key == "format-version" else self.version
        self._formats |= {value} if key == "write.format.default" else set()
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
