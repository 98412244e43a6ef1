"""Predicates over Arrow columns: which rows of a batch match.

The answers are SQL's: a comparison with null is not true; NaN is greater than every other number; -0.0 equals 0.0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hms_iceberg.arrow.columns.arrow_schema import from_stored
from hms_iceberg.arrow.columns.column_transforms import transform_array
from hms_iceberg.arrow.columns.shape_columns import NoShapeError, meets
from hms_iceberg.arrow.columns.variant_columns import variants
from hms_iceberg.arrow.formats.content_files import ContentReader
from hms_iceberg.arrow.formats.parquet_reader import RowRange
from hms_iceberg.errors import CorruptDataFileError, InvalidInputError
from hms_iceberg.expressions.bound import BoundReference, BoundTerm, BoundTransform, BoundVariantGet
from hms_iceberg.expressions.tree import BooleanExpression
from hms_iceberg.expressions.visitors import BoundExpressionVisitor, fold
from hms_iceberg.spec.data_types import GeographyType, GeometryType
from hms_iceberg.spec.values.shapes import Box

Column = Callable[[BoundReference], pa.Array]


def matching_rows(expression: BooleanExpression, column: Column, rows: int) -> pa.BooleanArray:
    """A mask without nulls of the rows that match a bound predicate; `column` must be null also where a struct around a
    field is."""
    return fold(expression, _Masks(column, rows))


class _Masks(BoundExpressionVisitor[pa.Array]):
    def __init__(self, column: Column, rows: int) -> None:
        self._column = column
        self._rows = rows
        self._within_variants: dict[BoundVariantGet, pa.Array] = {}

    def _values(self, term: BoundTerm) -> pa.Array:
        array = self._column(term.ref)
        if isinstance(term, BoundVariantGet):
            found = self._within_variants.get(term)
            if found is None:
                found = self._within_variants[term] = _taken(array, term)
            return found
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

    def _tested(self, term: BoundTerm) -> pa.Array:
        """An array that is null where the term is."""
        return self._values(term) if isinstance(term, BoundVariantGet) else self._column(term.ref)

    def visit_is_null(self, term: BoundTerm) -> pa.Array:
        return self._tested(term).is_null()

    def visit_not_null(self, term: BoundTerm) -> pa.Array:
        return self._tested(term).is_valid()

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
        return pc.and_(pc.invert(self.visit_in(term, values)), self._tested(term).is_valid())

    def visit_starts_with(self, term: BoundTerm, prefix: str) -> pa.Array:
        return _two_valued(pc.starts_with(self._values(term), prefix))

    def visit_not_starts_with(self, term: BoundTerm, prefix: str) -> pa.Array:
        return _two_valued(pc.invert(pc.starts_with(self._values(term), prefix)))

    def visit_intersects_box(self, term: BoundTerm, box: Box) -> pa.Array:
        kind = term.type
        assert isinstance(kind, (GeometryType, GeographyType))
        try:
            return pa.array(meets(self._column(term.ref), box, kind))
        except NoShapeError as error:
            raise CorruptDataFileError(
                f"Cannot compare column {term.name!r} ({kind}) with a box: {error}. Overwrite the row, "
                "or filter by other columns."
            ) from error

    def visit_not_intersects_box(self, term: BoundTerm, box: Box) -> pa.Array:
        return pc.and_(pc.invert(self.visit_intersects_box(term, box)), self._column(term.ref).is_valid())


def _taken(array: pa.StructArray, term: BoundVariantGet) -> pa.Array:
    """The values within variants, as a column of their type."""
    take = term.read
    try:
        values = [None if each is None else take(each.metadata, each.value) for each in variants(array)]
    except InvalidInputError as error:
        raise CorruptDataFileError(
            f"Cannot read column {term.name!r} for a filter: {error} Overwrite the row, or filter by other columns."
        ) from error
    return from_stored(values, term.type)


def _two_valued(mask: pa.Array) -> pa.Array:
    """Unknown counts as not true."""
    return mask.fill_null(False) if mask.null_count else mask


# Columns of the filter are decoded twice if something matches, so they must be a small part of what is read.
_SMALL_PART = 0.25
_TRIES_WITHOUT_SUCCESS = 4
# Most row groups that match do so early, and nothing is decoded behind the first batch that does.
_BATCH_ROWS = 1 << 15


class Prefilter:
    """Decides for one scan whether row groups are looked at in two steps, and learns whether that pays."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._tries = 0
        self._successes = 0

    def rules_out(
        self,
        reader: ContentReader,
        rows: RowRange,
        filter_leaves: Sequence[int],
        all_leaves: Sequence[int],
        matches: Callable[[pa.RecordBatch], bool],
        use_threads: bool,
    ) -> bool:
        """Whether certainly no row of a range matches; False also if it is not worth finding out."""
        small = reader.bytes_of(rows, filter_leaves)
        if not filter_leaves or small > _SMALL_PART * reader.bytes_of(rows, all_leaves) or self._given_up():
            return False
        found = any(matches(batch) for _, batch in reader.read(rows, filter_leaves, _BATCH_ROWS, use_threads))
        with self._lock:
            self._tries += 1
            self._successes += not found
        return not found

    def _given_up(self) -> bool:
        with self._lock:
            return self._tries >= _TRIES_WITHOUT_SUCCESS * (1 + self._successes)
