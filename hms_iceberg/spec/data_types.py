"""Types of the Iceberg specification (format v1 to v3), how they are read from text, and folds over them.

All types are frozen and hashable. `str(type)` is the text that table metadata uses for it. Source: Iceberg
specification, "Schemas and Data Types".
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

from hms_iceberg.cached_properties import cached_property
from hms_iceberg.errors import InvalidSchemaError
from hms_iceberg.printable import printable
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


# Field ids above this one are reserved for metadata columns (`_file`, `_pos` ...).
MAX_FIELD_ID = 2147483447
# How deep structs, lists and maps may be in one another: types are walked by recursion, for which the stack must be
# enough.
MAX_NESTING = 80


@dataclass(frozen=True, init=False)
class NestedField(JsonModel):
    """A field of a struct, the element of a list, or the key or value of a map.

    `initial_default` fills rows written before the field was added, `write_default` rows written without it; both
    are stored values (dates as days, and so on) and need format v3. The default of a struct is `{}` or None.

    Args:
        field_id: its id; also as `id`.
        name: its own name, without that of a struct around it.
        field_type: its type, or the text of one that is not nested; also as `type`.
    """

    _json_home: ClassVar[str] = "hms_iceberg.spec.schema_json"
    field_id: int
    name: str
    field_type: IcebergType
    required: bool = False
    doc: str | None = None
    initial_default: Any = field(default=None, hash=False)
    write_default: Any = field(default=None, hash=False)

    def __init__(
        self,
        field_id: int | None = None,
        name: str | None = None,
        field_type: IcebergType | str | None = None,
        required: bool = False,
        doc: str | None = None,
        initial_default: Any = None,
        write_default: Any = None,
        *,
        id: int | None = None,
        type: IcebergType | str | None = None,
    ) -> None:
        kind = type if field_type is None else field_type
        number = id if field_id is None else field_id
        if number is None or name is None or kind is None:
            raise InvalidSchemaError(f"Invalid field {name!r} with id {number} and type {kind}: it needs all three")
        object.__setattr__(self, "field_id", number)
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "field_type", _type_of(kind))
        object.__setattr__(self, "required", required)
        object.__setattr__(self, "doc", doc)
        object.__setattr__(self, "initial_default", initial_default)
        object.__setattr__(self, "write_default", write_default)

    @property
    def optional(self) -> bool:
        """True if the field may hold null."""
        return not self.required

    def __str__(self) -> str:
        need = "required" if self.required else "optional"
        doc = f" ({self.doc})" if self.doc else ""
        return printable(f"{self.field_id}: {self.name}: {need} {self.field_type}{doc}")


@dataclass(frozen=True)
class NestedType(IcebergType, ABC):
    """A type with child fields: struct, list or map."""

    @abstractmethod
    def children(self) -> tuple[NestedField, ...]:
        """The child fields, in order: those of a struct, `element` of a list, `key` and `value` of a map."""

    @abstractmethod
    def with_children(self, children: Sequence[NestedField]) -> NestedType:
        """A type of this kind with other child fields, in the order of `children`; names count in structs only."""

    @property
    def is_nested(self) -> bool:
        """True."""
        return True

    @cached_property
    def nesting(self) -> int:
        """The depth of structs, lists and maps in one another, this type included."""
        return 1 + max((child.field_type.nesting for child in self.children()), default=0)

    def _check_nesting(self) -> None:
        if self.nesting > MAX_NESTING:
            raise InvalidSchemaError(
                f"Invalid type: structs, lists and maps are {self.nesting} deep in one another, at most {MAX_NESTING} "
                f"are possible"
            )


@dataclass(frozen=True, init=False)
class StructType(NestedType):
    """A tuple of named fields."""

    fields: tuple[NestedField, ...]

    def __init__(self, *fields: NestedField) -> None:
        object.__setattr__(self, "fields", tuple(fields))
        self._check_nesting()

    @cached_property
    def _by_id(self) -> dict[int, NestedField]:
        return {child.field_id: child for child in self.fields}

    @cached_property
    def _by_name(self) -> dict[str, NestedField]:
        return {child.name: child for child in self.fields}

    @cached_property
    def _by_lower_name(self) -> dict[str, NestedField]:
        return {child.name.lower(): child for child in self.fields}

    def field(self, field_id: int) -> NestedField | None:
        """The direct child with this id, or None."""
        return self._by_id.get(field_id)

    def field_by_name(self, name: str, case_sensitive: bool = True) -> NestedField | None:
        """The direct child with this name, or None."""
        return self._by_name.get(name) if case_sensitive else self._by_lower_name.get(name.lower())

    def children(self) -> tuple[NestedField, ...]:
        """The fields, in order."""
        return self.fields

    def with_children(self, children: Sequence[NestedField]) -> StructType:
        """A struct of other fields."""
        return StructType(*children)

    def __len__(self) -> int:
        return len(self.fields)

    def __iter__(self) -> Iterator[NestedField]:
        return iter(self.fields)

    def __str__(self) -> str:
        return f"struct<{', '.join(str(child) for child in self.fields)}>"

    def __repr__(self) -> str:
        return f"StructType({', '.join(repr(child) for child in self.fields)})"


@dataclass(frozen=True, init=False)
class ListType(NestedType):
    """A list; its elements form the field `element`. Their type may be given as `element`, and as text."""

    element_id: int
    element_type: IcebergType
    element_required: bool = True

    def __init__(
        self,
        element_id: int,
        element_type: IcebergType | str | None = None,
        element_required: bool = True,
        *,
        element: IcebergType | str | None = None,
        type: str = "list",
    ) -> None:
        _check_kind(type, "list")
        object.__setattr__(self, "element_id", element_id)
        object.__setattr__(self, "element_type", _type_of(element if element_type is None else element_type))
        object.__setattr__(self, "element_required", element_required)
        self._check_nesting()

    @cached_property
    def element_field(self) -> NestedField:
        """The elements as a field."""
        return NestedField(self.element_id, "element", self.element_type, self.element_required)

    def children(self) -> tuple[NestedField, ...]:
        """The field `element`."""
        return (self.element_field,)

    def with_children(self, children: Sequence[NestedField]) -> ListType:
        """A list of another field `element`."""
        (element,) = children
        return ListType(element.field_id, element.field_type, element.required)

    def __str__(self) -> str:
        return f"list<{self.element_type}>"


@dataclass(frozen=True, init=False)
class MapType(NestedType):
    """A map; its entries form the fields `key` (never null) and `value`, which are also names of their types."""

    key_id: int
    key_type: IcebergType
    value_id: int
    value_type: IcebergType
    value_required: bool = True

    def __init__(
        self,
        key_id: int,
        key_type: IcebergType | str | None = None,
        value_id: int | None = None,
        value_type: IcebergType | str | None = None,
        value_required: bool = True,
        *,
        key: IcebergType | str | None = None,
        value: IcebergType | str | None = None,
        type: str = "map",
    ) -> None:
        _check_kind(type, "map")
        if value_id is None:
            raise InvalidSchemaError(f"Invalid map type with key id {key_id}: it needs a value_id")
        object.__setattr__(self, "key_id", key_id)
        object.__setattr__(self, "key_type", _type_of(key if key_type is None else key_type))
        object.__setattr__(self, "value_id", value_id)
        object.__setattr__(self, "value_type", _type_of(value if value_type is None else value_type))
        object.__setattr__(self, "value_required", value_required)
        self._check_nesting()

    @cached_property
    def key_field(self) -> NestedField:
        """The keys as a field."""
        return NestedField(self.key_id, "key", self.key_type, True)

    @cached_property
    def value_field(self) -> NestedField:
        """The values as a field."""
        return NestedField(self.value_id, "value", self.value_type, self.value_required)

    def children(self) -> tuple[NestedField, ...]:
        """The fields `key` and `value`."""
        return (self.key_field, self.value_field)

    def with_children(self, children: Sequence[NestedField]) -> MapType:
        """A map of other fields `key` and `value`."""
        key, value = children
        return MapType(key.field_id, key.field_type, value.field_id, value.field_type, value.required)

    def __str__(self) -> str:
        return f"map<{self.key_type}, {self.value_type}>"


def leaves(kind: IcebergType) -> Iterator[IcebergType]:
    """The types in a type that are not nested, from the first column to the last; itself if it is not nested."""
    if isinstance(kind, NestedType):
        for child in kind.children():
            yield from leaves(child.field_type)
    else:
        yield kind


def leaf_positions(
    fields: Sequence[NestedField], above: tuple[int, ...] = ()
) -> Iterator[tuple[NestedField, tuple[int, ...]]]:
    """The fields of primitive types in no list or map, with their positions in structs, outermost first."""
    for position, child in enumerate(fields):
        here = (*above, position)
        if isinstance(child.field_type, StructType):
            yield from leaf_positions(child.field_type.fields, here)
        elif child.field_type.is_primitive:
            yield child, here


def _type_of(kind: IcebergType | str | None) -> IcebergType:
    return kind if isinstance(kind, IcebergType) else parse_primitive(kind)  # type: ignore[arg-type]


def _check_kind(given: str, kind: str) -> None:
    if given != kind:
        raise InvalidSchemaError(f"Invalid type {given!r}: this is the type {kind}")


T = TypeVar("T")


def fold_type(
    kind: IcebergType,
    *,
    leaf: Callable[[IcebergType], T],
    struct: Callable[[StructType, Sequence[T]], T],
    list: Callable[[ListType, T], T],
    map: Callable[[MapType, T, T], T],
) -> T:
    """Applies one function for each kind of type, from the leaves up; `leaf` takes variants too."""

    if not kind.is_nested:  # as most columns, for which the function below would be made in vain
        return leaf(kind)

    def fold(each: IcebergType) -> T:
        if not each.is_nested:
            return leaf(each)
        if isinstance(each, StructType):
            return struct(each, [fold(field.field_type) for field in each.fields])
        if isinstance(each, ListType):
            return list(each, fold(each.element_type))
        assert isinstance(each, MapType)
        return map(each, fold(each.key_type), fold(each.value_type))

    return fold(kind)
