"""Predicates as expressions of Polars, for columns as a file has them.

The answers are those of `row_masks`: a comparison with null is not true; NaN is greater than every other number; -0.0
equals 0.0. Polars agrees on all of that, and takes unknown for false at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import islice
from operator import and_, or_
from typing import Any

import pyarrow as pa

from hms_iceberg.arrow.columns.arrow_schema import to_arrow_type
from hms_iceberg.arrow.columns.projection import FileLeaf
from hms_iceberg.arrow.formats.parquet_frames import FrameReader
from hms_iceberg.expressions.bound import BoundReference, BoundTerm
from hms_iceberg.expressions.tree import And, BooleanExpression
from hms_iceberg.expressions.visitors import BoundExpressionVisitor, bound_predicates, fold
from hms_iceberg.lazy import pl
from hms_iceberg.spec.data_types import (
    NANO_TIMESTAMPS,
    TIMESTAMPS,
    ZONED_TIMESTAMPS,
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
    TimeType,
    UUIDType,
)
from hms_iceberg.spec.values.shapes import Box

# Polars goes down into an expression test by test, on a stack that ends.
_MOST_TESTS = 200


class _NoTestError(Exception):
    """A part of a filter that Polars is not asked."""


@dataclass(frozen=True)
class FrameTest:
    """The part of a bound filter that Polars decides on a file, by the `leaves` that it needs, and the `rest` of the
    filter."""

    test: pl.Expr | None
    leaves: frozenset[int]
    rest: BooleanExpression

    @classmethod
    def of(cls, expression: BooleanExpression, frames: FrameReader | None) -> FrameTest:
        count = len(list(islice(bound_predicates(expression), _MOST_TESTS + 1)))
        if frames is None or not 0 < count <= _MOST_TESTS:
            return cls(None, frozenset(), expression)
        tests: list[pl.Expr] = []
        leaves: set[int] = set()
        rest = []
        for part in expression.operands if isinstance(expression, And) else (expression,):
            visitor = _FrameTests(frames)
            try:
                tests.append(fold(part, visitor))
            except _NoTestError:
                rest.append(part)
            else:
                leaves |= visitor.leaves
        return cls(reduce(and_, tests) if tests else None, frozenset(leaves), And(*rest))


class _FrameTests(BoundExpressionVisitor["pl.Expr"]):
    def __init__(self, frames: FrameReader) -> None:
        self._frames = frames
        self.leaves: set[int] = set()

    def _values(self, term: BoundTerm) -> pl.Expr:
        if not isinstance(term, BoundReference) or len(term.path) > 1 or not isinstance(term.type, _COMPARED):
            raise _NoTestError
        leaf = _leaf(self._frames, term.field)
        if leaf is None:
            raise _NoTestError
        self.leaves.add(leaf.index)
        return pl.col(leaf.path[0]).cast(frame_type(term.type))

    def visit_true(self) -> pl.Expr:
        return pl.lit(True)

    def visit_false(self) -> pl.Expr:
        return pl.lit(False)

    def visit_and(self, operands: Sequence[pl.Expr]) -> pl.Expr:
        return reduce(and_, operands)

    def visit_or(self, operands: Sequence[pl.Expr]) -> pl.Expr:
        return reduce(or_, operands)

    def visit_is_null(self, term: BoundTerm) -> pl.Expr:
        return self._values(term).is_null()

    def visit_not_null(self, term: BoundTerm) -> pl.Expr:
        return self._values(term).is_not_null()

    def visit_is_nan(self, term: BoundTerm) -> pl.Expr:
        return self._values(term).is_nan()

    def visit_not_nan(self, term: BoundTerm) -> pl.Expr:
        return self._values(term).is_not_nan().fill_null(True)

    def visit_equal(self, term: BoundTerm, value: Any) -> pl.Expr:
        return self._values(term) == _literal(value, term.type)

    def visit_not_equal(self, term: BoundTerm, value: Any) -> pl.Expr:
        return self._values(term) != _literal(value, term.type)

    def visit_less_than(self, term: BoundTerm, value: Any) -> pl.Expr:
        return self._values(term) < _literal(value, term.type)

    def visit_less_than_or_equal(self, term: BoundTerm, value: Any) -> pl.Expr:
        return self._values(term) <= _literal(value, term.type)

    def visit_greater_than(self, term: BoundTerm, value: Any) -> pl.Expr:
        return self._values(term) > _literal(value, term.type)

    def visit_greater_than_or_equal(self, term: BoundTerm, value: Any) -> pl.Expr:
        return self._values(term) >= _literal(value, term.type)

    def visit_in(self, term: BoundTerm, values: tuple[Any, ...]) -> pl.Expr:
        found = self._values(term)
        return found.is_in(pl.select(pl.concat([_literal(each, term.type) for each in values])).to_series())

    def visit_not_in(self, term: BoundTerm, values: tuple[Any, ...]) -> pl.Expr:
        return ~self.visit_in(term, values)

    def visit_starts_with(self, term: BoundTerm, prefix: str) -> pl.Expr:
        return self._text(term).str.starts_with(prefix)

    def visit_not_starts_with(self, term: BoundTerm, prefix: str) -> pl.Expr:
        return ~self.visit_starts_with(term, prefix)

    def _text(self, term: BoundTerm) -> pl.Expr:
        if not isinstance(term.type, StringType):
            raise _NoTestError
        return self._values(term)

    def visit_intersects_box(self, term: BoundTerm, box: Box) -> pl.Expr:
        raise _NoTestError

    def visit_not_intersects_box(self, term: BoundTerm, box: Box) -> pl.Expr:
        raise _NoTestError


def file_column(frames: FrameReader, field: NestedField, dtype: Any) -> pl.Expr | None:
    """A column of a table, of a type of polars, by what a file has; None if that is no matter of a cast."""
    leaf = _leaf(frames, field)
    return None if leaf is None else pl.col(leaf.path[0]).cast(dtype)


def _leaf(frames: FrameReader, field: NestedField) -> FileLeaf | None:
    leaf = frames.leaf_of(field.field_id)
    if leaf is None or not field.field_type.is_primitive:
        return None
    return leaf if _is_told(leaf.type, to_arrow_type(field.field_type, field_ids=False, extensions=False)) else None


def _is_told(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether a column of a file has the values of a table's column, or a cast gives them."""
    types = pa.types
    if types.is_decimal(found) and types.is_decimal(wanted):
        return bool(found.scale == wanted.scale and found.precision <= wanted.precision)
    for is_number in (types.is_signed_integer, types.is_floating):
        if is_number(found) and is_number(wanted):
            return bool(found.bit_width <= wanted.bit_width)
    return bool(found == wanted)


