"""Tests of many rows by bounds and counts alone, on whole columns: may any row match?

One set of rules serves data files, manifests and row groups: whatever has `ValueSummaries`.

| test        | some row may match unless                        |
|-------------|--------------------------------------------------|
| is null     | there are no nulls                               |
| is not null | there are only nulls                             |
| is nan      | there are no NaN, or only nulls                  |
| is not nan  | there are only NaN and no nulls                  |
| <, <=       | only nulls or NaN; lower is not below            |
| >, >=       | only nulls; no NaN, and upper is not above       |
| =, in       | only nulls or NaN; no value lies in the bounds   |
| !=, not in  | only nulls; no NaN, both bounds are such a value |
| like 'x%'   | only nulls; the bounds' prefixes exclude x       |
| not like    | only nulls; both bounds start with x             |
| meets a box | only nulls; the bounds' box does not meet it     |
| not         | only nulls; empty shapes are not told            |

All rows match where none may match the complement: where the test is neither false nor unknown of any. Bounds may be
wider than the values (truncated text), never narrower; they do not cover NaN. A test of a bucket is only decided where
both bounds are the same value. The rules follow SQL where Iceberg's Java differs: NaN is greater than every other
number, and -0.0 equals 0.0 (see `hms_iceberg.expressions.visitors`).

Source: Iceberg specification, "Scan Planning".
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Protocol

from hms_iceberg.expressions.bound import (
    BoundPredicate,
    BoundReference,
    BoundTerm,
    BoundTransform,
    BoundVariantGet,
)
from hms_iceberg.expressions.evaluate import value_test
from hms_iceberg.expressions.literals import Operator
from hms_iceberg.expressions.tree import BooleanExpression
from hms_iceberg.expressions.visitors import BoundExpressionVisitor, bound_predicates, fold
from hms_iceberg.lazy import pl
from hms_iceberg.scan.manifests.metric_columns import ContentMetrics, Metric, MetricColumns, ObjectMetrics, possibly
from hms_iceberg.scan.partition_columns import bound_dtype, comparable, corners, has_bounds, stored_value
from hms_iceberg.spec.data_types import DoubleType, FloatType, GeographyType, NestedField, UnknownType
from hms_iceberg.spec.values.shapes import Box
from hms_iceberg.spec.values.single_values import next_bytes
from hms_iceberg.spec.variant.bounds import field_bounds
from hms_iceberg.spec.variant.casts import cast_bounds
from hms_iceberg.spec.variant.paths import normalized_path


class ValueSummaries(Protocol):
    """Summaries of field values for many sets of rows; a value that is not known to be absent is possible."""

    def __len__(self) -> int:
        """How many sets of rows there are."""

    def lower(self, ref: BoundReference) -> pl.Series:
        """No value but NaN is less; comparable (see `hms_iceberg.scan.partition_columns`), null if unknown."""

    def upper(self, ref: BoundReference) -> pl.Series:
        """No value but NaN is greater; comparable, null if unknown."""

    def bounds(self, ref: BoundReference) -> tuple[pl.Series, pl.Series]:
        """Lower and upper bounds of a field."""

    def stored_bounds(self, field_id: int) -> tuple[pl.Series, pl.Series]:
        """Both of them as bytes."""

    def may_be_null(self, ref: BoundReference) -> pl.Series:
        """Where some row may be null."""

    def may_be_value(self, ref: BoundReference) -> pl.Series:
        """Where some row may be no null."""

    def may_be_nan(self, ref: BoundReference) -> pl.Series:
        """Where some row may be NaN."""

    def may_not_be_nan(self, ref: BoundReference) -> pl.Series:
        """Where some row may be null, or a value other than NaN."""

    def may_be_number(self, ref: BoundReference) -> pl.Series:
        """Where some row may be neither null nor NaN."""


def rows_may_match(
    expression: BooleanExpression, known: ValueSummaries, only: Collection[int] | None = None
) -> pl.Series:
    """Finds which sets of rows may hold one that matches: false only if certainly none does. Tests of other fields than
    `only`, if given, are taken to match."""
    return fold(expression, _MayMatch(known, only))


def may_match(expression: BooleanExpression, metrics: MetricColumns, only: Collection[int] | None = None) -> pl.Series:
    """Finds which files may hold a row that matches, by their metrics: false only if certainly none does. Tests of
    other fields than `only`, if given, are taken to match."""
    # Writers that did not know the number of rows left it negative; a file without rows has nothing to match.
    return rows_may_match(expression, metrics, only) & (metrics.record_counts != 0)


def files_may_match(expression: BooleanExpression, files: Sequence[ContentMetrics]) -> list[bool]:
    """Whether files (or row groups), as objects, may hold a matching row: False only if certainly none matches."""
    return may_match(expression, MetricColumns(ObjectMetrics(files))).to_list()


def metrics_of(expression: BooleanExpression) -> tuple[Metric, ...]:
    """The metrics that :func:`may_match` is certain to look at."""
    tests = bound_predicates(expression)
    return tuple(sorted({(name, each.ref.field_id) for each in tests for name in _needed(each)}))


def _needed(predicate: BoundPredicate) -> tuple[str, ...]:
    if predicate.is_transformed or isinstance(predicate.ref.type, UnknownType):
        return ()
    if isinstance(predicate.term, BoundVariantGet):
        return ("lower_bounds", "upper_bounds")
    operation = predicate.operation
    if operation in (Operator.LT, Operator.LT_EQ):
        return ("lower_bounds",)
    if operation in (Operator.GT, Operator.GT_EQ):
        return ("upper_bounds", "nan_value_counts") if _is_floating(predicate.term) else ("upper_bounds",)
    if operation in (Operator.IS_NAN, Operator.NOT_NAN):
        return ("nan_value_counts", "null_value_counts", "value_counts")
    if operation is Operator.IS_NULL:
        return ("null_value_counts",)
    if operation is Operator.NOT_NULL:
        return ("null_value_counts", "value_counts")
    return ("lower_bounds", "upper_bounds")


def _is_floating(term: BoundTerm) -> bool:
    return isinstance(term.type, FloatType | DoubleType)


class _MayMatch(BoundExpressionVisitor["pl.Series"]):
    """True if the metrics leave a match possible; unknown metrics always do."""

    def __init__(self, known: ValueSummaries, only: Collection[int] | None) -> None:
        self._known = known
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

    def visit_bound(self, predicate: BoundPredicate) -> pl.Series:
        term = predicate.term
        if isinstance(term, BoundTransform):
            return self._of_single_values(predicate, term)
        if isinstance(term, BoundVariantGet):
            return self._within_variants(predicate, term)
        return super().visit_bound(predicate)

    def _within_variants(self, predicate: BoundPredicate, term: BoundVariantGet) -> pl.Series:
        """A test of a value within variants: that of a column whose bounds are the value's."""
        if self._only is not None and term.ref.field_id not in self._only:
            return self._constant(True)
        known = VariantFields(self._known, term)
        field = NestedField(term.ref.field_id, term.name, term.type)
        make: Any = type(predicate)
        ref = BoundReference((field,), term.name)
        return fold(make(predicate.operation, ref, *predicate._arguments()[2:]), _MayMatch(known, None))

    def _of_single_values(self, predicate: BoundPredicate, term: BoundTransform) -> pl.Series:
        """A test of a transform's result: decided if the bounds leave one value."""
        is_excluded = self._only is not None and term.ref.field_id not in self._only
        if is_excluded or not has_bounds(term.ref.type) or predicate.operation is Operator.IS_NULL:
            return self._constant(True)
        lower, upper = self._known.bounds(term.ref)
        stored, _ = self._known.stored_bounds(term.ref.field_id)
        test, transform = value_test(predicate), term.transform.bind(term.ref.type)
        matches = [
            not single or test(transform(stored_value(term.ref.type, bound)))
            for bound, single in zip(stored, (lower == upper).fill_null(False), strict=True)
        ]
        return self._where_values(pl.Series(matches, dtype=pl.Boolean), term, lower)

    def visit_is_null(self, term: BoundTerm) -> pl.Series:
        return self._known.may_be_null(term.ref) if self._is_usable(term) else self._constant(True)

    def visit_not_null(self, term: BoundTerm) -> pl.Series:
        return self._known.may_be_value(term.ref) if self._is_usable(term) else self._constant(True)

    def visit_is_nan(self, term: BoundTerm) -> pl.Series:
        if not self._is_usable(term):
            return self._constant(True)
        return self._known.may_be_nan(term.ref) & self._known.may_be_value(term.ref)

    def visit_not_nan(self, term: BoundTerm) -> pl.Series:
        return self._known.may_not_be_nan(term.ref) if self._is_usable(term) else self._constant(True)

    def visit_equal(self, term: BoundTerm, value: Any) -> pl.Series:
        if not self._is_comparable(term):
            return self._constant(True)
        lower, upper = self._known.bounds(term.ref)
        literal = _series(term, [value])
        within = possibly(lower <= literal) & possibly(upper >= literal)
        return self._where_numbers(within, term, lower)

    def visit_not_equal(self, term: BoundTerm, value: Any) -> pl.Series:
        if not self._is_comparable(term):
            return self._constant(True)
        lower, upper = self._known.bounds(term.ref)
        literal = _series(term, [value])
        return self._without((lower == literal) & (upper == literal), term, lower)

    def visit_less_than(self, term: BoundTerm, value: Any) -> pl.Series:
        if not self._is_comparable(term):
            return self._constant(True)
        lower = self._known.lower(term.ref)
        return self._where_numbers(possibly(lower < _series(term, [value])), term, lower)

    def visit_less_than_or_equal(self, term: BoundTerm, value: Any) -> pl.Series:
        if not self._is_comparable(term):
            return self._constant(True)
        lower = self._known.lower(term.ref)
        return self._where_numbers(possibly(lower <= _series(term, [value])), term, lower)

    def visit_greater_than(self, term: BoundTerm, value: Any) -> pl.Series:
        if not self._is_comparable(term):
            return self._constant(True)
        upper = self._known.upper(term.ref)
        return self._above(possibly(upper > _series(term, [value])), term, upper)

    def visit_greater_than_or_equal(self, term: BoundTerm, value: Any) -> pl.Series:
        if not self._is_comparable(term):
            return self._constant(True)
        upper = self._known.upper(term.ref)
        return self._above(possibly(upper >= _series(term, [value])), term, upper)

    def visit_in(self, term: BoundTerm, values: tuple[Any, ...]) -> pl.Series:
        if not self._is_comparable(term):
            return self._constant(True)
        lower, upper = self._known.bounds(term.ref)
        literals = _series(term, values).sort()
        first = literals.head(1)
        # The smallest value that is not below the lower bound decides: is it within the upper one?
        known = lower.is_not_null()
        position = literals.search_sorted(lower.zip_with(known, first.new_from_index(0, len(lower))))
        candidate = literals.gather(position.clip(0, len(literals) - 1))
        within = (position < len(literals)) & possibly(candidate <= upper)
        within = within.zip_with(known, possibly(upper >= first))
        return self._where_numbers(within, term, lower)

    def visit_not_in(self, term: BoundTerm, values: tuple[Any, ...]) -> pl.Series:
        if not self._is_comparable(term):
            return self._constant(True)
        lower, upper = self._known.bounds(term.ref)
        literals = _series(term, values)
        return self._without((lower == upper) & lower.is_in(literals.implode()), term, lower)

    def visit_starts_with(self, term: BoundTerm, prefix: str) -> pl.Series:
        if not self._is_comparable(term):
            return self._constant(True)
        lower, upper = self._known.bounds(term.ref)
        first = prefix.encode("utf-8")
        result = possibly(upper >= _bytes(first))
        after = next_bytes(first)
        if after is not None:
            result = result & possibly(lower < _bytes(after))
        return self._where_values(result, term, lower)

    def visit_not_starts_with(self, term: BoundTerm, prefix: str) -> pl.Series:
        if not self._is_comparable(term):
            return self._constant(True)
        lower, upper = self._known.bounds(term.ref)
        first = prefix.encode("utf-8")
        inside = lower.bin.starts_with(first) & upper.bin.starts_with(first)
        return self._where_values(~inside.fill_null(False), term, lower)

    def visit_intersects_box(self, term: BoundTerm, box: Box) -> pl.Series:
        if not self._is_usable(term):
            return self._constant(True)
        lower, upper = self._known.stored_bounds(term.ref.field_id)
        (west, south), (east, north) = corners(lower), corners(upper)
        possible = possibly((south <= box.ymax) & (north >= box.ymin))
        ahead, behind = west <= box.xmax, east >= box.xmin
        if not isinstance(term.type, GeographyType):
            return self._where_values(possible & possibly(ahead & behind), term, lower)
        crosses = west > east
        within = ahead | behind if box.xmin > box.xmax else (ahead & behind) | (crosses & (ahead | behind))
        within = within | (crosses & (box.xmin > box.xmax))
        # The box of a shape goes the shorter way, which a box of more than half of the globe may leave out.
        wide = (east - west + 360 * crosses.cast(pl.Float64)) >= 180
        return self._where_values(possible & possibly(within | wide), term, lower)

    def visit_not_intersects_box(self, term: BoundTerm, box: Box) -> pl.Series:
        if not self._is_usable(term):
            return self._constant(True)
        return self._where_values(self._constant(True), term, self._known.stored_bounds(term.ref.field_id)[0])

    # ------------------------------------------------------------------------------------------- helpers

    def _constant(self, value: bool) -> pl.Series:
        return pl.Series([value], dtype=pl.Boolean).new_from_index(0, len(self._known))

    def _is_usable(self, term: BoundTerm) -> bool:
        if self._only is not None and term.ref.field_id not in self._only:
            return False
        return isinstance(term, BoundReference) and not isinstance(term.type, UnknownType)

    def _is_comparable(self, term: BoundTerm) -> bool:
        return self._is_usable(term) and has_bounds(term.type)

    def _above(self, above: pl.Series, term: BoundTerm, upper: pl.Series) -> pl.Series:
        """NaN is above all, and within no bounds."""
        if _is_floating(term):
            above = above | self._known.may_be_nan(term.ref)
        return self._where_values(above, term, upper)

    def _without(self, excluded: pl.Series, term: BoundTerm, bound: pl.Series) -> pl.Series:
        """False if all values are excluded; NaN never is."""
        excluded = excluded.fill_null(False)
        if _is_floating(term) and excluded.any():
            excluded = excluded & ~self._known.may_be_nan(term.ref)
        return self._where_values(~excluded, term, bound)

    def _where_values(self, possible: pl.Series, term: BoundTerm, bound: pl.Series) -> pl.Series:
        """Also false if every value is null; a file with a bound has a value."""
        if bound.null_count() == 0 or not possible.any():
            return possible
        return possible & (bound.is_not_null() | self._known.may_be_value(term.ref))

    def _where_numbers(self, possible: pl.Series, term: BoundTerm, bound: pl.Series) -> pl.Series:
        """Also false if every value is null or NaN; a file with a bound has another."""
        possible = self._where_values(possible, term, bound)
        if not _is_floating(term) or bound.null_count() == 0 or not possible.any():
            return possible
        return possible & (bound.is_not_null() | self._known.may_be_number(term.ref))


