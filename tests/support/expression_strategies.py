"""Hypothesis strategies for predicates and rows, and a reference evaluator that knows nothing of the package's own.

Values are drawn from small pools around the places where things go wrong (1970, ends of ranges, block limits, signed
zero), so that literals and rows meet often.
"""

from __future__ import annotations

import math
import os
import struct
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID

from hypothesis import strategies as st

from hms_iceberg.expressions.literals import Literal, Operator, literal, stored_literal
from hms_iceberg.expressions.terms import Term, Transformed
from hms_iceberg.expressions.tree import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    BooleanExpression,
    LiteralPredicate,
    Not,
    Or,
    SetPredicate,
    UnboundPredicate,
    predicate,
)
from hms_iceberg.spec.data_types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UUIDType,
)
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.transforms.partition_transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    Transform,
    TruncateTransform,
    VoidTransform,
    YearTransform,
)
from hms_iceberg.spec.values.datetimes import MICROS_PER_DAY, NANOS_PER_DAY
from hms_iceberg.spec.values.decimals import decimal_value
from tests.support.spec_strategies import values

EXAMPLES = int(os.environ.get("HMS_ICEBERG_EXAMPLES", "40"))
"""How many examples the larger property tests run; raise it for a long search."""

KINDS: tuple[IcebergType, ...] = (
    BooleanType(),
    IntegerType(),
    LongType(),
    FloatType(),
    DoubleType(),
    DecimalType(5, 2),
    DecimalType(38, 0),
    DateType(),
    TimeType(),
    TimestampType(),
    TimestamptzType(),
    TimestampNanoType(),
    TimestamptzNanoType(),
    StringType(),
    UUIDType(),
    BinaryType(),
    FixedType(3),
)
TRANSFORMS: tuple[Transform, ...] = (
    IdentityTransform(),
    BucketTransform(3),
    TruncateTransform(1),
    TruncateTransform(3),
    TruncateTransform(10),
    YearTransform(),
    MonthTransform(),
    DayTransform(),
    HourTransform(),
    VoidTransform(),
)

FLOATS = (FloatType, DoubleType)
ZONED = (TimestamptzType, TimestamptzNanoType)
NANOS = (TimestampNanoType, TimestamptzNanoType)
TIMESTAMPS = (TimestampType, TimestampNanoType, *ZONED)
NUMBERS = (IntegerType, LongType, FloatType, DoubleType, DecimalType)

_SMALL = (-21, -20, -11, -10, -9, -3, -1, 0, 1, 2, 3, 9, 10, 11, 20, 29, 30)
_DAYS = (-366, -365, -32, -31, -2, -1, 0, 1, 31, 365, 18262)
_TEXTS = (
    "",
    "a",
    "ab",
    "abc",
    "abcd",
    "abd",
    "b",
    "é",
    "éà",
    "éàb",
    "😀",
    "😀😀",
    "a😀b",
    "\U0010ffff",
    "50%",
    "_",
    "it's",
)
_BYTES = (
    b"",
    b"\x00",
    b"\x00\x00",
    b"a",
    b"ab",
    b"abc",
    b"abcd",
    b"\xff",
    b"\xff\xff",
    b"\xff\xff\xff",
    b"\xff\xff\xff\xff",
)


