"""Bounds and partition values as typed columns, and predicates over partition values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hms_iceberg.errors import CorruptFileError, CorruptMetadataError
from hms_iceberg.expressions.bound import BoundTerm
from hms_iceberg.expressions.tree import BooleanExpression
from hms_iceberg.expressions.visitors import BoundExpressionVisitor, fold
from hms_iceberg.lazy import pl
from hms_iceberg.spec.data_types import (
    NANO_TIMESTAMPS,
    TIMESTAMPS,
    BinaryType,
    BooleanType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    GeographyType,
    GeometryType,
    IcebergType,
    NestedField,
    PrimitiveType,
    StringType,
    StructType,
    UnknownType,
    UUIDType,
)
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.partitions.partition_specs import PartitionField
from hms_iceberg.spec.values.decimals import decimal_value, unscaled_value
from hms_iceberg.spec.values.single_values import from_bytes


@dataclass(frozen=True)
class PartitionColumns:
    """Names and types of the partition columns of a table.

    Args:
        names: spec id to column names, in the order of the spec's fields.
        structs: spec id to the type of the partition tuple.
        dtypes: column name to polars type.
    """

    names: Mapping[int, tuple[str, ...]]
    structs: Mapping[int, StructType]
    dtypes: Mapping[str, Any]

    def columns(self, spec_id: int) -> tuple[str, ...]:
        """Column names of a spec's fields, in order.

        Raises:
            CorruptMetadataError: the table has no such spec.
        """
        try:
            return self.names[spec_id]
        except KeyError:
            raise CorruptMetadataError(
                f"A manifest refers to partition spec {spec_id}, but the table metadata only has the specs "
                f"{sorted(self.names)}"
            ) from None


def partition_columns(metadata: TableMetadata) -> PartitionColumns:
    """Names and types of the partition columns of a table, over all its specs. The type of a field comes from the
    newest schema that has its source column, so that the partitions of a column that was dropped keep their values."""
    sources = field_types(metadata)
    owners: dict[int, PartitionField] = {}
    names: dict[int, tuple[str, ...]] = {}
    structs: dict[int, StructType] = {}
    dtypes: dict[str, Any] = {}
    for spec in metadata.partition_specs:
        own: list[str] = []
        fields: list[NestedField] = []
        for field in spec.fields:
            owner = owners.setdefault(field.field_id, field)
            name = f"p{field.field_id}"
            if not _same_field(owner, field):
                name = f"{name}_s{spec.spec_id}"
            field_type = field.transform.result_type(sources.get(field.source_id, UnknownType()))
            if name not in dtypes or not field.transform.is_void:
                dtypes[name] = polars_dtype(field_type)
            own.append(name)
            fields.append(NestedField(field.field_id, field.name, field_type))
        names[spec.spec_id] = tuple(own)
        structs[spec.spec_id] = StructType(*fields)
    return PartitionColumns(names, structs, dtypes)


def polars_dtype(field_type: IcebergType) -> Any:
    """The polars type that holds stored values of an Iceberg type (dates and times as integers)."""
    if isinstance(field_type, BooleanType):
        return pl.Boolean
    if isinstance(field_type, PrimitiveType) and field_type.integer_bits:
        return pl.Int32 if field_type.integer_bits == 32 else pl.Int64
    if isinstance(field_type, FloatType):
        return pl.Float32
    if isinstance(field_type, DoubleType):
        return pl.Float64
    if isinstance(field_type, StringType):
        return pl.String
    if isinstance(field_type, DecimalType):
        return pl.Decimal(38, field_type.scale)
    if isinstance(field_type, UnknownType):
        return pl.Null
    return pl.Binary


def field_types(metadata: TableMetadata) -> dict[int, IcebergType]:
    """The type of every field that any schema of the table has, from the newest schema that has it."""
    types: dict[int, IcebergType] = {}
    for schema in _oldest_first(metadata):
        for field_id, field in schema.index_by_id.items():
            types[field_id] = field.field_type
    return types


def _oldest_first(metadata: TableMetadata) -> Iterable[Any]:
    current = metadata.schema()
    older = sorted((each for each in metadata.schemas if each is not current), key=lambda each: each.schema_id)
    return [*older, current]


def _same_field(one: PartitionField, other: PartitionField) -> bool:
    if one.source_id != other.source_id:
        return False
    return one.transform == other.transform or one.transform.is_void or other.transform.is_void


def partition_predicate(expression: BooleanExpression, columns: Mapping[int, str]) -> pl.Expr:
    """A predicate over partition tuples as a polars expression; true if the predicate is true, never null."""
    return fold(expression, _PartitionPredicate(columns)).fill_null(False)


class _PartitionPredicate(BoundExpressionVisitor["pl.Expr"]):
    def __init__(self, columns: Mapping[int, str]) -> None:
        self._columns = columns

    def visit_true(self) -> pl.Expr:
        return pl.lit(True)

    def visit_false(self) -> pl.Expr:
        return pl.lit(False)

    def visit_and(self, operands: Sequence[pl.Expr]) -> pl.Expr:
        return pl.all_horizontal(*operands)

    def visit_or(self, operands: Sequence[pl.Expr]) -> pl.Expr:
        return pl.any_horizontal(*operands)

    def visit_is_null(self, term: BoundTerm) -> pl.Expr:
        return self._column(term).is_null()

    def visit_not_null(self, term: BoundTerm) -> pl.Expr:
        return self._column(term).is_not_null()

    def visit_is_nan(self, term: BoundTerm) -> pl.Expr:
        return self._column(term).is_nan().fill_null(False)

    def visit_not_nan(self, term: BoundTerm) -> pl.Expr:
        return self._column(term).is_nan().fill_null(False).not_()

    def visit_equal(self, term: BoundTerm, value: Any) -> pl.Expr:
        return self._column(term) == self._literal(term, value)

    def visit_not_equal(self, term: BoundTerm, value: Any) -> pl.Expr:
        return self._column(term) != self._literal(term, value)

    def visit_less_than(self, term: BoundTerm, value: Any) -> pl.Expr:
        return (self._column(term) < self._literal(term, value)) & self._is_number(term)

    def visit_less_than_or_equal(self, term: BoundTerm, value: Any) -> pl.Expr:
        return (self._column(term) <= self._literal(term, value)) & self._is_number(term)

    def visit_greater_than(self, term: BoundTerm, value: Any) -> pl.Expr:
        return (self._column(term) > self._literal(term, value)) | self._is_number(term).not_()

    def visit_greater_than_or_equal(self, term: BoundTerm, value: Any) -> pl.Expr:
        return (self._column(term) >= self._literal(term, value)) | self._is_number(term).not_()

    def visit_in(self, term: BoundTerm, values: tuple[Any, ...]) -> pl.Expr:
        return self._column(term).is_in(self._literals(term, values))

    def visit_not_in(self, term: BoundTerm, values: tuple[Any, ...]) -> pl.Expr:
        return self._column(term).is_in(self._literals(term, values)).not_()

    def visit_starts_with(self, term: BoundTerm, prefix: str) -> pl.Expr:
        return self._column(term).str.starts_with(prefix)

    def visit_not_starts_with(self, term: BoundTerm, prefix: str) -> pl.Expr:
        return self._column(term).str.starts_with(prefix).not_()

    def _column(self, term: BoundTerm) -> pl.Expr:
        return pl.col(self._columns[term.ref.field_id])

    def _is_number(self, term: BoundTerm) -> pl.Expr:
        return self._column(term).is_not_nan() if isinstance(term.type, FloatType | DoubleType) else pl.lit(True)

    def _literal(self, term: BoundTerm, value: Any) -> pl.Expr:
        return pl.lit(_plain(term, value), polars_dtype(term.type))

    def _literals(self, term: BoundTerm, values: Sequence[Any]) -> pl.Series:
        return pl.Series([_plain(term, value) for value in values], dtype=polars_dtype(term.type)).implode()


def _plain(term: BoundTerm, value: Any) -> Any:
    return value.bytes if isinstance(term.type, UUIDType) else value


_MICROS_PER_DAY = 86_400_000_000
_UUID_BYTES = 16
_BYTES = (StringType, BinaryType, FixedType, UUIDType)
# Enough hexadecimal digits for 16 bytes, the widest decimal.
_DECIMAL_DIGITS = 32


def has_bounds(field_type: IcebergType) -> bool:
    """True for types whose bounds can be compared with a value."""
    return field_type.is_primitive and not isinstance(field_type, UnknownType | GeometryType | GeographyType)


def decode_bounds(stored: pl.Series, field_type: IcebergType) -> pl.Series:
    """A column of stored bounds (null if there is none) as one that compares with `comparable` values of the type."""
    if isinstance(field_type, StringType):
        return as_text(stored).cast(pl.Binary)
    if isinstance(field_type, UUIDType):
        return stored.set(stored.bin.size() != _UUID_BYTES, None)
    if isinstance(field_type, FixedType):
        return stored.set(stored.bin.size() > field_type.length, None)  # shorter ones were truncated
    if isinstance(field_type, BinaryType):
        return stored
    if isinstance(field_type, DecimalType):
        return _decimals(stored)
    if isinstance(field_type, FloatType | DoubleType):
        single, double = _numbers(stored, pl.Float32), _numbers(stored, pl.Float64)
        return single.cast(pl.Float64).zip_with(single.is_not_null(), double).fill_nan(None)
    if isinstance(field_type, BooleanType):
        return _numbers(stored, pl.UInt8)
    if isinstance(field_type, PrimitiveType) and field_type.integer_bits == 32:
        return _numbers(stored, pl.Int32).cast(pl.Int64)
    long = _numbers(stored, pl.Int64)
    if long.null_count() == stored.null_count():
        return long
    short = _numbers(stored, pl.Int32).cast(pl.Int64)
    if isinstance(field_type, TIMESTAMPS):
        # Four bytes are days: the column was promoted from a date.
        short = short * (_MICROS_PER_DAY * (1000 if isinstance(field_type, NANO_TIMESTAMPS) else 1))
    return long.zip_with(long.is_not_null(), short)


def stored_bounds(stored: pl.Series, field_type: IcebergType) -> pl.Series:
    """A column of stored bounds as stored values of the type; null if there is no bound of the type."""
    dtype = polars_dtype(field_type)
    if isinstance(field_type, StringType):
        return as_text(stored)
    if isinstance(field_type, DecimalType):
        unscaled = (None if each is None else int.from_bytes(each, "big", signed=True) for each in stored)
        values = [None if each is None else decimal_value(each, field_type.scale) for each in unscaled]
        return pl.Series(values, dtype=dtype)
    if has_bounds(field_type):
        return decode_bounds(stored, field_type).cast(dtype)
    return pl.Series([None] * len(stored), dtype=dtype)


def corners(stored: pl.Series) -> tuple[pl.Series, pl.Series]:
    """x and y of the corners of boxes; null if there is none, or none that can be told."""
    known = stored.set(~stored.bin.size().is_in([16, 24, 32]), None)
    x, y = (_numbers(known.bin.slice(at, 8), pl.Float64).fill_nan(None) for at in (0, 8))
    return x, y


def stored_value(field_type: IcebergType, bound: bytes | None) -> Any:
    """A bound as a stored value; None if there is none, or its bytes do not fit the type."""
    try:
        return None if bound is None else from_bytes(field_type, bound)
    except CorruptFileError:
        return None


def as_text(stored: pl.Series) -> pl.Series:
    """Bytes as text; null if they are not UTF-8."""
    try:
        return stored.cast(pl.String)
    except pl.exceptions.ComputeError:
        return pl.Series(stored.name, [_decoded(each) for each in stored], dtype=pl.String)


def _decoded(data: bytes | None) -> str | None:
    try:
        return None if data is None else data.decode("utf-8")
    except UnicodeDecodeError:
        return None


def bound_dtype(field_type: IcebergType) -> Any:
    """The polars type of decoded bounds of a type."""
    if isinstance(field_type, _BYTES):
        return pl.Binary
    if isinstance(field_type, DecimalType):
        return pl.String
    if isinstance(field_type, FloatType | DoubleType):
        return pl.Float64
    return pl.UInt8 if isinstance(field_type, BooleanType) else pl.Int64


def comparable(field_type: IcebergType, value: Any) -> Any:
    """A stored value in the form that decoded bounds are compared with."""
    if isinstance(field_type, StringType):
        return value.encode("utf-8")
    if isinstance(field_type, UUIDType):
        return value.bytes
    if isinstance(field_type, DecimalType):
        return decimal_text(unscaled_value(value, field_type.scale))
    if isinstance(field_type, BooleanType):
        return int(value)
    return value


def decimal_text(unscaled: int) -> str:
    """An unscaled decimal as text that sorts as the numbers do: its sign, then its two's complement."""
    sign = "0" if unscaled < 0 else "1"
    return f"{sign}{unscaled % (1 << 4 * _DECIMAL_DIGITS):0{_DECIMAL_DIGITS}x}"


def _numbers(stored: pl.Series, dtype: Any) -> pl.Series:
    """Little-endian numbers; null if the bytes have another length."""
    return stored.bin.reinterpret(dtype=dtype, endianness="little")


def _decimals(stored: pl.Series) -> pl.Series:
    digits = pl.col("b").bin.encode("hex")
    negative = digits.str.slice(0, 1) >= "8"
    text = (
        pl.when(negative)
        .then(pl.lit("0") + digits.str.pad_start(_DECIMAL_DIGITS, "f"))
        .otherwise(pl.lit("1") + digits.str.pad_start(_DECIMAL_DIGITS, "0"))
    )
    size = pl.col("b").bin.size()
    known = (size > 0) & (size <= _DECIMAL_DIGITS // 2)
    return stored.alias("b").to_frame().select(pl.when(known).then(text).alias("b"))["b"]