class VariantFields:
    """The summaries of a value (`term`) within variants, as `ValueSummaries` of a column of its type."""

    def __init__(self, variants: ValueSummaries, term: BoundVariantGet) -> None:
        self._variants = variants
        self._term = term
        names = [each for each in term.steps if isinstance(each, str)]
        bounds = self._variants.stored_bounds(term.ref.field_id)
        path = normalized_path(names) if len(names) == len(term.steps) else None  # none of fields within arrays
        lower, upper = (
            [None if path is None else field_bounds(each or b"").get(path) for each in side] for side in bounds
        )
        self._found = [cast_bounds(low, high, term.type) for low, high in zip(lower, upper, strict=True)]

    def __len__(self) -> int:
        return len(self._variants)

    def lower(self, ref: BoundReference) -> pl.Series:
        return self._side(0)

    def upper(self, ref: BoundReference) -> pl.Series:
        return self._side(1)

    def _side(self, side: int) -> pl.Series:
        kind = self._term.type
        values = [None if each is None or each[side] is None else comparable(kind, each[side]) for each in self._found]
        return pl.Series(values, dtype=bound_dtype(kind))

    def bounds(self, ref: BoundReference) -> tuple[pl.Series, pl.Series]:
        return self._side(0), self._side(1)

    def stored_bounds(self, field_id: int) -> tuple[pl.Series, pl.Series]:
        """Bounds as bytes, which nobody asks for."""
        return self._variants.stored_bounds(field_id)

    def may_be_null(self, ref: BoundReference) -> pl.Series:
        """Everywhere: the value may be missing."""
        return self._all(True)

    def may_be_value(self, ref: BoundReference) -> pl.Series:
        """Where some variant is not null."""
        return self._variants.may_be_value(self._term.ref)

    def may_be_nan(self, ref: BoundReference) -> pl.Series:
        """Where it is not known that there are only other numbers."""
        return pl.Series([each is None or each[2] for each in self._found], dtype=pl.Boolean)

    def may_not_be_nan(self, ref: BoundReference) -> pl.Series:
        """Everywhere: the value may be missing."""
        return self._all(True)

    def may_be_number(self, ref: BoundReference) -> pl.Series:
        """Where some variant is not null."""
        return self.may_be_value(ref)

    def _all(self, value: bool) -> pl.Series:
        return pl.Series([value], dtype=pl.Boolean).new_from_index(0, len(self))


def _series(term: BoundTerm, values: Sequence[Any]) -> pl.Series:
    """Stored values in the form that decoded bounds are compared with; a single one stands for every row."""
    return pl.Series([comparable(term.type, value) for value in values], dtype=bound_dtype(term.type))


def _bytes(value: bytes) -> pl.Series:
    return pl.Series([value], dtype=pl.Binary)