def _around(unit: int) -> list[int]:
    """Times near the limits of hours and days, and the last moment of the second after them."""
    second = unit // 86_400
    shifts = (-1, 0, 1, second - 1, second)
    hours = [hour * unit // 24 + shift for hour in (-25, -1, 0, 1, 24) for shift in shifts]
    return hours + [day * unit + shift for day in _DAYS for shift in shifts]


def _pool(kind: IcebergType) -> list[Any]:
    if isinstance(kind, (IntegerType, LongType)):
        half = 2**31 if isinstance(kind, IntegerType) else 2**63
        return [*_SMALL, -half, -half + 1, -half + 9, half - 1, half - 2]
    if isinstance(kind, FLOATS):
        edge = 3.4028234663852886e38
        return [-math.inf, -edge, -1.5, -1.0, -0.0, 0.0, 0.10000000149011612, 1.0, 1.5, 2.0, edge, math.inf, math.nan]
    if isinstance(kind, DecimalType):
        top = 10**kind.precision - 1
        return [decimal_value(each, kind.scale) for each in (*_SMALL, -top, 1 - top, top - 1, top)]
    if isinstance(kind, DateType):
        return [*_DAYS, -(2**31), 2**31 - 1]
    if isinstance(kind, TimeType):
        return [0, 1, MICROS_PER_DAY // 2, MICROS_PER_DAY - 1]
    if isinstance(kind, TIMESTAMPS):
        return [*_around(NANOS_PER_DAY if isinstance(kind, NANOS) else MICROS_PER_DAY), -(2**63), 2**63 - 1]
    if isinstance(kind, StringType):
        return list(_TEXTS)
    if isinstance(kind, BinaryType):
        return list(_BYTES)
    if isinstance(kind, FixedType):
        return [b"\x00\x00\x00", b"abc", b"ab\x00", b"\x7f\xff\xff", b"\x80\x00\x00", b"\xff\xff\xff"]
    if isinstance(kind, UUIDType):
        return [UUID(int=each) for each in (0, 1, 2**127 - 1, 2**127, 2**128 - 1)]
    return [False, True]


def near_values(kind: IcebergType) -> st.SearchStrategy[Any]:
    """Stored values of a type, most of them from its pool."""
    pool = st.sampled_from(_pool(kind))
    return st.one_of(pool, pool, pool, values(kind))


def _foreign_literals(kind: IcebergType) -> list[Any]:
    """Python values and literals that compare with a type, but are not of it."""
    if isinstance(kind, NUMBERS):
        numbers = [0, -1, 3, 2.5, -2.5, 0.1, 1e300, -1e300, math.inf, -math.inf, math.nan, 2**31, -(2**31) - 1, 2**63]
        decimals = [
            Decimal("1.005"),
            Decimal("-1.005"),
            Decimal("0.1"),
            Decimal("1e40"),
            Decimal("-1e40"),
            Decimal("3.0"),
        ]
        return [*numbers, *decimals, "10", "-1.5"]
    if isinstance(kind, DateType):
        half_day = Literal(MICROS_PER_DAY // 2, TimestampType())
        return [half_day, Literal(-1, TimestampNanoType()), "1970-01-01", "1969-12-31 12:00:00", 5]
    if isinstance(kind, TIMESTAMPS):
        plain = [Literal(each, DateType()) for each in (-1, 0, 1, 2**31 - 1)]
        finer = [Literal(each, TimestampNanoType()) for each in (-1, 1, 1000, -1001)]
        texts = ["1970-01-01", "1969-12-31 23:59:59.999999", "1969-12-31 23:59:59.999999999"]
        micros = [Literal(each, TimestampType()) for each in (-1, 0, 2**63 - 1)]
        zoned = [Literal(each, TimestamptzType()) for each in (-1, 0)] if isinstance(kind, ZONED) else []
        return [*plain, *finer, *texts, *micros, *zoned]
    if isinstance(kind, FixedType):
        return [b"", b"ab", b"abcd", b"\xff\xff\xff\xff", b"\x00"]
    if isinstance(kind, UUIDType):
        return [bytes(16), "80000000-0000-0000-0000-000000000000"]
    if isinstance(kind, TimeType):
        return ["12:00", 5, -1, 10**18]
    return ["true"] if isinstance(kind, BooleanType) else []


def literals(kind: IcebergType) -> st.SearchStrategy[Literal]:
    """Literals that compare with values of a type."""
    own = own_literals(kind)
    foreign = [literal(each) for each in _foreign_literals(kind)]
    return st.one_of(own, own, st.sampled_from(foreign)) if foreign else own


_COMPARISONS = (
    Operator.LT,
    Operator.LT_EQ,
    Operator.GT,
    Operator.GT_EQ,
    Operator.EQ,
    Operator.NOT_EQ,
)


def own_literals(kind: IcebergType) -> st.SearchStrategy[Literal]:
    """Literals of a type itself."""
    return near_values(kind).map(lambda value: stored_literal(value, kind))


@st.composite
def predicates(
    draw: st.DrawFn,
    term: str | Term,
    kind: IcebergType,
    literals: Callable[[IcebergType], st.SearchStrategy[Literal]] = literals,
) -> BooleanExpression:
    """One test of a term of a type, with literals of a choice."""
    operations = [*_COMPARISONS, Operator.IN, Operator.NOT_IN, Operator.IS_NULL, Operator.NOT_NULL]
    if isinstance(kind, FLOATS):
        operations += [Operator.IS_NAN, Operator.NOT_NAN]
    if isinstance(kind, StringType):
        operations += [Operator.STARTS_WITH, Operator.NOT_STARTS_WITH]
    operation = draw(st.sampled_from(operations))
    if operation in (Operator.IN, Operator.NOT_IN):
        return predicate(operation, term, draw(st.lists(literals(kind), min_size=0, max_size=4)))
    if operation in _COMPARISONS or operation in (Operator.STARTS_WITH, Operator.NOT_STARTS_WITH):
        return predicate(operation, term, draw(literals(kind)))
    return predicate(operation, term)


def expressions(
    leaves: st.SearchStrategy[BooleanExpression], max_leaves: int = 5
) -> st.SearchStrategy[BooleanExpression]:
    """Trees of and, or and not over tests."""
    return st.recursive(
        st.one_of(leaves, leaves, leaves, leaves, st.sampled_from([AlwaysTrue(), AlwaysFalse()])),
        lambda inner: st.one_of(
            st.lists(inner, min_size=2, max_size=3).map(lambda each: And(*each)),
            st.lists(inner, min_size=2, max_size=3).map(lambda each: Or(*each)),
            inner.map(Not),
        ),
        max_leaves=max_leaves,
    )


@st.composite
def tables(draw: st.DrawFn, kinds: tuple[IcebergType, ...] = KINDS) -> Schema:
    """A schema with two columns and a struct of one field, all of drawn types; any may be required."""
    first, second, third = (draw(st.sampled_from(kinds)) for _ in range(3))
    required = [draw(st.sampled_from([False, False, False, True])) for _ in range(4)]
    inner = StructType(NestedField(4, "c", third, required[3]))
    return Schema(
        NestedField(1, "a", first, required[0]),
        NestedField(2, "b", second, required[1]),
        NestedField(3, "s", inner, required[2]),
    )


def table_leaves(schema: Schema) -> st.SearchStrategy[BooleanExpression]:
    """Tests of the columns of `tables`."""
    by_name = [(name, schema.find_type(name)) for name in ("a", "b", "s.c")]
    tests = [predicates(name, kind) for name, kind in by_name]
    tests.append(st.sampled_from([predicate(Operator.IS_NULL, "s"), predicate(Operator.NOT_NULL, "s")]))
    return st.one_of(*tests)


def table_rows(schema: Schema) -> st.SearchStrategy[tuple[Any, ...]]:
    """Rows of `tables`: tuples of stored values, the struct a tuple or None."""

    def column(name: str) -> st.SearchStrategy[Any]:
        field = schema.find_field(name)
        found = near_values(field.field_type)
        return found if field.required else st.one_of(st.none(), found, found, found)

    inner = st.tuples(column("s.c"))
    structs = inner if schema.find_field("s").required else st.one_of(st.none(), inner, inner)
    return st.tuples(column("a"), column("b"), structs)


def value_of(row: tuple[Any, ...], name: str) -> Any:
    """The value of a column of `tables` by its dotted name, or of a fourth column `e`."""
    if name == "s.c":
        return None if row[2] is None else row[2][0]
    return row[("a", "b", "s", "e").index(name)]


# --------------------------------------------------------------------------------------------------- reference


def matches(expression: BooleanExpression, row: tuple[Any, ...], kinds: Mapping[str, IcebergType]) -> bool | None:
    """SQL's answer (None for unknown) for an unbound predicate; `kinds` has the type of every column of `tables`."""
    if isinstance(expression, AlwaysTrue):
        return True
    if isinstance(expression, AlwaysFalse):
        return False
    if isinstance(expression, Not):
        inner = matches(expression.child, row, kinds)
        return None if inner is None else not inner
    if isinstance(expression, (And, Or)):
        answers = [matches(each, row, kinds) for each in expression.operands]
        decisive = isinstance(expression, Or)
        if decisive in answers:
            return decisive
        return None if None in answers else not decisive
    assert isinstance(expression, UnboundPredicate)
    return _test(expression, row, kinds)


def _test(expression: UnboundPredicate, row: tuple[Any, ...], kinds: Mapping[str, IcebergType]) -> bool | None:
    term, operation = expression.term, expression.operation
    name = term.reference.name if isinstance(term, Transformed) else term.name
    value, kind = value_of(row, name), kinds.get(name)
    if isinstance(term, Transformed):
        assert kind is not None
        value, kind = term.transform.bind(kind)(value), term.transform.result_type(kind)
    if operation is Operator.IS_NULL:
        return value is None
    if operation is Operator.NOT_NULL:
        return value is not None
    if operation in (Operator.IS_NAN, Operator.NOT_NAN):
        return (value is not None and math.isnan(value)) == (operation is Operator.IS_NAN)
    if value is None:
        return None
    assert kind is not None
    if isinstance(expression, SetPredicate):
        found = any(_compare(value, kind, each) == 0 for each in expression.literals)
        return found == (operation is Operator.IN)
    assert isinstance(expression, LiteralPredicate)
    if operation in (Operator.STARTS_WITH, Operator.NOT_STARTS_WITH):
        return value.startswith(expression.literal.value) == (operation is Operator.STARTS_WITH)
    order = _compare(value, kind, expression.literal)
    return {
        Operator.LT: order < 0,
        Operator.LT_EQ: order <= 0,
        Operator.GT: order > 0,
        Operator.GT_EQ: order >= 0,
        Operator.EQ: order == 0,
        Operator.NOT_EQ: order != 0,
    }[operation]


def _compare(value: Any, kind: IcebergType, other: Literal) -> int:
    left, right = _key(value, kind), _literal_key(other, kind)
    return (left > right) - (left < right)


def _number_key(number: Any) -> tuple[int, Fraction]:
    if isinstance(number, float) and not math.isfinite(number):
        return (2 if math.isnan(number) else 1 if number > 0 else -1), Fraction(0)
    return 0, Fraction(number)


def _key(value: Any, kind: IcebergType) -> Any:
    """Something that compares exactly, over all types that a type compares with."""
    if isinstance(kind, NUMBERS):
        return _number_key(value)
    if isinstance(kind, DateType):
        return value * NANOS_PER_DAY
    if isinstance(kind, TIMESTAMPS):
        return value if isinstance(kind, NANOS) else value * 1000
    return value.int if isinstance(value, UUID) else value


def _literal_key(found: Literal, kind: IcebergType) -> Any:
    value = found.value
    if isinstance(found.type, StringType) and not isinstance(kind, StringType):
        return _text_key(value, kind)
    if isinstance(kind, NUMBERS):
        if isinstance(kind, DecimalType) and isinstance(value, float) and math.isfinite(value):
            return _number_key(Decimal(repr(value)))
        return _number_key(_rounded(value, kind))
    if isinstance(kind, DateType) and isinstance(found.type, LongType):
        return value * NANOS_PER_DAY
    if isinstance(kind, TIMESTAMPS) and isinstance(found.type, LongType):
        return value * 1000
    if isinstance(kind, TimeType):
        return value
    if isinstance(kind, UUIDType) and isinstance(value, bytes):
        return int.from_bytes(value, "big")
    return _key(value, found.type)


def _rounded(value: Any, kind: IcebergType) -> Any:
    """Literals become the nearest float or double; beyond the greatest one they stay where they are."""
    if not isinstance(kind, FLOATS) or (isinstance(value, float) and not math.isfinite(value)):
        return value
    if abs(value) > (3.4028234663852886e38 if isinstance(kind, FloatType) else 1.7976931348623157e308):
        return value
    return struct.unpack("<f", struct.pack("<f", float(value)))[0] if isinstance(kind, FloatType) else float(value)


_KNOWN_TEXTS = {
    "1970-01-01": 0,
    "1969-12-31 12:00:00": -NANOS_PER_DAY // 2,
    "1969-12-31 23:59:59.999999": -1000,
    "1969-12-31 23:59:59.999999999": -1,
    "12:00": MICROS_PER_DAY // 2,
    "true": True,
    "80000000-0000-0000-0000-000000000000": 2**127,
}


def _text_key(text: str, kind: IcebergType) -> Any:
    return _number_key(_rounded(Decimal(text), kind)) if isinstance(kind, NUMBERS) else _KNOWN_TEXTS[text]
