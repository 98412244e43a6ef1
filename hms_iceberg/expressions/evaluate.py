"""Predicates over single rows of stored values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hms_iceberg.expressions.binding import Columns, bind
from hms_iceberg.expressions.bound import BoundReference, BoundTerm, BoundTransform, BoundVariantGet
from hms_iceberg.expressions.tree import BooleanExpression
from hms_iceberg.expressions.visitors import BoundExpressionVisitor, fold
from hms_iceberg.spec.data_types import DoubleType, FloatType, GeographyType, GeometryType, NestedField, StructType
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.values.shapes import Box
from hms_iceberg.spec.variant.variant import Variant

Test = Callable[[Any], bool]


def evaluator(columns: Columns, expression: BooleanExpression, case_sensitive: bool = True) -> Test:
    """A function that says whether a row matches. A row is a sequence of stored values in the order of the columns, or
    a mapping by column name; structs within are sequences too, or mappings by name or field id."""
    struct = columns.as_struct() if isinstance(columns, Schema) else columns
    return fold(bind(columns, expression, case_sensitive), _RowVisitor(struct))


def value_test(expression: BooleanExpression) -> Test:
    """A function that says whether a stored value (after the term's transform) matches a tree about one term."""
    return fold(expression, _ValueVisitor())


class _ValueVisitor(BoundExpressionVisitor[Test]):
    """Turns a predicate into a function of rows; `read` gets a term's value out of a row."""

    def read(self, term: BoundTerm) -> Callable[[Any], Any] | None:
        """The function from row to value; None if the row is the value."""
        return None

    def of(self, term: BoundTerm, test: Test) -> Test:
        read = self.read(term)
        return test if read is None else lambda row: test(read(row))

    def visit_true(self) -> Test:
        return lambda row: True

    def visit_false(self) -> Test:
        return lambda row: False

    def visit_and(self, operands: Sequence[Test]) -> Test:
        tests = tuple(operands)
        return lambda row: all(test(row) for test in tests)

    def visit_or(self, operands: Sequence[Test]) -> Test:
        tests = tuple(operands)
        return lambda row: any(test(row) for test in tests)

    def visit_is_null(self, term: BoundTerm) -> Test:
        return self.of(term, lambda value: value is None)

    def visit_not_null(self, term: BoundTerm) -> Test:
        return self.of(term, lambda value: value is not None)

    def visit_is_nan(self, term: BoundTerm) -> Test:
        return self.of(term, lambda value: value != value)

    def visit_not_nan(self, term: BoundTerm) -> Test:
        return self.of(term, lambda value: value == value)

    def visit_equal(self, term: BoundTerm, value: Any) -> Test:
        return self.of(term, lambda found: found == value)

    def visit_not_equal(self, term: BoundTerm, value: Any) -> Test:
        return self.of(term, lambda found: found is not None and found != value)

    def visit_less_than(self, term: BoundTerm, value: Any) -> Test:
        return self.of(term, lambda found: found is not None and found < value)

    def visit_less_than_or_equal(self, term: BoundTerm, value: Any) -> Test:
        return self.of(term, lambda found: found is not None and found <= value)

    def visit_greater_than(self, term: BoundTerm, value: Any) -> Test:
        if isinstance(term.type, (FloatType, DoubleType)):  # NaN is greater than every other number
            return self.of(term, lambda found: found is not None and not found <= value)
        return self.of(term, lambda found: found is not None and found > value)

    def visit_greater_than_or_equal(self, term: BoundTerm, value: Any) -> Test:
        if isinstance(term.type, (FloatType, DoubleType)):
            return self.of(term, lambda found: found is not None and not found < value)
        return self.of(term, lambda found: found is not None and found >= value)

    def visit_in(self, term: BoundTerm, values: tuple[Any, ...]) -> Test:
        wanted = frozenset(values)
        return self.of(term, lambda found: found in wanted)

    def visit_not_in(self, term: BoundTerm, values: tuple[Any, ...]) -> Test:
        unwanted = frozenset(values)
        return self.of(term, lambda found: found is not None and found not in unwanted)

    def visit_starts_with(self, term: BoundTerm, prefix: str) -> Test:
        return self.of(term, lambda found: found is not None and found.startswith(prefix))

    def visit_not_starts_with(self, term: BoundTerm, prefix: str) -> Test:
        return self.of(term, lambda found: found is not None and not found.startswith(prefix))

    def visit_intersects_box(self, term: BoundTerm, box: Box) -> Test:
        kind = _shape_type(term)
        return self.of(term, lambda found: found is not None and box.meets(found, kind))

    def visit_not_intersects_box(self, term: BoundTerm, box: Box) -> Test:
        kind = _shape_type(term)
        return self.of(term, lambda found: found is not None and not box.meets(found, kind))


def _shape_type(term: BoundTerm) -> GeometryType | GeographyType:
    kind = term.type
    assert isinstance(kind, (GeometryType, GeographyType))
    return kind


class _RowVisitor(_ValueVisitor):
    def __init__(self, struct: StructType) -> None:
        self.struct = struct

    def read(self, term: BoundTerm) -> Callable[[Any], Any]:
        read = row_reader(self.struct, term.ref)
        if isinstance(term, BoundTransform):
            transform = term.transform.bind(term.ref.type)
            return lambda row: transform(read(row))
        if isinstance(term, BoundVariantGet):
            take = term.read
            return lambda row: None if (found := read(row)) is None else take(*_parts(found))
        return read


def _parts(value: Any) -> tuple[bytes, bytes]:
    """Metadata and value of a variant: a `Variant`, a mapping with these keys, or the two."""
    if isinstance(value, Mapping):
        return value["metadata"], value["value"]
    if isinstance(value, Variant):
        return value.metadata, value.value
    metadata, plain = value
    return metadata, plain


def row_reader(struct: StructType, ref: BoundReference) -> Callable[[Any], Any]:
    """A function from a row (a tuple or a mapping) to the value of a field, None if a struct around it is null."""
    steps: list[tuple[int, NestedField]] = []
    parent = struct
    for field in ref.path:
        position = next(index for index, each in enumerate(parent.fields) if each.field_id == field.field_id)
        steps.append((position, field))
        if isinstance(field.field_type, StructType):
            parent = field.field_type
    if len(steps) == 1:
        position, field = steps[0]
        return lambda row: row.get(field.name) if isinstance(row, Mapping) else row[position]

    def read(row: Any) -> Any:
        for position, field in steps:
            if row is None:
                return None
            if isinstance(row, Mapping):
                row = row[field.field_id] if field.field_id in row else row.get(field.name)
            else:
                row = row[position]
        return row

    return read
