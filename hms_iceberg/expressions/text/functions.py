"""The functions, casts, typed literals and comparisons that a filter may have."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Union

from hms_iceberg.errors import TypeMismatchError
from hms_iceberg.expressions.literals import (
    MAX_DIGITS,
    Literal,
    Operator,
    literal,
    literal_from_text,
    number_from_text,
    timestamp_from_text,
)
from hms_iceberg.expressions.terms import Reference, Term, Transformed, VariantGet
from hms_iceberg.expressions.tree import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    BooleanExpression,
    EqualTo,
    IntersectsBox,
    IsNaN,
    IsNull,
    NotEqualTo,
    NotNull,
    NotStartsWith,
    StartsWith,
    predicate,
)
from hms_iceberg.spec.data_types import (
    MICRO_TIMESTAMPS,
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    LongType,
    StringType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)
from hms_iceberg.spec.transforms.partition_transforms import (
    PARAMETERIZED,
    TRANSFORMS,
    DayTransform,
    TimeTransform,
    Transform,
    YearTransform,
)
from hms_iceberg.spec.values.floats import nearest_single


@dataclass(frozen=True)
class CalendarYear:
    """`year(column)`: the year as people count it, unlike the transform `years`, which counts from 1970."""

    reference: Reference


# None stands for null.
Operand = Union[BooleanExpression, Reference, Transformed, VariantGet, CalendarYear, Literal, None]  # noqa: UP007

_EPOCH_YEAR = 1970


# ------------------------------------------------------------------------------------------------ literals


def _bytes_literal(text: str) -> Literal:
    digits = text if len(text) % 2 == 0 else "0" + text
    if not re.fullmatch(r"[0-9a-fA-F]*", text):
        raise ValueError(f"X'{text}' is not hexadecimal")
    return Literal(bytes.fromhex(digits), BinaryType())


def _date_literal(text: str) -> Literal:
    result = literal_from_text(text, DateType())
    if not isinstance(result.type, DateType):
        raise ValueError(f"{text!r} is not a date; expected for example '2017-11-16'")
    return result


TYPED_LITERALS: dict[str, Callable[[str], Literal]] = {
    "date": _date_literal,
    "time": lambda text: literal_from_text(text, TimeType()),
    "timestamp": lambda text: timestamp_from_text(text, zone=None),
    "timestamp_ntz": lambda text: timestamp_from_text(text, zone=False),
    "timestamp_ltz": lambda text: timestamp_from_text(text, zone=True),
    "timestamptz": lambda text: timestamp_from_text(text, zone=True),
    "uuid": lambda text: literal_from_text(text, UUIDType()),
    "x": _bytes_literal,
}

_SUFFIXES: dict[str, IcebergType] = {
    "l": LongType(),
    "s": LongType(),
    "y": LongType(),
    "d": DoubleType(),
    "f": FloatType(),
    "bd": DecimalType(1, 0),
}


def number_literal(text: str, suffix: str) -> Literal:
    """The literal of a number: `1`, `1.5` (decimal), `1e3` (double), and with Spark's suffixes L, S, Y, D, F, BD."""
    if not suffix and text.isdigit() and text.isascii() and len(text) < MAX_DIGITS:
        return Literal(int(text), LongType())
    kind = _SUFFIXES.get(suffix.lower())
    if suffix and kind is None:
        raise ValueError(
            f"{text}{suffix} is not a number; a name that begins with a digit must be written in back quotes"
        )
    value = number_from_text(text)
    exponent = "e" in text.lower()
    if isinstance(kind, (DoubleType, FloatType)) or (exponent and kind is None):
        return _floating(float(text), kind or DoubleType())
    if isinstance(kind, DecimalType):
        return literal(value)
    if exponent or "." in text:
        if kind is not None:
            raise ValueError(f"{text}{suffix} is not an integer")
        return literal(value)
    return literal(int(value))


def _floating(value: float, kind: IcebergType) -> Literal:
    if isinstance(kind, FloatType):
        try:
            value = nearest_single(value)
        except OverflowError:
            raise ValueError(f"{value!r} is beyond the range of a float; write it as a double: {value!r}D") from None
    return Literal(value, kind)


def compare_literals(operation: Operator, left: Literal, right: Literal) -> BooleanExpression:
    """Decides a comparison of two literals, such as `1 = 1`; ValueError if they do not compare."""
    numbers = (LongType, FloatType, DoubleType, DecimalType)
    comparable = type(left.type) is type(right.type) or (
        isinstance(left.type, numbers) and isinstance(right.type, numbers)
    )
    if not comparable or left.is_nan or right.is_nan:
        raise ValueError(f"cannot compare {left} ({left.type}) with {right} ({right.type})")
    return AlwaysTrue() if _COMPARE[operation](left.value, right.value) else AlwaysFalse()


_COMPARE: dict[Operator, Callable[[Any, Any], bool]] = {
    Operator.EQ: operator.eq,
    Operator.NOT_EQ: operator.ne,
    Operator.LT: operator.lt,
    Operator.LT_EQ: operator.le,
    Operator.GT: operator.gt,
    Operator.GT_EQ: operator.ge,
}


