"""The terms of tests: a column by name, a partition transform of one, or a value within a variant."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Union

from hms_iceberg.errors import TypeMismatchError
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
    PrimitiveType,
    StringType,
    TimestampType,
    TimestamptzType,
)
from hms_iceberg.spec.variant.paths import parse_path

if TYPE_CHECKING:
    from hms_iceberg.spec.transforms.partition_transforms import Transform


_PLAIN_NAME = re.compile(r"[^\W\d]\w*")
# Words that are never read as a column where they stand without quotes.
RESERVED = frozenset(("and", "or", "not", "in", "is", "null", "like", "between", "true", "false"))


@dataclass(frozen=True, slots=True)
class Reference:
    """A column by its name; nested columns are written with dots, "address.city".

    Args:
        name: the dotted name, without quotes.
    """

    name: str

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise TypeMismatchError(f"Cannot refer to column {self.name!r}: expected a name, such as 'address.city'")

    def __str__(self) -> str:
        parts = self.name.split(".")
        return ".".join(quote_name(part) for part in parts) if all(parts) else quote_name(self.name)


@dataclass(frozen=True, slots=True)
class Transformed:
    """A partition transform of a column, such as `bucket(16, id)` or `days(ts)`.

    Args:
        reference: the source column.
        transform: any transform of `hms_iceberg.spec.transforms.partition_transforms`.
    """

    reference: Reference
    transform: Transform

    def __str__(self) -> str:
        number = self.transform.argument
        arguments = str(self.reference) if number is None else f"{number}, {self.reference}"
        return f"{self.transform.sql_name}({arguments})"


_NAMED: dict[str, PrimitiveType] = {
    "boolean": BooleanType(),
    "int": IntegerType(),
    "integer": IntegerType(),
    "bigint": LongType(),
    "long": LongType(),
    "float": FloatType(),
    "real": FloatType(),
    "double": DoubleType(),
    "string": StringType(),
    "date": DateType(),
    "timestamp": TimestamptzType(),
    "timestamp_ltz": TimestamptzType(),
    "timestamp_ntz": TimestampType(),
    "binary": BinaryType(),
}
_NAMES: dict[IcebergType, str] = {kind: name for name, kind in reversed(_NAMED.items())}
_DECIMAL = re.compile(r"(?:decimal|numeric|dec)(?:\((\d+)(?:,(\d+))?\))?")


@dataclass(frozen=True, slots=True)
class VariantGet:
    """A value within a variant, as Spark's `try_variant_get` gives it; null if it is missing or cannot be cast.

    Args:
        reference: the column, by its dotted name or as a `Reference`.
        path: the way to the value, such as "$.a.b", "$['a']" or "$[0]"; "$" is the variant itself.
        type: what the value is cast to: a type of Spark's such as "int" or "decimal(9,2)", or of Iceberg: boolean, int,
            long, float, double, decimal, string, date, timestamp with and without a zone, binary.
    """

    reference: Reference
    path: str
    type: IcebergType

    def __init__(self, reference: str | Reference, path: str, type: str | IcebergType) -> None:
        try:
            parse_path(path)
            kind = _cast_type(type) if isinstance(type, str) else type
            if not isinstance(kind, DecimalType) and kind not in _NAMES:
                raise ValueError(f"variants are not cast to {type}; known types are {', '.join(_NAMED)}, decimal")
        except (ValueError, TypeError) as error:
            raise TypeMismatchError(f"Cannot take a value from a variant: {error}") from None
        object.__setattr__(self, "reference", reference if isinstance(reference, Reference) else Reference(reference))
        object.__setattr__(self, "path", path)
        object.__setattr__(self, "type", kind)

    def __str__(self) -> str:
        kind = self.type
        name = f"decimal({kind.precision},{kind.scale})" if isinstance(kind, DecimalType) else _NAMES[kind]
        path = self.path.replace("'", "''")
        return f"variant_get({self.reference}, '{path}', '{name}')"


def _cast_type(text: str) -> IcebergType:
    name = "".join(text.lower().split())
    match = _DECIMAL.fullmatch(name)
    if match is None:
        kind = _NAMED.get(name)
        if kind is None:
            raise ValueError(f"variants are not cast to {text!r}; known types are {', '.join(_NAMED)}, decimal")
        return kind
    precision, scale = int(match[1] or 10), int(match[2] or 0)
    if not scale <= precision <= 38 or precision < 1:
        raise ValueError(f"{text!r} is no type: decimals have 1 to 38 digits")
    return DecimalType(precision, scale)


Term = Union[Reference, Transformed, VariantGet]  # noqa: UP007  (an alias is evaluated, also by Python 3.10)


def to_term(term: str | Term) -> Term:
    if isinstance(term, (Reference, Transformed, VariantGet)):
        return term
    return Reference(term)


def quote_name(part: str) -> str:
    """One part of a name as it must be written in a filter string: in back quotes if it is not a plain word."""
    if _PLAIN_NAME.fullmatch(part) and part.lower() not in RESERVED:
        return part
    return "`" + part.replace("`", "``") + "`"
