"""Which files may hold matching rows, by their metrics, on whole columns.

The filter is inclusive: a file it drops holds no row that matches. It follows SQL where Iceberg's Java differs: NaN is
greater than every other number, and -0.0 equals 0.0 (see `hms_iceberg.expressions.visitors`).

Source: Iceberg specification, "Scan Planning".
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from hms_iceberg.expressions.bound import BoundPredicate, BoundReference, BoundTerm
from hms_iceberg.expressions.tree import BooleanExpression, Operation
from hms_iceberg.expressions.visitors import BoundExpressionVisitor, bound_predicates, fold
from hms_iceberg.lazy import pl
from hms_iceberg.scan.bound_columns import bound_dtype, comparable, has_bounds
from hms_iceberg.scan.metric_columns import MetricColumns
from hms_iceberg.spec.types import DoubleType, FloatType, UnknownType


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


def metrics_of(expression: BooleanExpression) -> tuple[str, ...]:
    """The map columns of metrics that :func:`may_match` is certain to look at."""
    return tuple(sorted({name for predicate in bound_predicates(expression) for name in _needed(predicate)}))


def _needed(predicate: BoundPredicate) -> tuple[str, ...]:
    if predicate.is_transformed:
        return ()
    operation = predicate.operation
    if operation in (Operation.LT, Operation.LT_EQ):
        return ("lower_bounds",)
    if operation in (Operation.GT, Operation.GT_EQ):
        return ("upper_bounds", "nan_value_counts") if _is_floating(predicate.term) else ("upper_bounds",)
    if operation in (Operation.IS_NAN, Operation.NOT_NAN):
        return ("nan_value_counts", "value_counts")
    if operation is Operation.IS_NULL:
        return ("null_value_counts",)
    if operation is Operation.NOT_NULL:
        return ("null_value_counts", "value_counts")
    return ("lower_bounds", "upper_bounds")


def _is_floating(term: BoundTerm) -> bool:
    return isinstance(term.type, FloatType | DoubleType)


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
        if not self._is_usable(term):
            return self._constant(True)
        ref = term.ref
        may_be_null = (self._metrics.null_counts(ref.field_id) != 0).fill_null(True)
        if any(parent.optional for parent in ref.path[:-1]):
            may_be_null = may_be_null | self._uncounted_rows(ref)
        return may_be_null

    def _uncounted_rows(self, ref: BoundReference) -> pl.Series:
        """Where values may be missing from the counts: some writers leave out rows whose struct is null."""
        every_row = self._metrics.value_counts(ref.field_id) == self._metrics.record_counts
        return ~every_row.fill_null(False)

    def visit_not_null(self, term: BoundTerm) -> pl.Series:
        return self._not_all_null(term) if self._is_usable(term) else self._constant(True)

    def visit_is_nan(self, term: BoundTerm) -> pl.Series:
        return self._may_hold_nan(term) if self._is_usable(term) else self._constant(True)

    def visit_not_nan(self, term: BoundTerm) -> pl.Series:
        if not self._is_usable(term):
            return self._constant(True)
        ref = term.ref
        may_hold = (self._metrics.nan_counts(ref.field_id) != self._metrics.value_counts(ref.field_id)).fill_null(True)
        return may_hold | self._uncounted_rows(ref) if any(parent.optional for parent in ref.path[:-1]) else may_hold

    def visit_equal(self, term: BoundTerm, value: Any) -> pl.Series:
        if not self._is_comparable(term):
            return self._constant(True)
        lower, upper = self._bounds(term)
        literal = _series(term, [value])
        within = (lower <= literal).fill_null(True) & (upper >= literal).fill_null(True)
        return self._where_numbers(within, term, lower)

    def visit_not_equal(self, term: BoundTerm, value: Any) -> pl.Series:
        if not self._is_comparable(term):
            return self._constant(True)
        lower, upper = self._bounds(term)
        literal = _series(term, [value])
        return self._without((lower == literal) & (upper == literal), term, lower)

    def visit_less_than(self, term: BoundTerm, value: Any) -> pl.Series:
        if not self._is_comparable(term):
            return self._constant(True)
        lower = self._lower(term)
        return self._where_numbers((lower < _series(term, [value])).fill_null(True), term, lower)

    def visit_less_than_or_equal(self, term: BoundTerm, value: Any) -> pl.Series:
        if not self._is_comparable(term):
            return self._constant(True)
        lower = self._lower(term)
        return self._where_numbers((lower <= _series(term, [value])).fill_null(True), term, lower)

    def visit_greater_than(self, term: BoundTerm, value: Any) -> pl.Series:
        if not self._is_comparable(term):
            return self._constant(True)
        upper = self._upper(term)
        return self._above((upper > _series(term, [value])).fill_null(True), term, upper)

    def visit_greater_than_or_equal(self, term: BoundTerm, value: Any) -> pl.Series:
        if not self._is_comparable(term):
            return self._constant(True)
        upper = self._upper(term)
        return self._above((upper >= _series(term, [value])).fill_null(True), term, upper)

    def visit_in(self, term: BoundTerm, values: tuple[Any, ...]) -> pl.Series:
        if not self._is_comparable(term):
            return self._constant(True)
        lower, upper = self._bounds(term)
        literals = _series(term, values).sort()
        first = literals.head(1)
        # The smallest value that is not below the lower bound decides: is it within the upper one?
        known = lower.is_not_null()
        position = literals.search_sorted(lower.zip_with(known, first.new_from_index(0, len(lower))))
        candidate = literals.gather(position.clip(0, len(literals) - 1))
        within = (position < len(literals)) & (candidate <= upper).fill_null(True)
        within = within.zip_with(known, (upper >= first).fill_null(True))
        return self._where_numbers(within, term, lower)

    def visit_not_in(self, term: BoundTerm, values: tuple[Any, ...]) -> pl.Series:
        if not self._is_comparable(term):
            return self._constant(True)
        lower, upper = self._bounds(term)
        literals = _series(term, values)
        return self._without((lower == upper) & lower.is_in(literals.implode()), term, lower)

    def visit_starts_with(self, term: BoundTerm, prefix: str) -> pl.Series:
        if not self._is_comparable(term):
            return self._constant(True)
        lower, upper = self._bounds(term)
        first = prefix.encode("utf-8")
        result = (upper >= _bytes(first)).fill_null(True)
        after = _after_prefix(first)
        if after is not None:
            result = result & (lower < _bytes(after)).fill_null(True)
        return self._where_values(result, term, lower)

    def visit_not_starts_with(self, term: BoundTerm, prefix: str) -> pl.Series:
        if not self._is_comparable(term):
            return self._constant(True)
        lower, upper = self._bounds(term)
        first = prefix.encode("utf-8")
        inside = lower.bin.starts_with(first) & upper.bin.starts_with(first)
        return self._where_values(~inside.fill_null(False), term, lower)

    # ------------------------------------------------------------------------------------------- helpers

    def _constant(self, value: bool) -> pl.Series:
        return pl.Series([value], dtype=pl.Boolean).new_from_index(0, len(self._metrics))

    def _is_usable(self, term: BoundTerm) -> bool:
        if self._only is not None and term.ref.field_id not in self._only:
            return False
        return isinstance(term, BoundReference) and not isinstance(term.type, UnknownType)

    def _is_comparable(self, term: BoundTerm) -> bool:
        return self._is_usable(term) and has_bounds(term.type)

    def _bounds(self, term: BoundTerm) -> tuple[pl.Series, pl.Series]:
        self._metrics.prepare(("lower_bounds", "upper_bounds"))
        return self._lower(term), self._upper(term)

    def _lower(self, term: BoundTerm) -> pl.Series:
        return self._metrics.lower_bounds(term.ref.field_id, term.type)

    def _upper(self, term: BoundTerm) -> pl.Series:
        return self._metrics.upper_bounds(term.ref.field_id, term.type)

    def _above(self, above: pl.Series, term: BoundTerm, upper: pl.Series) -> pl.Series:
        """NaN is above all, and within no bounds."""
        if _is_floating(term):
            above = above | self._may_hold_nan(term)
        return self._where_values(above, term, upper)

    def _without(self, excluded: pl.Series, term: BoundTerm, bound: pl.Series) -> pl.Series:
        """False where all values are excluded; NaN never is."""
        excluded = excluded.fill_null(False)
        if _is_floating(term) and excluded.any():
            excluded = excluded & ~self._may_hold_nan(term)
        return self._where_values(~excluded, term, bound)

    def _where_values(self, possible: pl.Series, term: BoundTerm, bound: pl.Series) -> pl.Series:
        """Also false where every value is null; a file with a bound has a value."""
        if bound.null_count() == 0 or not possible.any():
            return possible
        return possible & (bound.is_not_null() | self._not_all_null(term))

    def _where_numbers(self, possible: pl.Series, term: BoundTerm, bound: pl.Series) -> pl.Series:
        """Also false where every value is null or NaN; a file with a bound has another."""
        possible = self._where_values(possible, term, bound)
        if not _is_floating(term) or bound.null_count() == 0 or not possible.any():
            return possible
        field_id = term.ref.field_id
        others = self._metrics.nan_counts(field_id) + self._metrics.null_counts(field_id).fill_null(0)
        return possible & (bound.is_not_null() | (others != self._metrics.value_counts(field_id)).fill_null(True))

    def _not_all_null(self, term: BoundTerm) -> pl.Series:
        self._metrics.prepare(("value_counts", "null_value_counts"))
        field_id = term.ref.field_id
        return (self._metrics.value_counts(field_id) != self._metrics.null_counts(field_id)).fill_null(True)

    def _may_hold_nan(self, term: BoundTerm) -> pl.Series:
        return (self._metrics.nan_counts(term.ref.field_id) != 0).fill_null(True)


def _series(term: BoundTerm, values: Sequence[Any]) -> pl.Series:
    """Stored values in the form that decoded bounds are compared with; a single one stands for every row."""
    return pl.Series([comparable(term.type, value) for value in values], dtype=bound_dtype(term.type))


def _bytes(value: bytes) -> pl.Series:
    return pl.Series([value], dtype=pl.Binary)


def _after_prefix(prefix: bytes) -> bytes | None:
    """The smallest bytes above all that start with the prefix; None where there is none."""
    kept = prefix.rstrip(b"\xff")
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else None