_COMPARED = (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    LongType,
    StringType,
    TimeType,
    UUIDType,
    *TIMESTAMPS,
)


def frame_type(kind: IcebergType) -> Any:
    """The type in which Polars compares values of a type."""
    if isinstance(kind, DecimalType):
        return pl.Decimal(kind.precision, kind.scale)
    if isinstance(kind, TIMESTAMPS):
        zone = "UTC" if isinstance(kind, ZONED_TIMESTAMPS) else None
        return pl.Datetime("ns" if isinstance(kind, NANO_TIMESTAMPS) else "us", zone)
    names: dict[type[IcebergType], str] = {
        BooleanType: "Int8",
        IntegerType: "Int32",
        LongType: "Int64",
        FloatType: "Float32",
        DoubleType: "Float64",
        DateType: "Date",
        TimeType: "Time",
        StringType: "String",
    }
    return getattr(pl, names.get(type(kind), "Binary"))()


def _literal(value: Any, kind: IcebergType) -> pl.Expr:
    """A stored value as Polars compares it with a column."""
    dtype = frame_type(kind)
    if isinstance(kind, (DateType, *TIMESTAMPS)):
        return pl.lit(value, dtype=pl.Int32 if isinstance(kind, DateType) else pl.Int64).cast(dtype)
    if isinstance(kind, TimeType):
        return pl.lit(value * 1000, dtype=pl.Int64).cast(dtype)
    if isinstance(kind, UUIDType):
        value = value.bytes
    return pl.lit(int(value) if isinstance(kind, BooleanType) else value, dtype=dtype)
