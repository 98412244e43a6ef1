"""Predicates as the protocol has them, in JSON. Source: Iceberg's REST protocol, `Predicate`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

from hms_iceberg.errors import IcebergError, InvalidInputError, UnsupportedError
from hms_iceberg.expressions.bound import (
    BoundLiteralPredicate,
    BoundPredicate,
    BoundSetPredicate,
    BoundTerm,
    BoundTransform,
    BoundVariantGet,
)
from hms_iceberg.expressions.literals import Literal, Operator, stored_literal
from hms_iceberg.expressions.terms import Reference, Term, Transformed
from hms_iceberg.expressions.tree import AlwaysFalse, AlwaysTrue, And, BooleanExpression, Not, Or, predicate
from hms_iceberg.expressions.visitors import ExpressionVisitor, fold
from hms_iceberg.spec.data_types import (
    IcebergType,
    IntegerType,
    LongType,
    PrimitiveType,
)
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.transforms.partition_transforms import parse_transform
from hms_iceberg.spec.values import single_values
from hms_iceberg.spec.values.shapes import Box

_OPERATORS = {operator.name.lower().replace("_", "-"): operator for operator in Operator}
_UNARY = {Operator.IS_NULL, Operator.NOT_NULL, Operator.IS_NAN, Operator.NOT_NAN}
_SETS = {Operator.IN, Operator.NOT_IN}
_BOXES = {Operator.INTERSECTS_BOX, Operator.NOT_INTERSECTS_BOX}  # which the protocol does not have
_DEEPEST = 200


def filter_to_json(bound: BooleanExpression) -> Any:
    """A bound predicate as JSON-ready Python; `FilterReader` reads it back."""
    return fold(bound, _Writer())


def columns_of_filter(data: Any) -> set[str]:
    """The columns that parsed JSON of a filter names, as far as it can be read at all."""
    names, parts = set[str](), [data]
    while parts:
        part = parts.pop()
        if isinstance(part, Mapping):
            term = part.get("term")
            names |= {term} if isinstance(term, str) else set()
            parts += [term, part.get("child"), part.get("left"), part.get("right")]
    return names


class FilterReader:
    """Reads predicates on the columns of a schema, which says how values are written."""

    def __init__(self, schema: Schema, case_sensitive: bool) -> None:
        self._schema = schema
        self._case_sensitive = case_sensitive

    def read(self, data: Any, depth: int = 0) -> BooleanExpression:
        """The unbound predicate of parsed JSON, always true for none; `depth` counts the predicates around it."""
        if data is None or data is True:
            return AlwaysTrue()
        if data is False:
            return AlwaysFalse()
        if not isinstance(data, Mapping) or not isinstance(data.get("type"), str):
            raise InvalidInputError(f"Cannot read a filter from {str(data)[:200]}: expected an object with a 'type'.")
        if depth > _DEEPEST:
            raise InvalidInputError(f"Cannot read a filter that is nested more than {_DEEPEST} times.")
        kind = data["type"].lower().replace("_", "-")
        if kind in ("true", "false"):
            return AlwaysTrue() if kind == "true" else AlwaysFalse()
        if kind == "not":
            return Not(self.read(_member(data, "child"), depth + 1))
        if kind in ("and", "or"):
            sides = [self.read(_member(data, side), depth + 1) for side in ("left", "right")]
            return And(*sides) if kind == "and" else Or(*sides)
        if kind not in _OPERATORS:
            known = ", ".join(("true", "false", "not", "and", "or", *_OPERATORS))
            raise InvalidInputError(f"Unknown predicate {data['type'][:50]!r}: expected one of {known}.")
        return self._predicate(_OPERATORS[kind], data)

    def _predicate(self, operator: Operator, data: Mapping[str, Any]) -> BooleanExpression:
        term, value_type = self._term(_member(data, "term"))
        if operator in _UNARY:
            return predicate(operator, term)
        if operator in _SETS:
            values = _member(data, "values")
            if not isinstance(values, list):
                raise InvalidInputError(f"Cannot read a filter: 'values' is no list: {str(values)[:200]}.")
            return predicate(operator, term, [_literal(each, value_type) for each in values])
        if operator in _BOXES:
            return predicate(operator, term, _member(data, "value"))
        return predicate(operator, term, _literal(_member(data, "value"), value_type))

    def _term(self, data: Any) -> tuple[Term, IcebergType]:
        if isinstance(data, str):
            field = self._schema.find_field(data, self._case_sensitive)
            return Reference(data), field.field_type
        if isinstance(data, Mapping) and data.get("type") == "reference":
            return self._term(_member(data, "term"))
        if isinstance(data, Mapping) and data.get("type") == "transform":
            term, source = self._term(_member(data, "term"))
            transform = parse_transform(str(_member(data, "transform")))
            if not isinstance(term, Reference):
                raise InvalidInputError("Cannot read a filter: a transform is of a column.")
            return Transformed(term, transform), transform.result_type(source)
        raise InvalidInputError(f"Cannot read a column of a filter from {str(data)[:200]}.")


def _member(data: Mapping[str, Any], key: str) -> Any:
    if key not in data:
        raise InvalidInputError(f"Cannot read a filter: {key!r} is missing in {str(dict(data))[:200]}.")
    return data[key]


def _literal(value: Any, kind: IcebergType) -> Literal:
    if isinstance(value, Mapping) and value.get("type") == "literal":
        value = value.get("value")
    if value is None:
        raise InvalidInputError("Cannot compare with null in a filter: use is-null or not-null.")
    counts = isinstance(kind, PrimitiveType) and kind.integer_bits and not isinstance(kind, (IntegerType, LongType))
    if counts and isinstance(value, int) and not isinstance(value, bool):  # what is stored: days and microseconds
        return stored_literal(value, kind)
    try:
        return stored_literal(single_values.from_json(kind, value), kind)
    except IcebergError as error:
        raise InvalidInputError(f"Cannot read a value of a filter: {error}") from error


class _Writer(ExpressionVisitor[Any]):
    def visit_true(self) -> Any:
        return True

    def visit_false(self) -> Any:
        return False

    def visit_and(self, operands: Sequence[Any]) -> Any:
        return reduce(lambda left, right: {"type": "and", "left": left, "right": right}, operands)

    def visit_or(self, operands: Sequence[Any]) -> Any:
        return reduce(lambda left, right: {"type": "or", "left": left, "right": right}, operands)

    def visit_bound(self, predicate: BoundPredicate) -> Any:
        term = predicate.term
        body = {"type": predicate.operation.name.lower().replace("_", "-"), "term": _term_json(term)}
        if isinstance(predicate, BoundLiteralPredicate) and isinstance(predicate.value, Box):
            body["value"] = predicate.value.edges
        elif isinstance(predicate, BoundLiteralPredicate):
            body["value"] = single_values.to_json(term.type, predicate.value)
        elif isinstance(predicate, BoundSetPredicate):
            body["values"] = [single_values.to_json(term.type, each) for each in predicate.values]
        return body


def _term_json(term: BoundTerm) -> Any:
    if isinstance(term, BoundVariantGet):
        raise UnsupportedError(f"Cannot write {term} as JSON: Iceberg's REST protocol has no values within variants.")
    if not isinstance(term, BoundTransform):
        return term.name
    return {"type": "transform", "transform": str(term.transform), "term": term.name}
