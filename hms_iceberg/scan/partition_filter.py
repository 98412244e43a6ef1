"""A predicate over partition tuples as a polars expression.

It follows SQL where Iceberg's Java differs: NaN is greater than every other number, and -0.0 equals 0.0 (see
`hms_iceberg.expressions.visitors`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hms_iceberg.expressions.bound import BoundTerm
from hms_iceberg.expressions.tree import BooleanExpression
from hms_iceberg.expressions.visitors import BoundExpressionVisitor, fold
from hms_iceberg.lazy import pl
from hms_iceberg.scan.partition_columns import polars_dtype
from hms_iceberg.spec.data_types import DoubleType, FloatType, UUIDType


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
