"""Binding: from column names to field ids, from literals to stored values, and no `not`.

A bound tree means exactly what the unbound one does. Comparisons that a type's range decides become constants, or tests
for null, because a comparison with null is never true: with an int column, `i < 3000000000` is `i is not null`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Union

from hms_iceberg.errors import TypeMismatchError
from hms_iceberg.expressions.bound import (
    BoundLiteralPredicate,
    BoundPredicate,
    BoundReference,
    BoundSetPredicate,
    BoundTerm,
    BoundTransform,
    BoundUnaryPredicate,
    BoundVariantGet,
)
from hms_iceberg.expressions.conversion import ABOVE_ALL, BELOW_ALL, LiteralPlace, integer_place, place, value_range
from hms_iceberg.expressions.literals import Literal, Operator
from hms_iceberg.expressions.terms import Reference, Term, VariantGet
from hms_iceberg.expressions.tree import (
    BIND,
    AlwaysFalse,
    AlwaysTrue,
    And,
    BooleanExpression,
    LiteralPredicate,
    Not,
    Or,
    SetPredicate,
    UnboundPredicate,
)
from hms_iceberg.spec.data_types import (
    DecimalType,
    DoubleType,
    FloatType,
    GeographyType,
    GeometryType,
    PrimitiveType,
    StringType,
    StructType,
    UnknownType,
    VariantType,
)
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.transforms.partition_transforms import Transform, TruncateTransform, UnknownTransform
from hms_iceberg.spec.values.decimals import decimal_value, unscaled_value

Columns = Union[Schema, StructType]  # noqa: UP007  (an alias is evaluated, also by Python 3.10)


def bind(schema: Columns, expression: BooleanExpression, case_sensitive: bool = True) -> BooleanExpression:
    """The predicate over the fields of a schema; bound parts stay. Without `case_sensitive`, a name that fits two
    columns is refused; fields of a struct type are found by their exact names only."""
    return _bind(_Binder(schema, case_sensitive), rewrite_not(expression))


def rewrite_not(expression: BooleanExpression) -> BooleanExpression:
    """Removes `Not` from a predicate: tests below it are replaced by their opposites. SQL's rules for nulls are kept:
    both a comparison and its opposite are false for null."""
    return _rewrite(expression, negated=False)


def _rewrite(expression: BooleanExpression, negated: bool) -> BooleanExpression:
    if isinstance(expression, Not):
        return _rewrite(expression.child, not negated)
    if isinstance(expression, (And, Or)):
        parts = [_rewrite(each, negated) for each in expression.operands]
        return And(*parts) if isinstance(expression, And) != negated else Or(*parts)
    if not negated:
        return expression
    if isinstance(expression, (UnboundPredicate, BoundPredicate)):
        return expression.negate()
    return Not(expression)


class _Binder:
    """Finds fields; keeps what it found, since filters name the same columns again and again."""

    def __init__(self, schema: Columns, case_sensitive: bool) -> None:
        self.schema = schema
        self.case_sensitive = case_sensitive
        self.found: dict[str, BoundReference] = {}

    def reference(self, reference: Reference) -> BoundReference:
        known = self.found.get(reference.name)
        if known is None:
            known = self.found[reference.name] = self._find(reference.name)
        return known

    def _find(self, name: str) -> BoundReference:
        if isinstance(self.schema, StructType):
            field = self.schema.field_by_name(name, self.case_sensitive)
            if field is not None:
                return BoundReference((field,), name)
            self.schema = Schema(*self.schema.fields)  # for its error, or for nested fields
        return bound_reference(self.schema, self.schema.find_id(name, self.case_sensitive))


def bound_reference(schema: Schema, field_id: int) -> BoundReference:
    """The reference to a field by its id; fields in lists and maps are refused, as a row can have many values."""
    field = schema.find_field(field_id)
    name = schema.find_column_name(field_id) or field.name
    path = [field]
    for ancestor_id in schema.ancestor_ids(field_id):
        ancestor = schema.find_field(ancestor_id)
        if not isinstance(ancestor.field_type, StructType):
            raise TypeMismatchError(
                f"Cannot filter on column {name!r}: it is inside of {schema.find_column_name(ancestor_id)!r} "
                f"({ancestor.field_type}), and a row may hold many of its values; only columns and fields of structs "
                "can be filtered on"
            )
        path.append(ancestor)
    return BoundReference(tuple(reversed(path)), name)


def _bind(binder: _Binder, expression: BooleanExpression) -> BooleanExpression:
    if isinstance(expression, (And, Or)):
        return type(expression)(*(_bind(binder, each) for each in expression.operands))
    if isinstance(expression, UnboundPredicate):
        term = _bind_term(binder, expression.term)
        if isinstance(expression, LiteralPredicate):
            return _bind_literal(term, expression)
        if isinstance(expression, SetPredicate):
            return _bind_set(term, expression)
        return unary(expression.operation, term)
    if isinstance(expression, (AlwaysTrue, AlwaysFalse, BoundPredicate)):
        return expression
    raise TypeMismatchError(
        f"Cannot bind {expression!r} ({type(expression).__name__}): expected an expression; "
        "hms_iceberg.expressions.text.parser.parse makes one from a string"
    )


def _bind_term(binder: _Binder, term: Term) -> BoundTerm:
    if isinstance(term, Reference):
        return binder.reference(term)
    if isinstance(term, VariantGet):
        ref = binder.reference(term.reference)
        if not isinstance(ref.type, VariantType):
            raise TypeMismatchError(f"Cannot bind {term}: column {ref.name!r} is {ref.type}, not variant")
        return BoundVariantGet(ref, term.path, term.type)
    return bind_transform(binder.reference(term.reference), term.transform)


# ------------------------------------------------------------------------------------------------- predicates


def unary(operation: Operator, term: BoundTerm) -> BooleanExpression:
    """Binds IS_NULL, NOT_NULL, IS_NAN or NOT_NAN of a term; always true or false where the term's type decides it."""
    is_void = isinstance(term, BoundTransform) and term.transform.is_void
    if operation in (Operator.IS_NAN, Operator.NOT_NAN) and not is_void:
        if not isinstance(term.type, (FloatType, DoubleType)):
            raise TypeMismatchError(
                f"Cannot test column {term.name!r} for NaN: its type is {term.type}, and only float and double have NaN"
            )
        return BoundUnaryPredicate(operation, term)
    is_null = operation in (Operator.IS_NULL, Operator.NOT_NAN)
    if is_void or isinstance(term.type, UnknownType):
        return AlwaysTrue() if is_null else AlwaysFalse()
    if not term.nullable:
        return AlwaysFalse() if is_null else AlwaysTrue()
    # No other transform turns a value into null.
    return BoundUnaryPredicate(operation, term.ref if isinstance(term, BoundTransform) else term)


