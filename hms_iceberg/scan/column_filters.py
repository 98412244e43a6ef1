"""Predicates on whole columns: which files may hold matching rows, by their partitions and by their metrics.

Both filters are inclusive: a file they drop holds no row that matches. They follow SQL where Iceberg's Java differs:
NaN is greater than every other number, and -0.0 equals 0.0 (see `hms_iceberg.expressions.visitors`).

Source: Iceberg specification, "Scan Planning".
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hms_iceberg.expressions.bound import BoundReference, BoundTerm
from hms_iceberg.expressions.tree import BooleanExpression
from hms_iceberg.expressions.visitors import BoundExpressionVisitor, fold
from hms_iceberg.scan.bounds import comparable, has_bounds
from hms_iceberg.scan.metric_columns import MetricColumns
from hms_iceberg.scan.partition_columns import polars_dtype
from hms_iceberg.spec.types import DoubleType, FloatType, UnknownType, UUIDType

if TYPE_CHECKING:
    import polars as pl

_FLOATING = (FloatType, DoubleType)


def partition_predicate(expression: BooleanExpression, columns: Mapping[int, str]) -> pl.Expr:
    """A predicate over partition tuples as a polars expression; true where the predicate is true.

    Args:
        expression: a tree bound to the spec's partition type.
        columns: partition field id to the name of its column.
    """
    return fold(expression, _PartitionPredicate(columns)).fill_null(False)


def may_match(expression: BooleanExpression, metrics: MetricColumns, only: Collection[int] | None = None) -> pl.Series:
    """Which files may hold a row that matches, by their metrics.

    Args:
        expression: a tree bound to the table's schema.
        metrics: the files' metrics.
        only: where given, tests of other fields than these are taken to match.

    Returns:
        A boolean column without nulls.
    """
    result = fold(expression, _MetricsPredicate(metrics, only))
    # Writers that did not know the number of rows left it negative; a file without rows has nothing to match.
    return result & (metrics.record_counts != 0)


class _PartitionPredicate(BoundExpressionVisitor["pl.Expr"]):
    def __init__(self, columns: Mapping[int, str]) -> None:
        self._columns = columns

    def visit_true(self) -> pl.Expr:
        import polars as pl

        return pl.lit(True)

    def visit_false(self) -> pl.Expr:
        import polars as pl

        return pl.lit(False)

    def visit_and(self, operands: Sequence[pl.Expr]) -> pl.Expr:
        import polars as pl

        return pl.all_horizontal(*operands)

    def visit_or(self, operands: Sequence[pl.Expr]) -> pl.Expr:
        import polars as pl

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
        import polars as pl

        return pl.col(self._columns[term.ref.field_id])

    def _is_number(self, term: BoundTerm) -> pl.Expr:
        import polars as pl

        return self._column(term).is_not_nan() if isinstance(term.type, _FLOATING) else pl.lit(True)

    def _literal(self, term: BoundTerm, value: Any) -> pl.Expr:
        import polars as pl

        return pl.lit(_plain(term, value), polars_dtype(term.type))

    def _literals(self, term: BoundTerm, values: Sequence[Any]) -> pl.Series:
        import polars as pl

        return pl.Series([_plain(term, value) for value in values], dtype=polars_dtype(term.type)).implode()


def _plain(term: BoundTerm, value: Any) -> Any:
    return value.bytes if isinstance(term.type, UUIDType) else value


class _MetricsPredicate(BoundExpressionVisitor["pl.Series"]):
    """True where the metrics leave a match possible; unknown metrics always do."""

    def __init__(self, metrics: MetricColumns, only: Collection[int] | None) -> None:
        self._metrics = metrics
        self._only = only

    def visit_true(self) -> pl.Series:
        return self._constant(True)

    def visit_false(self) -> pl.Series:
        return self._constant(False)

    def visit_and(self, operands: Sequence[pl.Series]) -> pl.Series:
        result = operands[0]
        for each in operands[1:]:
            result = result & each
        return result

    def visit_or(self, operands: Sequence[pl.Series]) -> pl.Series:
        result = operands[0]
        for each in operands[1:]:
            result = result | each
        return result

    def visit_is_null(self, term: BoundTerm) -> pl.Series:
        ref = term.ref
        # Some writers do not count the rows in which the struct around a field is null.
        if not self._is_usable(term) or any(parent.optional for parent in ref.path[:-1]):
            return self._constant(True)
        return (self._metrics.null_counts(ref.field_id) != 0).fill_null(True)

    def visit_not_null(self, term: BoundTerm) -> pl.Series:
        return self._has_values(term) if self._is_usable(term) else self._constant(True)

    def visit_is_nan(self, term: BoundTerm) -> pl.Series:
        if not self._is_usable(term):
            return self._constant(True)
        return (self._metrics.nan_counts(term.ref.field_id) != 0).fill_null(True) & self._has_values(term)

    def visit_not_nan(self, term: BoundTerm) -> pl.Series:
        if not self._is_usable(term):
            return self._constant(True)
        return ~self._only_nan(term)

    def visit_equal(self, term: BoundTerm, value: Any) -> pl.Series:
        if not self._is_comparable(term):
            return self._constant(True)
        literal = self._literal(term, value)
        return (
            (self._lower(term) <= literal).fill_null(True)
            & (self._upper(term) >= literal).fill_null(True)
            & self._has_numbers(term)
        )

    def visit_not_equal(self, term: BoundTerm, value: Any) -> pl.Series:
        if not self._is_comparable(term):
            return self._constant(True)
        literal = self._literal(term, value)
        only_value = (self._lower(term) == literal).fill_null(False) & (self._upper(term) == literal).fill_null(False)
        return (~only_value | self._may_hold_nan(term)) & self._has_values(term)

    def visit_less_than(self, term: BoundTerm, value: Any) -> pl.Series:
        if not self._is_comparable(term):
            return self._constant(True)
        return (self._lower(term) < self._literal(term, value)).fill_null(True) & self._has_numbers(term)

    def visit_less_than_or_equal(self, term: BoundTerm, value: Any) -> pl.Series:
        if not self._is_comparable(term):
            return self._constant(True)
        return (self._lower(term) <= self._literal(term, value)).fill_null(True) & self._has_numbers(term)

    def visit_greater_than(self, term: BoundTerm, value: Any) -> pl.Series:
        if not self._is_comparable(term):
            return self._constant(True)
        above = (self._upper(term) > self._literal(term, value)).fill_null(True)
        return (above | self._may_hold_nan(term)) & self._has_values(term)

    def visit_greater_than_or_equal(self, term: BoundTerm, value: Any) -> pl.Series:
        if not self._is_comparable(term):
            return self._constant(True)
        above = (self._upper(term) >= self._literal(term, value)).fill_null(True)
        return (above | self._may_hold_nan(term)) & self._has_values(term)

    def visit_in(self, term: BoundTerm, values: tuple[Any, ...]) -> pl.Series:
        import polars as pl

        if not self._is_comparable(term):
            return self._constant(True)
        lower, upper = self._lower(term), self._upper(term)
        literals = pl.Series(sorted(comparable(term.type, value) for value in values), dtype=lower.dtype)
        # The smallest value that is not below the lower bound decides: is it within the upper one?
        known = lower.is_not_null()
        position = literals.search_sorted(lower.zip_with(known, literals.head(1).new_from_index(0, len(lower))))
        candidate = literals.gather(position.clip(0, len(literals) - 1))
        within = (position < len(literals)) & (candidate <= upper).fill_null(True)
        first_below_upper = (upper >= literals.head(1)).fill_null(True)
        return within.zip_with(known, first_below_upper) & self._has_numbers(term)

    def visit_not_in(self, term: BoundTerm, values: tuple[Any, ...]) -> pl.Series:
        return self.visit_not_null(term)

    def visit_starts_with(self, term: BoundTerm, prefix: str) -> pl.Series:
        if not self._is_comparable(term):
            return self._constant(True)
        first = prefix.encode("utf-8")
        result = (self._upper(term) >= _one(first)).fill_null(True) & self._has_values(term)
        after = _after_prefix(first)
        return result if after is None else result & (self._lower(term) < _one(after)).fill_null(True)

    def visit_not_starts_with(self, term: BoundTerm, prefix: str) -> pl.Series:
        if not self._is_comparable(term):
            return self._constant(True)
        first = prefix.encode("utf-8")
        inside = self._lower(term).bin.starts_with(first) & self._upper(term).bin.starts_with(first)
        return ~inside.fill_null(False) & self._has_values(term)

    def _constant(self, value: bool) -> pl.Series:
        import polars as pl

        return pl.Series([value], dtype=pl.Boolean).new_from_index(0, len(self._metrics))

    def _is_usable(self, term: BoundTerm) -> bool:
        if self._only is not None and term.ref.field_id not in self._only:
            return False
        return isinstance(term, BoundReference) and not isinstance(term.type, UnknownType)

    def _is_comparable(self, term: BoundTerm) -> bool:
        return self._is_usable(term) and has_bounds(term.type)

    def _literal(self, term: BoundTerm, value: Any) -> pl.Series:
        import polars as pl

        return pl.Series([comparable(term.type, value)], dtype=self._lower(term).dtype)

    def _lower(self, term: BoundTerm) -> pl.Series:
        return self._metrics.lower_bounds(term.ref.field_id, term.type)

    def _upper(self, term: BoundTerm) -> pl.Series:
        return self._metrics.upper_bounds(term.ref.field_id, term.type)

    def _has_values(self, term: BoundTerm) -> pl.Series:
        """False where every value is null."""
        field_id = term.ref.field_id
        return (self._metrics.value_counts(field_id) != self._metrics.null_counts(field_id)).fill_null(True)

    def _has_numbers(self, term: BoundTerm) -> pl.Series:
        """False where every value is null or NaN."""
        result = self._has_values(term)
        if not isinstance(term.type, _FLOATING):
            return result
        field_id = term.ref.field_id
        others = self._metrics.nan_counts(field_id) + self._metrics.null_counts(field_id).fill_null(0)
        return result & (others != self._metrics.value_counts(field_id)).fill_null(True)

    def _only_nan(self, term: BoundTerm) -> pl.Series:
        field_id = term.ref.field_id
        return (self._metrics.nan_counts(field_id) == self._metrics.value_counts(field_id)).fill_null(False)

    def _may_hold_nan(self, term: BoundTerm) -> pl.Series:
        if not isinstance(term.type, _FLOATING):
            return self._constant(False)
        return (self._metrics.nan_counts(term.ref.field_id) != 0).fill_null(True)


def _one(value: bytes) -> pl.Series:
    import polars as pl

    return pl.Series([value], dtype=pl.Binary)


def _after_prefix(prefix: bytes) -> bytes | None:
    """The smallest bytes above all that start with the prefix; None where there is none."""
    kept = prefix.rstrip(b"\xff")
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else None
