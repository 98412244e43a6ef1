"""Predicates over Arrow columns: which rows of a batch match.

The answers are SQL's: a comparison with null is not true; NaN is greater than every other number; -0.0 equals 0.0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hms_iceberg.arrow.columns.column_transforms import transform_array
from hms_iceberg.arrow.columns.values import from_stored
from hms_iceberg.expressions.bound import BoundReference, BoundTerm, BoundTransform
from hms_iceberg.expressions.tree import BooleanExpression
from hms_iceberg.expressions.visitors import BoundExpressionVisitor, fold

Column = Callable[[BoundReference], pa.Array]


def matching_rows(expression: BooleanExpression, column: Column, rows: int) -> pa.BooleanArray:
    """Which rows match a predicate.

    Args:
        expression: a bound predicate.
        column: gives the plain values of a field, null also if a struct around it is null.
        rows: how many rows there are.

    Returns:
        A boolean array without nulls.
    """
    return fold(expression, _Masks(column, rows))


class _Masks(BoundExpressionVisitor[pa.Array]):
    def __init__(self, column: Column, rows: int) -> None:
        self._column = column
        self._rows = rows

    def _values(self, term: BoundTerm) -> pa.Array:
        array = self._column(term.ref)
        if isinstance(term, BoundTransform):
            array = transform_array(term.transform, term.ref.type, array)
        return array.cast(pa.binary()) if pa.types.is_fixed_size_binary(array.type) else array

    def _literals(self, term: BoundTerm, values: Sequence[Any]) -> pa.Array:
        array = from_stored(list(values), term.type)
        return array.cast(pa.binary()) if pa.types.is_fixed_size_binary(array.type) else array

    def _compare(self, compare: Callable[..., pa.Array], term: BoundTerm, value: Any) -> pa.Array:
        values = self._values(term)
        if pa.types.is_boolean(values.type):  # compared as 0 and 1
            values, value = values.cast(pa.int8()), pa.scalar(int(value), pa.int8())
        else:
            value = self._literals(term, [value])[0]
        return _two_valued(compare(values, value))

    def _or_nan(self, mask: pa.Array, term: BoundTerm) -> pa.Array:
        values = self._values(term)
        return pc.or_(mask, _two_valued(pc.is_nan(values))) if pa.types.is_floating(values.type) else mask

    def visit_true(self) -> pa.Array:
        return pa.repeat(pa.scalar(True), self._rows)

    def visit_false(self) -> pa.Array:
        return pa.repeat(pa.scalar(False), self._rows)

    def visit_and(self, operands: Sequence[pa.Array]) -> pa.Array:
        result = operands[0]
        for each in operands[1:]:
            result = pc.and_(result, each)
        return result

    def visit_or(self, operands: Sequence[pa.Array]) -> pa.Array:
        result = operands[0]
        for each in operands[1:]:
            result = pc.or_(result, each)
        return result

    def visit_is_null(self, term: BoundTerm) -> pa.Array:
        return self._column(term.ref).is_null()

    def visit_not_null(self, term: BoundTerm) -> pa.Array:
        return self._column(term.ref).is_valid()

    def visit_is_nan(self, term: BoundTerm) -> pa.Array:
        return _two_valued(pc.is_nan(self._values(term)))

    def visit_not_nan(self, term: BoundTerm) -> pa.Array:
        return pc.invert(self.visit_is_nan(term))

    def visit_equal(self, term: BoundTerm, value: Any) -> pa.Array:
        return self._compare(pc.equal, term, value)

    def visit_not_equal(self, term: BoundTerm, value: Any) -> pa.Array:
        return self._compare(pc.not_equal, term, value)

    def visit_less_than(self, term: BoundTerm, value: Any) -> pa.Array:
        return self._compare(pc.less, term, value)

    def visit_less_than_or_equal(self, term: BoundTerm, value: Any) -> pa.Array:
        return self._compare(pc.less_equal, term, value)

    def visit_greater_than(self, term: BoundTerm, value: Any) -> pa.Array:
        return self._or_nan(self._compare(pc.greater, term, value), term)

    def visit_greater_than_or_equal(self, term: BoundTerm, value: Any) -> pa.Array:
        return self._or_nan(self._compare(pc.greater_equal, term, value), term)

    def visit_in(self, term: BoundTerm, values: tuple[Any, ...]) -> pa.Array:
        array = self._values(term)
        if pa.types.is_floating(array.type):
            array = pc.add(array, pa.scalar(0.0, array.type))  # -0.0 becomes 0.0, as the literals are
        return pc.is_in(array, value_set=self._literals(term, values))

    def visit_not_in(self, term: BoundTerm, values: tuple[Any, ...]) -> pa.Array:
        return pc.and_(pc.invert(self.visit_in(term, values)), self._column(term.ref).is_valid())

    def visit_starts_with(self, term: BoundTerm, prefix: str) -> pa.Array:
        return _two_valued(pc.starts_with(self._values(term), prefix))

    def visit_not_starts_with(self, term: BoundTerm, prefix: str) -> pa.Array:
        return _two_valued(pc.invert(pc.starts_with(self._values(term), prefix)))


def _two_valued(mask: pa.Array) -> pa.Array:
    """Unknown counts as not true."""
    return mask.fill_null(False) if mask.null_count else mask