def _bind_literal(term: BoundTerm, expression: LiteralPredicate) -> BooleanExpression:
    operation = expression.operation
    if operation in (Operator.STARTS_WITH, Operator.NOT_STARTS_WITH):
        return _bind_prefix(term, expression)
    if operation in (Operator.INTERSECTS_BOX, Operator.NOT_INTERSECTS_BOX):
        return _bind_box(term, expression)
    return comparison(operation, term, _place(term, expression, expression.literal))


def _bind_prefix(term: BoundTerm, expression: LiteralPredicate) -> BooleanExpression:
    if isinstance(term.type, UnknownType):
        return AlwaysFalse()
    prefix = expression.literal.value
    if not isinstance(term.type, StringType) or not isinstance(prefix, str):
        raise TypeMismatchError(
            f"Cannot bind {expression}: only a string column can start with a string, and {term.name!r} is {term.type}"
        )
    if not prefix:
        wanted = expression.operation is Operator.STARTS_WITH
        return unary(Operator.NOT_NULL, term) if wanted else AlwaysFalse()
    if not isinstance(term, BoundTransform):
        return BoundLiteralPredicate(expression.operation, term, prefix)
    return rewrite_comparison(expression.operation, term, LiteralPlace(prefix))


def _bind_box(term: BoundTerm, expression: LiteralPredicate) -> BooleanExpression:
    if isinstance(term.type, UnknownType):
        return AlwaysFalse()
    box = expression.literal.value
    if not isinstance(term, BoundReference) or not isinstance(term.type, (GeometryType, GeographyType)):
        raise TypeMismatchError(
            f"Cannot bind {expression}: only a column of type geometry or geography can intersect a box, and "
            f"{str(term)!r} is {term.type}"
        )
    try:
        box.check(term.type)
    except ValueError as error:
        raise TypeMismatchError(f"Cannot bind {expression}: column {term.name!r} is {term.type}: {error}") from None
    return BoundLiteralPredicate(expression.operation, term, box)


def _bind_set(term: BoundTerm, expression: SetPredicate) -> BooleanExpression:
    places = [_place(term, expression, each) for each in expression.literals]
    return membership(expression.operation, term, places)


