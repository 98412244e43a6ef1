"""The tree of a predicate over the fields of one schema: field ids and stored values, and no `not`.

Only `bind` makes these nodes. `And`, `Or`, `AlwaysTrue` and `AlwaysFalse` are those of `tree`. What a comparison may
assume: the value is a stored value of the term's own type and lies in the type's range, is never None or NaN, and -0.0
has become 0.0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Union

from hms_iceberg.cached_properties import cached_property
from hms_iceberg.expressions.literals import Literal, Operator, stored_literal
from hms_iceberg.expressions.terms import Reference, Term, Transformed, VariantGet
from hms_iceberg.expressions.tree import BooleanExpression, predicate
from hms_iceberg.spec.data_types import IcebergType, NestedField
from hms_iceberg.spec.transforms.partition_transforms import Transform
from hms_iceberg.spec.variant.casts import extractor
from hms_iceberg.spec.variant.paths import Path, parse_path


@dataclass(frozen=True)
class BoundReference:
    """A field that every row has at most one value of: a column, or a field of a struct column.

    Args:
        path: the fields from the top-level column to the field itself.
        name: the dotted name of the field in the schema.
    """

    path: tuple[NestedField, ...]
    name: str

    @property
    def field(self) -> NestedField:
        """The field itself."""
        return self.path[-1]

    @property
    def field_id(self) -> int:
        """The id of the field."""
        return self.path[-1].field_id

    @property
    def type(self) -> IcebergType:
        """The type of the field."""
        return self.path[-1].field_type

    @property
    def names(self) -> tuple[str, ...]:
        """The names from the top-level column to the field; each may itself contain dots."""
        return tuple(each.name for each in self.path)

    @cached_property
    def nullable(self) -> bool:
        """True if the field, or a struct around it, is optional."""
        return any(each.optional for each in self.path)

    @property
    def ref(self) -> BoundReference:
        """The reference itself; a transform answers with its source."""
        return self

    def unbind(self) -> Reference:
        """The reference by name, no longer bound to a field id."""
        return Reference(self.name)

    def __str__(self) -> str:
        return str(Reference(self.name))


@dataclass(frozen=True)
class BoundTransform:
    """A partition transform of a field that could not be rewritten to comparisons of the field itself: a bucket.

    Args:
        ref: the source field.
        transform: a transform that accepts the field's type.
    """

    ref: BoundReference
    transform: Transform

    @property
    def type(self) -> IcebergType:
        """The type of the transform's results."""
        return self.transform.result_type(self.ref.type)

    @property
    def name(self) -> str:
        """The dotted name of the source field."""
        return self.ref.name

    @property
    def nullable(self) -> bool:
        """True if the source field may be null."""
        return self.ref.nullable

    def unbind(self) -> Transformed:
        """The term by column name, no longer bound to a field id."""
        return Transformed(self.ref.unbind(), self.transform)

    def __str__(self) -> str:
        return str(self.unbind())


@dataclass(frozen=True)
class BoundVariantGet:
    """A value within a field of type variant, cast to a type; null if it is missing or cannot be cast.

    Args:
        ref: the field.
        path: the way to the value, as `VariantGet` has it.
        type: the type that it is cast to.
    """

    ref: BoundReference
    path: str
    type: IcebergType

    @property
    def name(self) -> str:
        """The dotted name of the field."""
        return self.ref.name

    @property
    def nullable(self) -> bool:
        """True: a variant may lack the value."""
        return True

    @cached_property
    def steps(self) -> Path:
        """The field names and array positions that the path leads through."""
        return parse_path(self.path)

    @cached_property
    def read(self) -> Callable[[bytes, bytes], Any]:
        """The function of a variant's metadata and value that gives the stored value, or None."""
        return extractor(self.steps, self.type)

    def __reduce__(self) -> tuple[Any, ...]:
        return BoundVariantGet, (self.ref, self.path, self.type)

    def unbind(self) -> VariantGet:
        """The term by column name, no longer bound to a field id."""
        return VariantGet(self.ref.unbind(), self.path, self.type)

    def __str__(self) -> str:
        return str(self.unbind())


BoundTerm = Union[BoundReference, BoundTransform, BoundVariantGet]  # noqa: UP007  (an alias is evaluated, also by Python 3.10)


class BoundPredicate(BooleanExpression):
    """A test of one bound term, of one of the three classes below."""

    __slots__ = ("operation", "term")
    operation: Operator
    term: BoundTerm

    @property
    def ref(self) -> BoundReference:
        """The field that the term reads."""
        return self.term.ref

    @property
    def is_transformed(self) -> bool:
        """True if a transform of the field is tested, not the field itself."""
        return isinstance(self.term, BoundTransform)

    def negate(self) -> BoundPredicate:
        """The predicate that is true if this one is false (both are not, for comparisons with null)."""
        make: Any = type(self)
        return make(self.operation.negated, *self._arguments()[1:])

    def unbind(self) -> BooleanExpression:
        """The predicate by column names, no longer bound to field ids."""
        raise NotImplementedError

    def __str__(self) -> str:
        return str(self.unbind())


class BoundUnaryPredicate(BoundPredicate):
    """A bound test without a literal: IS_NULL, NOT_NULL, IS_NAN or NOT_NAN."""

    __slots__ = ()

    def __new__(cls, operation: Operator, term: BoundTerm) -> BoundUnaryPredicate:
        return cls._made(operation=operation, term=term)

    def _arguments(self) -> tuple[Any, ...]:
        return self.operation, self.term

    def unbind(self) -> BooleanExpression:
        """The predicate by name."""
        return predicate(self.operation, self.term.unbind())


class BoundLiteralPredicate(BoundPredicate):
    """A comparison with one stored value: EQ, NOT_EQ, LT, LT_EQ, GT, GT_EQ, one of the prefixes, or one with a box."""

    __slots__ = ("value",)
    value: Any

    def __new__(cls, operation: Operator, term: BoundTerm, value: Any) -> BoundLiteralPredicate:
        return cls._made(operation=operation, term=term, value=value)

    @property
    def literal(self) -> Literal:
        """The value with its type."""
        return stored_literal(self.value, self.term.type)

    def _arguments(self) -> tuple[Any, ...]:
        return self.operation, self.term, self.value

    def unbind(self) -> BooleanExpression:
        """The predicate by name."""
        return predicate(self.operation, self.term.unbind(), self.literal)


class BoundSetPredicate(BoundPredicate):
    """A bound test for membership (IN or NOT_IN) in at least two different stored values in ascending order."""

    __slots__ = ("value_set", "values")
    values: tuple[Any, ...]
    value_set: frozenset[Any]

    def __new__(cls, operation: Operator, term: BoundTerm, values: tuple[Any, ...]) -> BoundSetPredicate:
        different = frozenset(values)
        return cls._made(operation=operation, term=term, value_set=different, values=tuple(sorted(different)))

    @property
    def literals(self) -> tuple[Literal, ...]:
        """The values with their type."""
        return tuple(stored_literal(each, self.term.type) for each in self.values)

    def _arguments(self) -> tuple[Any, ...]:
        return self.operation, self.term, self.values

    def unbind(self) -> BooleanExpression:
        """The predicate by name."""
        return predicate(self.operation, self.term.unbind(), self.literals)


__all__ = [
    "BoundLiteralPredicate",
    "BoundPredicate",
    "BoundReference",
    "BoundSetPredicate",
    "BoundTerm",
    "BoundTransform",
    "BoundUnaryPredicate",
    "BoundVariantGet",
    "Term",
]
