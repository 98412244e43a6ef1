"""Hive type strings (`array<struct<a:int,b:decimal(9,2)>>`) as Iceberg types.

A type that Iceberg cannot hold without changing the result of a query is refused with the reason. Source: Apache Hive
language manual, "Types"; Iceberg specification, "Schemas and Data Types".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from hms_iceberg.errors import UnsupportedError
from hms_iceberg.spec.data_types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
)

TIMESTAMPTZ = TimestamptzType()

_TOKEN = re.compile(r"`(?:[^`]|``)*`|[<>(),:]|[^\s<>(),:`]+|\s+")

_PRIMITIVES: dict[str, IcebergType] = {
    "boolean": BooleanType(),
    "tinyint": IntegerType(),
    "smallint": IntegerType(),
    "int": IntegerType(),
    "integer": IntegerType(),
    "bigint": LongType(),
    "float": FloatType(),
    "double": DoubleType(),
    "string": StringType(),
    "binary": BinaryType(),
    "date": DateType(),
    "timestamp with local time zone": TimestamptzType(),
    "timestamplocaltz": TimestamptzType(),
    "timestamp_ntz": TimestampType(),
}

_REFUSED = {
    "uniontype": "Iceberg has no union type; rewrite the column as a struct",
    "interval_year_month": "Iceberg has no interval type; rewrite the column as a number",
    "interval_day_time": "Iceberg has no interval type; rewrite the column as a number",
    "void": "the column has no type that could hold a value; drop it or give it a type",
    "null": "the column has no type that could hold a value; drop it or give it a type",
    "char": (
        "Hive and Spark pad char values with blanks when they read them and Iceberg has only string, so that "
        "comparisons could change; allow it with --char-as-string if the values in the files are what you want"
    ),
}


@dataclass(frozen=True)
class TypeOptions:
    """Choices that the source's types leave open.

    Attributes:
        timestamp: the type of a Hive `timestamp`: an instant (as Spark reads it) or without zone (as Hive does).
        char_as_string: whether `char(n)` is migrated as string, with the values as the files hold them.
    """

    timestamp: TimestampType | TimestamptzType = TIMESTAMPTZ
    char_as_string: bool = False


def parse_hive_type(text: str, options: TypeOptions, ids: Iterator[int]) -> IcebergType:
    """Reads a Hive type string, in any case, names of struct fields back-quoted or not; `ids` numbers nested ones."""
    parser = _HiveTypeParser(text, options, ids)
    result = parser.parse_type()
    parser.expect_end()
    return result


class _HiveTypeParser:
    """Recursive descent over the tokens of one type string."""

    def __init__(self, text: str, options: TypeOptions, ids: Iterator[int]) -> None:
        self._text = text
        self._tokens = [token for token in _TOKEN.findall(text) if not token.isspace()]
        self._at = 0
        self._options = options
        self._ids = ids

    def parse_type(self) -> IcebergType:
        name = self._next().lower()
        if name == "array":
            self._take("<")
            element = self.parse_type()
            self._take(">")
            return ListType(next(self._ids), element, element_required=False)
        if name == "map":
            self._take("<")
            key = self.parse_type()
            self._take(",")
            value = self.parse_type()
            self._take(">")
            return MapType(next(self._ids), key, next(self._ids), value, value_required=False)
        if name == "struct":
            return self._struct()
        return self._primitive(name)

    def expect_end(self) -> None:
        if self._at != len(self._tokens):
            raise self._unreadable(f"nothing after the type, got {self._tokens[self._at]!r}")

    def _struct(self) -> StructType:
        self._take("<")
        fields: list[NestedField] = []
        while not self._accept(">"):
            if fields:
                self._take(",")
            name = self._next()
            if name.startswith("`"):
                name = name[1:-1].replace("``", "`")
            self._take(":")
            fields.append(NestedField(next(self._ids), name, self.parse_type()))
        return StructType(*fields)

    def _primitive(self, name: str) -> IcebergType:
        if name == "double" and self._peek() == "precision":
            self._next()
        if name == "timestamp" and self._peek() == "with":
            name = " ".join([name, *(self._next().lower() for _ in range(4))])
        if name in ("decimal", "numeric", "dec"):
            precision, scale = [*self._arguments(), 10, 0][:2] if self._peek() != "(" else self._decimal_arguments()
            return DecimalType(precision, scale)
        if name in ("varchar", "char"):
            self._arguments()
            if name == "varchar" or self._options.char_as_string:
                return StringType()
        if name == "timestamp":
            return self._options.timestamp
        found = _PRIMITIVES.get(name)
        if found is not None:
            return found
        reason = _REFUSED.get(name, "it is not a type that Iceberg or this package knows")
        raise UnsupportedError(f"Hive type {self._text!r} cannot be migrated: {reason}.")

    def _decimal_arguments(self) -> list[int]:
        numbers = self._arguments()
        return numbers if len(numbers) == 2 else [numbers[0], 0]

    def _arguments(self) -> list[int]:
        numbers: list[int] = []
        if self._accept("("):
            while not self._accept(")"):
                token = self._next()
                if token == ",":
                    continue
                if not token.isdecimal():
                    raise self._unreadable(f"a number, got {token!r}")
                numbers.append(int(token))
        return numbers

    def _peek(self) -> str | None:
        return self._tokens[self._at].lower() if self._at < len(self._tokens) else None

    def _next(self) -> str:
        if self._at >= len(self._tokens):
            raise self._unreadable("more text")
        self._at += 1
        return self._tokens[self._at - 1]

    def _accept(self, token: str) -> bool:
        if self._peek() == token:
            self._at += 1
            return True
        return False

    def _take(self, token: str) -> None:
        if not self._accept(token):
            got = self._peek()
            raise self._unreadable(f"{token!r}, got {'the end' if got is None else repr(got)}")

    def _unreadable(self, expected: str) -> UnsupportedError:
        return UnsupportedError(f"Hive type {self._text!r} cannot be read: expected {expected}.")
