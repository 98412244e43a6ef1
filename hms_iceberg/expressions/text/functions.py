"""The words of a filter, and the functions, casts, typed literals and comparisons that it may have."""

from __future__ import annotations

import operator
import re
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple, Union

from hms_iceberg.errors import ExpressionParseError, TypeMismatchError
from hms_iceberg.expressions.literals import (
    MAX_DIGITS,
    Literal,
    Reference,
    Term,
    Transformed,
    literal,
    literal_from_text,
    number_from_text,
    timestamp_from_text,
)
from hms_iceberg.expressions.tree import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    BooleanExpression,
    IntersectsBox,
    IsNaN,
    IsNull,
    NotNull,
    Operator,
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
from hms_iceberg.spec.partition_transforms import (
    PARAMETERIZED,
    TRANSFORMS,
    DayTransform,
    TimeTransform,
    Transform,
    YearTransform,
)

_TOKEN = re.compile(
    r"""
    (?P<space>\s+)
  | (?P<string>'(?:[^']|'')*')
  | (?P<quoted>`(?:[^`]|``)*`|"(?:[^"]|"")*")
  | (?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?P<suffix>\w*))
  | (?P<name>[^\W\d][\w$]*)
  | (?P<operator><=>|<=|>=|<>|!=|==|[=<>(),.+\-])
    """,
    re.VERBOSE,
)
_SHOWN = 60  # characters of the filter on either side of an error
_SURROGATE = re.compile("[\ud800-\udfff]")


class Token(NamedTuple):
    """One token: its kind (the groups above, or "end"), its value without quotes, and where it starts and ends."""

    kind: str
    value: str
    start: int
    end: int
    suffix: str = ""

    @property
    def word(self) -> str:
        """The lower-case text of a name that is not quoted; empty for everything else."""
        return self.value.lower() if self.kind == "name" else ""


def tokenize(text: str) -> list[Token]:
    """The tokens of a filter string, white space left out, one of kind "end" last.

    Raises:
        ExpressionParseError: a quote is not closed, or a character has no meaning.
    """
    half = _SURROGATE.search(text)
    if half is not None:
        raise parse_error(text, half.start(), f"{half[0]!r} is half of a surrogate pair, which no text in UTF-8 holds")
    tokens: list[Token] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise _unreadable(text, position)
        kind = match.lastgroup or "space"
        if kind == "suffix":
            kind = "number"
        raw = match[0]
        if kind in ("string", "quoted"):
            raw = raw[1:-1].replace(raw[0] * 2, raw[0])
        if kind == "number" and match["suffix"]:
            raw = raw[: -len(match["suffix"])]
        if kind != "space":
            tokens.append(Token(kind, raw, position, match.end(), match["suffix"] or ""))
        position = match.end()
    tokens.append(Token("end", "", len(text), len(text)))
    return tokens


def _unreadable(text: str, position: int) -> ExpressionParseError:
    character = text[position]
    if character in "'`\"":
        doubled = f"; inside of quotes it is written twice: {character * 2}"
        return parse_error(text, position, f"the quote {character} is not closed{doubled}")
    hints = {
        "&": "; combine conditions with 'and'",
        "|": "; combine conditions with 'or'",
        "!": "; negate with 'not'",
        "*": "; arithmetic is not possible in a filter",
        "/": "; arithmetic is not possible in a filter",
        "%": "; arithmetic is not possible in a filter",
        ";": "; a filter is a single condition",
    }
    return parse_error(text, position, f"unexpected character {character!r}{hints.get(character, '')}")


def parse_error(text: str, position: int, problem: str) -> ExpressionParseError:
    """The error for a problem at a position (counted from 0) of a filter string, with a line that points at it.

    Args:
        text: the filter string.
        position: index of the character, from 0.
        problem: what is wrong.
    """
    first, last = max(0, position - _SHOWN), position + _SHOWN
    before = ("…" if first else "") + _one_line(text[first:position])
    after = _one_line(text[position:last]) + ("…" if last < len(text) else "")
    return ExpressionParseError(
        f"Cannot read the filter at position {position + 1}: {problem}\n  {before}{after}\n  {' ' * len(before)}^"
    )


def _one_line(text: str) -> str:
    return re.sub(r"\s", " ", _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text))


@dataclass(frozen=True)
class CalendarYear:
    """`year(column)`: the year as people count it, unlike the transform `years`, which counts from 1970."""

    reference: Reference


# None stands for null.
Operand = Union[BooleanExpression, Reference, Transformed, CalendarYear, Literal, None]  # noqa: UP007

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
    """The literal of a number: `1`, `1.5` (a decimal), `1e3` (a double), and with Spark's suffixes L, S, Y, D, F, BD.

    Args:
        text: the digits.
        suffix: Spark's suffix in upper case; empty for none.

    Raises:
        ValueError: the suffix is unknown or does not fit the number.
    """
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
            value = struct.unpack("<f", struct.pack("<f", value))[0]
        except OverflowError:
            raise ValueError(f"{value!r} is beyond the range of a float; write it as a double: {value!r}D") from None
    return Literal(value, kind)


def compare_literals(operation: Operator, left: Literal, right: Literal) -> BooleanExpression:
    """Decides a comparison of two literals, such as `1 = 1`.

    Args:
        operation: the operator.
        left, right: the literals.

    Returns:
        always true or always false.

    Raises:
        ValueError: the literals are of types that do not compare.
    """
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
    """The predicate that compares a column, a transform of one or its calendar year with a literal.

    Args:
        operation: which comparison.
        term: what is compared.
        value: the literal.
        null_safe: whether it is false, not unknown, for null.
    """
    assert isinstance(term, (Reference, Transformed, CalendarYear))
    test = predicate(operation, source(term), year_literal(value, term))
    return And(NotNull(source(term)), test) if null_safe else test


def source(term: Reference | Transformed | CalendarYear) -> Term:
    """The term of the tree that an operand stands for."""
    return Transformed(term.reference, YearTransform()) if isinstance(term, CalendarYear) else term


def year_literal(value: Literal, term: Reference | Transformed | CalendarYear) -> Literal:
    """The literal counted from 1970 if the term is a calendar year; else the literal itself.

    Args:
        value: the literal.
        term: the other side of the comparison.

    Raises:
        ValueError: a year is compared with something else than an integer.
    """
    if not isinstance(term, CalendarYear):
        return value
    if not isinstance(value.type, LongType):
        raise ValueError(f"year({term.reference}) is an integer and cannot be compared with {value}")
    return literal(value.value - _EPOCH_YEAR)


# ------------------------------------------------------------------------------------------------ functions


def call(name: str, arguments: Sequence[Operand], type_name: str = "") -> Operand:
    """The result of a function in a filter string.

    Args:
        name: the function in lower case, without `system.`.
        arguments: what stands in its parentheses.
        type_name: for `cast`, the type after `as`, in lower case.

    Returns:
        a term, a literal or a predicate, as the function gives one.

    Raises:
        ValueError: the function is not possible in filters, or its arguments are wrong.
    """
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
    *("isnull", "isnotnull", "isnan", "startswith", "intersects_box", "cast", "date", "timestamp", "double", "year"),
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
    if len(arguments) != 1 or not isinstance(arguments[0], (Reference, Transformed)):
        raise ValueError(f"{name} needs one column")
    return arguments[0]


def _starts_with(arguments: Sequence[Operand]) -> BooleanExpression:
    if len(arguments) == 2:
        column, prefix = arguments
        if isinstance(column, (Reference, Transformed)) and isinstance(prefix, Literal):
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