# ---------------------------------------------------------------------------------------- comparisons of terms


def compare(operation: Operator, term: Operand, value: Literal, null_safe: bool = False) -> BooleanExpression:
    """The predicate that compares a term with a literal; `null_safe` makes it false, not unknown, for null."""
    assert isinstance(term, (Reference, Transformed, VariantGet, CalendarYear))
    test = predicate(operation, source(term), year_literal(value, term))
    return And(NotNull(source(term)), test) if null_safe else test


def source(term: Term | CalendarYear) -> Term:
    """The term of the tree that an operand stands for."""
    return Transformed(term.reference, YearTransform()) if isinstance(term, CalendarYear) else term


def year_literal(value: Literal, term: Term | CalendarYear) -> Literal:
    """The literal counted from 1970 if the term is a calendar year; else the literal itself."""
    if not isinstance(term, CalendarYear):
        return value
    if not isinstance(value.type, LongType):
        raise ValueError(f"year({term.reference}) is an integer and cannot be compared with {value}")
    return literal(value.value - _EPOCH_YEAR)


# ------------------------------------------------------------------------------------------------ functions


def call(name: str, arguments: Sequence[Operand], type_name: str = "") -> Operand:
    """The term, literal or predicate of a function in a filter string; `type_name` is that of `cast`, in lower case."""
    if name in ("cast", "try_cast"):
        if len(arguments) != 1 or not type_name:
            raise ValueError("cast needs a value and a type: cast('2024-01-01' as date)")
        return _cast(arguments[0], type_name)
    if name in _CASTS and len(arguments) == 1:
        return _cast(arguments[0], name)
    if name in _TESTS:
        return _TESTS[name](_column(name, arguments))
    if name in ("startswith", "starts_with"):
        return _starts_with(arguments)
    if name == "intersects_box":
        return _intersects_box(arguments)
    if name in ("variant_get", "try_variant_get"):
        return _variant_get(arguments)
    if name == "to_date" and len(arguments) == 1:
        return _cast(arguments[0], "date")
    if name == "year":
        column = _column(name, arguments)
        if not isinstance(column, Reference):
            raise ValueError("year needs a column")
        return CalendarYear(column)
    if name in _TIME_TRANSFORMS:
        column = _column(name, arguments)
        return _transformed(column, _TIME_TRANSFORMS[name])
    if name in PARAMETERIZED:
        return _parameterized(name, arguments)
    if name in ("month", "day", "dayofmonth", "hour"):
        raise ValueError(f"{name}() is not possible in a filter; compare the column with dates or timestamps")
    raise ValueError(f"the function {name}() is not possible in a filter; known are {', '.join(_KNOWN)}")


_TESTS: dict[str, Callable[[Term], BooleanExpression]] = {
    "isnull": IsNull,
    "is_null": IsNull,
    "isnotnull": NotNull,
    "is_not_null": NotNull,
    "isnan": IsNaN,
    "is_nan": IsNaN,
}
_TIME_TRANSFORMS: dict[str, Transform] = {
    kind.spellings[0]: kind() for kind in TRANSFORMS.values() if issubclass(kind, TimeTransform)
}
_KNOWN = (
    *(
        "isnull",
        "isnotnull",
        "isnan",
        "startswith",
        "intersects_box",
        "variant_get",
        "cast",
        "date",
        "timestamp",
        "double",
        "year",
    ),
    *_TIME_TRANSFORMS,
    *PARAMETERIZED,
)
_CASTS: dict[str, IcebergType] = {
    "boolean": BooleanType(),
    "tinyint": LongType(),
    "smallint": LongType(),
    "int": LongType(),
    "integer": LongType(),
    "bigint": LongType(),
    "long": LongType(),
    "float": FloatType(),
    "real": FloatType(),
    "double": DoubleType(),
    "decimal": DecimalType(38, 18),
    "date": DateType(),
    "time": TimeType(),
    "timestamp": TimestamptzType(),
    "timestamptz": TimestamptzType(),
    "timestamp_ltz": TimestamptzType(),
    "timestamp_ntz": TimestampType(),
    "string": StringType(),
    "binary": BinaryType(),
    "uuid": UUIDType(),
}


def _column(name: str, arguments: Sequence[Operand]) -> Term:
    if len(arguments) != 1 or not isinstance(arguments[0], (Reference, Transformed, VariantGet)):
        raise ValueError(f"{name} needs one column")
    return arguments[0]


def _starts_with(arguments: Sequence[Operand]) -> BooleanExpression:
    if len(arguments) == 2:
        column, prefix = arguments
        if isinstance(column, (Reference, Transformed, VariantGet)) and isinstance(prefix, Literal):
            if not isinstance(prefix.type, StringType):
                raise ValueError(f"startswith needs a string, not {prefix}")
            return StartsWith(column, prefix)
    raise ValueError("startswith needs a column and a string: startswith(name, 'abc')")


