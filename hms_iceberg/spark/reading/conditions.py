"""From Spark's conditions, as JSON, to predicates that plan a scan.

The predicate may be weaker than the condition, never stronger: Spark evaluates the whole condition on the rows.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from hms_iceberg.errors import InvalidInputError
from hms_iceberg.expressions.literals import stored_literal
from hms_iceberg.expressions.terms import Reference, Term, Transformed, VariantGet
from hms_iceberg.expressions.tree import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    BooleanExpression,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNaN,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    Or,
    StartsWith,
    UnboundPredicate,
)
from hms_iceberg.spark.nanoseconds import shown_type, stored
from hms_iceberg.spark.schemas import is_held
from hms_iceberg.spec.data_types import (
    NANO_TIMESTAMPS,
    BinaryType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    PrimitiveType,
    StringType,
    TimeType,
    UUIDType,
)
from hms_iceberg.spec.metadata_columns import PARTITION_NAME
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.transforms.partition_transforms import parse_transform

_COMPARISONS: Mapping[str, Any] = {
    "eq": EqualTo,
    "lt": LessThan,
    "lt-eq": LessThanOrEqual,
    "gt": GreaterThan,
    "gt-eq": GreaterThanOrEqual,
    "starts-with": StartsWith,
}


def row_filter(
    condition: Mapping[str, Any] | None, schema: Schema, nanoseconds: str | None = None
) -> tuple[BooleanExpression, bool]:
    """The predicate of a condition as the bridge's class FilterText wrote it, and whether it says all of it.
    `nanoseconds` is what the session takes such timestamps for."""
    if condition is None:
        return AlwaysTrue(), True
    converter = _ConditionConverter(schema, nanoseconds)
    return converter.convert(condition, False), converter.exact


def named_columns(condition: Mapping[str, Any]) -> set[str]:
    """The columns that a condition tests, without what is nested in them."""
    if "column" in condition:
        return {condition["column"][0]}
    return set().union(*(named_columns(child) for child in condition.get("children") or ()))


class _ConditionConverter:
    """Carries negations down to the leaves, so that what has no counterpart can be left out anywhere."""

    def __init__(self, schema: Schema, nanoseconds: str | None) -> None:
        self._schema = schema
        self._nanoseconds = nanoseconds
        self.exact = True

    def _anything(self) -> BooleanExpression:
        self.exact = False
        return AlwaysTrue()

    def convert(self, node: Mapping[str, Any], negated: bool) -> BooleanExpression:
        op = node["op"]
        if op == "not":
            return self.convert(node["children"][0], not negated)
        if op in ("and", "or"):
            left, right = (self.convert(child, negated) for child in node["children"])
            return And(left, right) if (op == "and") != negated else Or(left, right)
        if op in ("true", "false"):
            return AlwaysTrue() if (op == "true") != negated else AlwaysFalse()
        if op == "unknown":
            return self._anything()
        return self._leaf(op, node, negated)

    def _leaf(self, op: str, node: Mapping[str, Any], negated: bool) -> BooleanExpression:
        column = self._column(node["column"])
        if column is None:
            return self._anything()
        name, field_type = column
        if "variant" in node:
            return self._within_variant(op, name, node, negated)
        if op in ("is-null", "not-null"):
            if name == PARTITION_NAME:
                return self._anything()  # whether it is null says nothing of files
            return _negated_if((op == "not-null") != negated, IsNull(name))
        if not isinstance(field_type, PrimitiveType) or not is_held(shown_type(field_type, self._nanoseconds)):
            return self._anything()
        term: str | Term = name
        if "transform" in node:
            if isinstance(field_type, UUIDType):
                return self._anything()  # Spark has its text, whose bucket is another
            transformed = _transformed(name, node["transform"], field_type)
            if transformed is None:
                return self._anything()
            term, field_type = transformed
        if op == "is-nan":
            return _negated_if(negated, IsNaN(name))
        try:
            if isinstance(field_type, NANO_TIMESTAMPS):
                node = _in_nanoseconds(node, self._nanoseconds)
            if op == "in":
                return _membership(term, field_type, node["values"], negated)
            return _comparison(op, term, field_type, node["value"], negated)
        except (InvalidInputError, ValueError, ArithmeticError):
            return self._anything()  # a literal that the column's type cannot hold says nothing about files

    def _within_variant(self, op: str, name: str, node: Mapping[str, Any], negated: bool) -> BooleanExpression:
        """A test of a value within a variant: it leaves out files, and Spark tests the rows by its own casts."""
        self.exact = False
        try:
            term = VariantGet(name, node["variant"]["path"], node["variant"]["type"])
            if op in ("is-null", "not-null"):
                return _negated_if((op == "not-null") != negated, IsNull(term))
            if op == "is-nan":
                return _negated_if(negated, IsNaN(term))
            assert isinstance(term.type, PrimitiveType)
            if op == "in":
                test = _membership(term, term.type, node["values"], negated)
            else:
                test = _comparison(op, term, term.type, node["value"], negated)
            if node["variant"]["raises"] and not isinstance(term.type, (FloatType, DoubleType)):
                # NaN has no place in bounds, and raises an error if it is cast to another number.
                return Or(test, IsNaN(VariantGet(name, term.path, DoubleType())))
            return test
        except (InvalidInputError, ValueError, ArithmeticError):
            return self._anything()

    def _column(self, path: list[str]) -> tuple[str, IcebergType] | None:
        name = ".".join(path)
        field_id = self._schema.index_by_name.get(name)
        if field_id is None or not self._is_path(field_id, path):
            return None
        return name, self._schema.index_by_id[field_id].field_type

    def _is_path(self, field_id: int, path: list[str]) -> bool:
        """Whether a dotted name really is this path: `a.b` may also be the name of one column."""
        names: list[str] = []
        current: int | None = field_id
        while current is not None:
            names.append(self._schema.index_by_id[current].name)
            current = self._schema.parent_ids.get(current)
        return names[::-1] == path


def _in_nanoseconds(node: Mapping[str, Any], choice: str | None) -> Mapping[str, Any]:
    """A test of a column of nanoseconds, whose values are those of Spark."""
    assert choice is not None
    if "values" in node:
        return {**node, "values": [None if each is None else stored(each, choice) for each in node["values"]]}
    return {**node, "value": None if node["value"] is None else stored(node["value"], choice)}


def _transformed(name: str, text: str, field_type: IcebergType) -> tuple[Term, PrimitiveType] | None:
    """The term of a transform, and the type of its values; None if Iceberg has none such."""
    try:
        transform = parse_transform(text)
    except InvalidInputError:
        return None
    result = transform.result_type(field_type) if transform.can_transform(field_type) else None
    return (Transformed(Reference(name), transform), result) if isinstance(result, PrimitiveType) else None


def _comparison(op: str, term: str | Term, field_type: IcebergType, value: Any, negated: bool) -> BooleanExpression:
    null_safe = op == "eq-null-safe"
    if value is None:
        # A comparison with null is never true, and neither is its negation.
        return _negated_if(negated, IsNull(term)) if null_safe else AlwaysFalse()
    if isinstance(field_type, UUIDType) and op == "starts-with":
        raise ValueError("a UUID has no prefix")
    make = EqualTo if null_safe else _COMPARISONS[op]
    test = make(term, stored_literal(stored_value(field_type, value), field_type))
    if null_safe and negated:
        return Or(_negated_if(True, test), IsNull(term))
    return _negated_if(negated, test)


def _membership(term: str | Term, field_type: IcebergType, values: list[Any], negated: bool) -> BooleanExpression:
    if negated and None in values:
        return AlwaysFalse()  # `not in` a list with a null is never true
    literals = [stored_literal(stored_value(field_type, value), field_type) for value in values if value is not None]
    return _negated_if(negated, In(term, literals))


def _negated_if(negated: bool, test: BooleanExpression) -> BooleanExpression:
    if not negated:
        return test
    return test.negate() if isinstance(test, UnboundPredicate) else Not(test)


def stored_value(field_type: IcebergType, value: Any) -> Any:
    """A value of Spark's internal form, from JSON, in Iceberg's stored form; ValueError if none means the same."""
    if isinstance(field_type, (FloatType, DoubleType)):
        return float(value)
    if isinstance(field_type, DecimalType):
        return Decimal(value)
    if isinstance(field_type, (BinaryType, FixedType)):
        return bytes.fromhex(value)
    if isinstance(field_type, UUIDType):
        parsed = uuid.UUID(value)
        if str(parsed) != value:
            raise ValueError(f"{value!r} is not how Spark shows a UUID")
        return parsed
    if isinstance(field_type, TimeType):
        if value % 1000:
            raise ValueError(f"{value} nanoseconds are no whole microseconds")
        return value // 1000
    if isinstance(field_type, StringType) and not isinstance(value, str):
        raise ValueError(f"{value!r} is not a string")
    return value