def _place(term: BoundTerm, expression: UnboundPredicate, value: Literal) -> LiteralPlace:
    if isinstance(term.type, UnknownType):
        return ABOVE_ALL
    if not isinstance(term.type, PrimitiveType):
        raise TypeMismatchError(
            f"Cannot bind {_short(expression)}: column {term.name!r} is a {term.type}, which cannot be compared; "
            "only 'is null' and 'is not null' are possible"
        )
    try:
        return place(value, term.type)
    except ValueError as error:
        raise TypeMismatchError(
            f"Cannot bind {_short(expression)}: column {term.name!r} is {term.type}: {error}"
        ) from None


def _short(expression: UnboundPredicate) -> str:
    text = str(expression)
    return text if len(text) <= 100 else text[:99] + "…"


def comparison(operation: Operator, term: BoundTerm, at: LiteralPlace) -> BooleanExpression:
    """Binds a comparison of a term with a point in the order of its type's values; always true or false (of non-null
    values) where the point is beyond all of them."""
    if at.nan:
        if isinstance(term.type, (FloatType, DoubleType)):
            return _nan_comparison(operation, term)
        at = ABOVE_ALL
    if at.value is None:
        below = (Operator.LT, Operator.LT_EQ) if at.side > 0 else (Operator.GT, Operator.GT_EQ)
        return unary(Operator.NOT_NULL, term) if operation in (*below, Operator.NOT_EQ) else AlwaysFalse()
    if at.side:
        if operation is Operator.EQ:
            return AlwaysFalse()
        if operation is Operator.NOT_EQ:
            return unary(Operator.NOT_NULL, term)
        operation = _beside(operation, at.side)
    if isinstance(term, BoundTransform):
        return rewrite_comparison(operation, term, LiteralPlace(at.value))
    return _in_range(operation, term, at.value)


def _beside(operation: Operator, side: int) -> Operator:
    """The comparison with the nearest stored value that is equivalent to that with a literal between two."""
    if operation in (Operator.LT, Operator.LT_EQ):
        return Operator.LT_EQ if side > 0 else Operator.LT
    return Operator.GT if side > 0 else Operator.GT_EQ


def _in_range(operation: Operator, term: BoundTerm, value: object) -> BooleanExpression:
    low, high = value_range(term.type)
    if value == low and operation in (Operator.LT, Operator.GT_EQ) and low is not None:
        return AlwaysFalse() if operation is Operator.LT else unary(Operator.NOT_NULL, term)
    if value == high and operation in (Operator.GT, Operator.LT_EQ) and high is not None:
        return AlwaysFalse() if operation is Operator.GT else unary(Operator.NOT_NULL, term)
    return BoundLiteralPredicate(operation, term, value)


def _nan_comparison(operation: Operator, term: BoundTerm) -> BooleanExpression:
    """NaN equals itself and is greater than every other number."""
    if operation is Operator.GT:
        return AlwaysFalse()
    if operation in (Operator.EQ, Operator.GT_EQ):
        return unary(Operator.IS_NAN, term)
    not_null = unary(Operator.NOT_NULL, term)
    return not_null if operation is Operator.LT_EQ else And(not_null, unary(Operator.NOT_NAN, term))


def membership(operation: Operator, term: BoundTerm, places: Sequence[LiteralPlace]) -> BooleanExpression:
    """Binds IN or NOT_IN of a term; points that are no value of the type are left out, as nothing equals them."""
    is_in = operation is Operator.IN
    values = tuple({each.value for each in places if each.is_exact})
    single = Operator.EQ if is_in else Operator.NOT_EQ
    parts: list[BooleanExpression] = []
    if isinstance(term.type, (FloatType, DoubleType)) and any(each.nan for each in places):
        parts.append(_nan_comparison(single, term))
    if len(values) == 1 or (isinstance(term, BoundTransform) and is_rewritten(term)):
        parts += [comparison(single, term, LiteralPlace(each)) for each in sorted(values)]
    elif values:
        parts.append(BoundSetPredicate(operation, term, values))
    if is_in:
        return Or(*parts)
    return And(*parts) if parts else unary(Operator.NOT_NULL, term)


BIND.set(bind)


# ------------------------------------------------------------------------------------------- tests of transforms

# `days(ts) = date'2024-01-01'` is `ts >= timestamp'2024-01-01' and ts < timestamp'2024-01-02'`: what looks at bounds,
# partitions and rows then needs to know nothing of transforms. Only buckets, and binary values cut off, stay as they
# are.


def bind_transform(ref: BoundReference, transform: Transform) -> BoundTerm:
    """The term of a transform of a field; the field itself for identity."""
    if transform.is_identity:
        return ref
    if isinstance(transform, UnknownTransform):
        raise TypeMismatchError(f"Cannot filter on {transform}({ref.name}): the transform is not known")
    if not transform.can_transform(ref.type):
        raise TypeMismatchError(
            f"Cannot filter on {transform} of column {ref.name!r}: the transform does not take {ref.type} values"
        )
    return BoundTransform(ref, transform)