def _intersects_box(arguments: Sequence[Operand]) -> BooleanExpression:
    column, *edges = arguments or (None,)
    numbers = [each.value for each in edges if isinstance(each, Literal)]
    if not isinstance(column, Reference) or len(edges) != 4 or not all(map(_is_number, numbers)) or len(numbers) != 4:
        raise ValueError(
            "intersects_box needs a column and four numbers: intersects_box(place, xmin, ymin, xmax, ymax)"
        )
    try:
        return IntersectsBox(column, numbers)
    except TypeMismatchError as error:
        raise ValueError(str(error)) from None


def _variant_get(arguments: Sequence[Operand]) -> VariantGet:
    if len(arguments) == 3:
        column, path, kind = arguments
        if isinstance(column, Reference) and isinstance(path, Literal) and isinstance(kind, Literal):
            return VariantGet(column, path.value, kind.value)
    raise ValueError("variant_get needs a column, a path and a type: variant_get(v, '$.a.b', 'int')")


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)


def _transformed(column: Term, transform: Transform) -> Transformed:
    if not isinstance(column, Reference):
        raise ValueError(f"{transform} needs a column, not {column}")
    return Transformed(column, transform)


def _parameterized(name: str, arguments: Sequence[Operand]) -> Transformed:
    numbers = [each.value for each in arguments if isinstance(each, Literal) and isinstance(each.type, LongType)]
    columns = [each for each in arguments if isinstance(each, Reference)]
    if len(arguments) != 2 or len(numbers) != 1 or len(columns) != 1:
        raise ValueError(f"{name} needs a number and a column: {name}(16, id)")
    if not 0 < numbers[0] < 2**31:
        raise ValueError(f"{name} needs a number from 1 to {2**31 - 1}, not {numbers[0]}")
    return Transformed(columns[0], PARAMETERIZED[name](numbers[0]))


def _cast(operand: Operand, type_name: str) -> Operand:
    kind = _CASTS.get(type_name.partition("(")[0])
    if kind is None:
        raise ValueError(f"cannot cast to {type_name}; known types are {', '.join(_CASTS)}")
    if operand is None:
        return None
    if isinstance(operand, Reference) and isinstance(kind, DateType):
        return Transformed(operand, DayTransform())
    if not isinstance(operand, Literal):
        raise ValueError(f"cannot cast a column to {type_name}; only literals, and timestamps to date, can be cast")
    return _cast_literal(operand, kind, type_name)


def _cast_literal(value: Literal, kind: IcebergType, type_name: str) -> Literal:
    if isinstance(value.type, StringType):
        if isinstance(kind, BinaryType):
            return literal(value.value.encode("utf-8"))
        zone = None if type_name == "timestamp" else isinstance(kind, TimestamptzType)
        if isinstance(kind, MICRO_TIMESTAMPS):
            return timestamp_from_text(value.value, zone)
        result = literal_from_text(value.value, kind)
        value = result
    if type(value.type) is type(kind):
        return value
    number = value.value
    if isinstance(kind, (FloatType, DoubleType)) and isinstance(number, (int, float, Decimal)):
        return _floating(float(number), kind)
    if isinstance(kind, DecimalType) and isinstance(value.type, LongType):
        return literal(Decimal(number))
    if isinstance(kind, LongType) and isinstance(value.type, DecimalType) and number == int(number):
        return literal(int(number))
    if isinstance(kind, StringType):
        return literal(str(value))
    raise ValueError(f"cannot cast {value} to {type_name}")


# ---------------------------------------------------------------------------------------------------------- like

# Patterns become prefix or exact comparisons, the only ones that bounds and partitions can answer.


def like_predicate(term: Term, pattern: str, escape: str, negated: bool) -> BooleanExpression:
    """The predicate of `term [not] like 'pattern' escape 'e'`; the pattern must be a text, or a text followed by %."""
    text, is_prefix = _read(pattern, escape)
    if is_prefix:
        return NotStartsWith(term, text) if negated else StartsWith(term, text)
    return NotEqualTo(term, text) if negated else EqualTo(term, text)


def _read(pattern: str, escape: str) -> tuple[str, bool]:
    """The text that the pattern begins with, and whether anything may follow it."""
    text: list[str] = []
    position = 0
    while position < len(pattern):
        character = pattern[position]
        if character == escape:
            following = pattern[position + 1 : position + 2]
            if following not in ("%", "_", escape) or not following:
                raise ValueError(
                    f"the escape {escape!r} in the pattern {pattern!r} must stand before %, _ or itself; "
                    f"write {escape * 2!r} for the character"
                )
            text.append(following)
            position += 2
            continue
        if character == "_":
            raise ValueError(
                f"like {pattern!r} is not possible: _ stands for any character; write \\_ for the character"
            )
        if character == "%":
            if pattern[position:].strip("%"):
                raise ValueError(
                    f"like {pattern!r} is not possible: % may only stand at the end (a prefix); write \\% for the "
                    "character"
                )
            return "".join(text), True
        text.append(character)
        position += 1
    return "".join(text), False
