"""Partition values as columns, and predicates over them: a name and a type for each partition field of each spec.

A partition field has the column ``p<field id>``, shared by all specs that have the field. Old v1 tables may use one
field id for different fields; each of them then has a column of its own, ``p<field id>_s<spec id>``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hms_iceberg.errors import CorruptMetadataError
from hms_iceberg.expressions.bound import BoundTerm
from hms_iceberg.expressions.tree import BooleanExpression
from hms_iceberg.expressions.visitors import BoundExpressionVisitor, fold
from hms_iceberg.lazy import pl
from hms_iceberg.spec.data_types import (
    BooleanType,
    DecimalType,
    DoubleType,
    FloatType,
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
    """Names and types of the partition columns of a table, over all its specs.

    The type of a field comes from the newest schema that has its source column, so that the partitions of a column
    that was dropped keep their values.
    """
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
    """A predicate over partition tuples as a polars expression; true if the predicate is true, never null.

    Args:
        expression: a tree bound to the spec's partition type.
        columns: partition field id to the name of its column.
    """
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
