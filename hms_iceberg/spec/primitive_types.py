"""Types of the Iceberg specification that are not nested (format v1 to v3), and how they are read from text.

Source: Iceberg specification, "Schemas and Data Types".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from hms_iceberg.errors import InvalidSchemaError
from hms_iceberg.spec.json_model import JsonModel

DEFAULT_CRS = "OGC:CRS84"
DEFAULT_EDGE_ALGORITHM = "spherical"
EDGE_ALGORITHMS = ("spherical", "vincenty", "thomas", "andoyer", "karney")
MAX_DECIMAL_PRECISION = 38


@dataclass(frozen=True)
class IcebergType(JsonModel):
    """The base class of all types. `min_format_version` is the first table version that may use the type."""

    min_format_version: ClassVar[int] = 1
    _json_home: ClassVar[str] = "hms_iceberg.spec.schema_json"

    @property
    def nesting(self) -> int:
        """The depth of structs, lists and maps in one another, this type included; 0 for types that are not nested."""
        return 0

    @property
    def is_primitive(self) -> bool:
        """True for types whose values can be partitioned on, compared and have bounds."""
        return isinstance(self, PrimitiveType)

    @property
    def is_nested(self) -> bool:
        """True for struct, list and map."""
        return False


@dataclass(frozen=True)
class PrimitiveType(IcebergType):
    """A type without children.

    Attributes:
        integer_bits: how wide the integers are that stand for its values (a date is the days since 1970); 0 if none do.
    """

    integer_bits: ClassVar[int] = 0
    _name: ClassVar[str] = ""

    def __str__(self) -> str:
        return self._name

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


@dataclass(frozen=True, repr=False)
class BooleanType(PrimitiveType):
    """A truth value."""

    _name: ClassVar[str] = "boolean"


@dataclass(frozen=True, repr=False)
class IntegerType(PrimitiveType):
    """A 32-bit signed integer."""

    max: ClassVar[int] = 2**31 - 1
    min: ClassVar[int] = -(2**31)

    _name: ClassVar[str] = "int"
    integer_bits: ClassVar[int] = 32


@dataclass(frozen=True, repr=False)
class LongType(PrimitiveType):
    """A 64-bit signed integer."""

    max: ClassVar[int] = 2**63 - 1
    min: ClassVar[int] = -(2**63)

    _name: ClassVar[str] = "long"
    integer_bits: ClassVar[int] = 64


@dataclass(frozen=True, repr=False)
class FloatType(PrimitiveType):
    """A 32-bit IEEE 754 number."""

    _name: ClassVar[str] = "float"


@dataclass(frozen=True, repr=False)
class DoubleType(PrimitiveType):
    """A 64-bit IEEE 754 number."""

    _name: ClassVar[str] = "double"


@dataclass(frozen=True, repr=False)
class DateType(PrimitiveType):
    """A calendar date; stored as days from 1970-01-01."""

    _name: ClassVar[str] = "date"
    integer_bits: ClassVar[int] = 32


@dataclass(frozen=True, repr=False)
class TimeType(PrimitiveType):
    """A time of day; stored as microseconds from midnight."""

    _name: ClassVar[str] = "time"
    integer_bits: ClassVar[int] = 64


@dataclass(frozen=True, repr=False)
class TimestampType(PrimitiveType):
    """Date and time without zone; stored as microseconds from 1970-01-01T00:00."""

    _name: ClassVar[str] = "timestamp"
    integer_bits: ClassVar[int] = 64


@dataclass(frozen=True, repr=False)
class TimestamptzType(PrimitiveType):
    """A point in time; stored as microseconds from 1970-01-01T00:00 UTC."""

    _name: ClassVar[str] = "timestamptz"
    integer_bits: ClassVar[int] = 64


@dataclass(frozen=True, repr=False)
class TimestampNanoType(PrimitiveType):
    """Date and time without zone; stored as nanoseconds from 1970-01-01T00:00. Format v3."""

    _name: ClassVar[str] = "timestamp_ns"
    integer_bits: ClassVar[int] = 64
    min_format_version: ClassVar[int] = 3


@dataclass(frozen=True, repr=False)
class TimestamptzNanoType(PrimitiveType):
    """A point in time; stored as nanoseconds from 1970-01-01T00:00 UTC. Format v3."""

    _name: ClassVar[str] = "timestamptz_ns"
    integer_bits: ClassVar[int] = 64
    min_format_version: ClassVar[int] = 3


LOCAL_TIMESTAMPS = (TimestampType, TimestampNanoType)
ZONED_TIMESTAMPS = (TimestamptzType, TimestamptzNanoType)
MICRO_TIMESTAMPS = (TimestampType, TimestamptzType)
NANO_TIMESTAMPS = (TimestampNanoType, TimestamptzNanoType)
TIMESTAMPS = (*MICRO_TIMESTAMPS, *NANO_TIMESTAMPS)


@dataclass(frozen=True, repr=False)
class StringType(PrimitiveType):
    """Text, encoded as UTF-8."""

    _name: ClassVar[str] = "string"


@dataclass(frozen=True, repr=False)
class UUIDType(PrimitiveType):
    """A universally unique identifier; stored as 16 bytes, big-endian."""

    _name: ClassVar[str] = "uuid"


@dataclass(frozen=True, repr=False)
class BinaryType(PrimitiveType):
    """Bytes of any length."""

    _name: ClassVar[str] = "binary"


@dataclass(frozen=True, repr=False)
class UnknownType(PrimitiveType):
    """The type of a column that only holds nulls; always optional. Format v3."""

    _name: ClassVar[str] = "unknown"
    min_format_version: ClassVar[int] = 3


@dataclass(frozen=True, repr=False)
class FixedType(PrimitiveType):
    """Exactly `length` bytes."""

    length: int

    def __post_init__(self) -> None:
        if not _is_int(self.length) or not 0 <= self.length < 2**31:
            raise InvalidSchemaError(
                f"Invalid type fixed[{self.length}]: the length must be from 0 to {2**31 - 1} bytes"
            )

    def __len__(self) -> int:
        return self.length

    def __bool__(self) -> bool:
        return True

    def __str__(self) -> str:
        return f"fixed[{self.length}]"

    def __repr__(self) -> str:
        return f"FixedType(length={self.length})"


@dataclass(frozen=True, repr=False)
class DecimalType(PrimitiveType):
    """A fixed-point number with `precision` digits, `scale` of them after the point."""

    precision: int
    scale: int

    def __post_init__(self) -> None:
        if not _is_int(self.precision) or not 1 <= self.precision <= MAX_DECIMAL_PRECISION:
            raise InvalidSchemaError(
                f"Invalid type decimal({self.precision},{self.scale}): "
                f"the precision must be from 1 to {MAX_DECIMAL_PRECISION}, got {self.precision}"
            )
        if not _is_int(self.scale) or self.scale < 0:
            raise InvalidSchemaError(
                f"Invalid type decimal({self.precision},{self.scale}): the scale must be 0 or more, got {self.scale}"
            )

    def __str__(self) -> str:
        return f"decimal({self.precision},{self.scale})"

    def __repr__(self) -> str:
        return f"DecimalType(precision={self.precision}, scale={self.scale})"


def _same_crs(left: str, right: str) -> bool:
    return left.upper() == right.upper()


@dataclass(frozen=True, repr=False, eq=False)
class GeometryType(PrimitiveType):
    """Planar geospatial features in the coordinate reference system `crs`. Format v3."""

    crs: str = DEFAULT_CRS
    min_format_version: ClassVar[int] = 3

    def __post_init__(self) -> None:
        _check_crs(self.crs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GeometryType) and _same_crs(self.crs, other.crs)

    def __hash__(self) -> int:
        return hash((GeometryType, self.crs.upper()))

    def __str__(self) -> str:
        return f"geometry({self.crs})"

    def __repr__(self) -> str:
        return f"GeometryType(crs={self.crs!r})"


@dataclass(frozen=True, repr=False, eq=False)
class GeographyType(PrimitiveType):
    """Geospatial features on the globe, edges interpolated by `algorithm`. Format v3."""

    crs: str = DEFAULT_CRS
    algorithm: str = DEFAULT_EDGE_ALGORITHM
    min_format_version: ClassVar[int] = 3

    def __post_init__(self) -> None:
        _check_crs(self.crs)
        if self.algorithm not in EDGE_ALGORITHMS:
            raise InvalidSchemaError(
                f"Invalid type geography({self.crs}, {self.algorithm}): the edge algorithm must be one of "
                f"{', '.join(EDGE_ALGORITHMS)}"
            )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GeographyType) and _same_crs(self.crs, other.crs) and self.algorithm == other.algorithm

    def __hash__(self) -> int:
        return hash((GeographyType, self.crs.upper(), self.algorithm))

    def __str__(self) -> str:
        return f"geography({self.crs}, {self.algorithm})"

    def __repr__(self) -> str:
        return f"GeographyType(crs={self.crs!r}, algorithm={self.algorithm!r})"


@dataclass(frozen=True)
class VariantType(IcebergType):
    """Semi-structured data; neither primitive nor nested. Format v3."""

    min_format_version: ClassVar[int] = 3

    def __str__(self) -> str:
        return "variant"


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _check_crs(crs: object) -> None:
    if not isinstance(crs, str) or not crs.strip():
        raise InvalidSchemaError(f"Invalid coordinate reference system {crs!r}: expected a name such as {DEFAULT_CRS}")


_SIMPLE: dict[str, IcebergType] = {
    str(each): each
    for each in (
        BooleanType(),
        IntegerType(),
        LongType(),
        FloatType(),
        DoubleType(),
        DateType(),
        TimeType(),
        TimestampType(),
        TimestamptzType(),
        TimestampNanoType(),
        TimestamptzNanoType(),
        StringType(),
        UUIDType(),
        BinaryType(),
        UnknownType(),
        VariantType(),
    )
}
_FIXED = re.compile(r"fixed\s*\[\s*(\d+)\s*\]", re.IGNORECASE)
_DECIMAL = re.compile(r"decimal\s*\(\s*(\d+)\s*,\s*(\d+)\s*\)", re.IGNORECASE)
_GEOMETRY = re.compile(r"geometry\s*(?:\(\s*([^)]*?)\s*\))?", re.IGNORECASE)
_GEOGRAPHY = re.compile(r"geography\s*(?:\(\s*([^,)]*?)\s*(?:,\s*(\w*)\s*)?\))?", re.IGNORECASE)


def parse_primitive(text: str) -> IcebergType:
    """Reads the text of a primitive type, such as "decimal(9, 2)", in any case and with spaces around parameters."""
    if not isinstance(text, str):
        raise InvalidSchemaError(f"Cannot read a type from {text!r}: expected text such as 'long' or 'decimal(9,2)'")
    stripped = text.strip()
    simple = _SIMPLE.get(stripped.lower())
    if simple is not None:
        return simple
    if match := _FIXED.fullmatch(stripped):
        return FixedType(int(match[1]))
    if match := _DECIMAL.fullmatch(stripped):
        return DecimalType(int(match[1]), int(match[2]))
    if match := _GEOMETRY.fullmatch(stripped):
        return GeometryType() if match[1] is None else GeometryType(match[1])
    if match := _GEOGRAPHY.fullmatch(stripped):
        crs = DEFAULT_CRS if match[1] is None else match[1]
        return GeographyType(crs, DEFAULT_EDGE_ALGORITHM if match[2] is None else match[2].lower())
    raise InvalidSchemaError(
        f"Unknown type {text!r}: expected one of {', '.join(_SIMPLE)}, fixed[L], decimal(P,S), geometry(C) or "
        "geography(C, A)"
    )