def is_rewritten(term: BoundTransform) -> bool:
    """Whether comparisons of the term become comparisons of its source."""
    source = term.ref.type
    if isinstance(term.transform, TruncateTransform) and isinstance(source, StringType):
        return True
    return term.transform.is_void or term.transform.first_source(source) is not None


def rewrite_comparison(operation: Operator, term: BoundTransform, at: LiteralPlace) -> BooleanExpression:
    """A comparison of a transform's result as one of the column, or of the transform where no range says it."""
    transform, ref, value = term.transform, term.ref, at.value
    if transform.is_void:
        return AlwaysFalse()
    if isinstance(transform, TruncateTransform) and isinstance(ref.type, StringType):
        return _truncated_string(operation, ref, transform.width, value)
    first = transform.first_source(ref.type)
    if first is None:
        return BoundLiteralPredicate(operation, term, value)
    if isinstance(ref.type, DecimalType):
        scale = ref.type.scale
        return _ranges(operation, ref, unscaled_value(value, scale), first)
    return _ranges(operation, ref, value, first)


def _ranges(operation: Operator, ref: BoundReference, value: int, first: Callable[[int], int]) -> BooleanExpression:
    """The comparison as limits of the source; `first(n)` is the first source value whose result is n or more."""
    start, end = first(value), first(value + 1)
    if operation is Operator.LT:
        return _limit(Operator.LT, ref, start)
    if operation is Operator.LT_EQ:
        return _limit(Operator.LT, ref, end)
    if operation is Operator.GT:
        return _limit(Operator.GT_EQ, ref, end)
    if operation is Operator.GT_EQ:
        return _limit(Operator.GT_EQ, ref, start)
    if operation is Operator.EQ:
        if start == end:
            return AlwaysFalse()
        return And(_limit(Operator.GT_EQ, ref, start), _limit(Operator.LT, ref, end))
    return Or(_limit(Operator.LT, ref, start), _limit(Operator.GT_EQ, ref, end))


def _limit(operation: Operator, ref: BoundReference, value: int) -> BooleanExpression:
    """`ref < value` or `ref >= value`, for a value that the type's range may not reach."""
    if isinstance(ref.type, DecimalType):
        largest = 10**ref.type.precision - 1
        beyond = ABOVE_ALL if value > 0 else BELOW_ALL
        at = LiteralPlace(decimal_value(value, ref.type.scale)) if abs(value) <= largest else beyond
    else:
        at = integer_place(value, False, ref.type)
    below = operation is Operator.LT
    low, _ = value_range(ref.type)
    if at.value is None or at.value == low:
        everything = below == (at.side > 0)
        return _not_null(ref) if everything else AlwaysFalse()
    return BoundLiteralPredicate(operation, ref, at.value)


def _not_null(ref: BoundReference) -> BooleanExpression:
    return BoundUnaryPredicate(Operator.NOT_NULL, ref) if ref.nullable else AlwaysTrue()


def _truncated_string(operation: Operator, ref: BoundReference, width: int, value: Any) -> BooleanExpression:
    """A comparison of the first `width` characters of a column."""
    cut, too_long = value[:width], len(value) > width

    def test(with_operation: Operator, prefix: str = cut) -> BooleanExpression:
        return BoundLiteralPredicate(with_operation, ref, prefix)

    if operation in (Operator.GT, Operator.GT_EQ, Operator.NOT_EQ, Operator.NOT_STARTS_WITH):
        return _negated_string(operation.negated, ref, width, value)
    if operation is Operator.STARTS_WITH:
        return AlwaysFalse() if too_long else test(Operator.STARTS_WITH)
    if operation is Operator.EQ:
        if too_long:
            return AlwaysFalse()
        return test(Operator.STARTS_WITH) if len(value) == width else test(Operator.EQ)
    if too_long or (operation is Operator.LT_EQ and len(value) == width):
        return Or(test(Operator.LT), test(Operator.STARTS_WITH))
    if operation is Operator.LT:
        return test(Operator.LT) if value else AlwaysFalse()
    return test(Operator.LT_EQ)


def _negated_string(operation: Operator, ref: BoundReference, width: int, value: Any) -> BooleanExpression:
    positive = _truncated_string(operation, ref, width, value)
    if isinstance(positive, AlwaysFalse):
        return _not_null(ref)
    parts = positive.operands if isinstance(positive, Or) else (positive,)
    return And(*(each.negate() for each in parts if isinstance(each, BoundLiteralPredicate)))
