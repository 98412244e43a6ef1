"""The tree of a predicate, by column names: what users write and what `parser` returns.

Names and arguments are PyIceberg's: the term comes first, `EqualTo("a", 1) & ~IsNull("b")`. Every node is immutable,
hashable, and prints as a filter string that parses back to an equal tree. `And` and `Or` are flat: they hold any
number of operands, so that a chain of ten thousand is no deeper than one of two.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, TypeVar

from hms_iceberg.errors import InvalidInputError, TypeMismatchError
from hms_iceberg.expressions.literals import Literal, Operator, literal
from hms_iceberg.expressions.terms import Term, to_term
from hms_iceberg.hooks import Hook
from hms_iceberg.spec.values.shapes import Box

if TYPE_CHECKING:
    from hms_iceberg.spec.schema import Schema


B = TypeVar("B", bound="BooleanExpression")
# How deep `and`, `or` and `not` may alternate: trees are walked by recursion, for which the stack must be enough.
MAX_DEPTH = 100

BIND: Hook[[Schema, BooleanExpression, bool], BooleanExpression] = Hook("hms_iceberg.expressions.binding")


class BooleanExpression:
    """The base class of predicates; combine them with `&`, `|` and `~` (never with `and`, `or` and `not`)."""

    __slots__ = ()
    depth: int = 0
    """How many `and`, `or` and `not` are in one another below this node, itself included."""

    @classmethod
    def _made(cls: type[B], **values: Any) -> B:
        """A node of this class with the values of its slots, which can be set nowhere else."""
        node = object.__new__(cls)
        for name, value in values.items():
            object.__setattr__(node, name, value)
        return node

    def __and__(self, other: BooleanExpression) -> BooleanExpression:
        return And(self, other) if isinstance(other, BooleanExpression) else NotImplemented

    def __or__(self, other: BooleanExpression) -> BooleanExpression:
        return Or(self, other) if isinstance(other, BooleanExpression) else NotImplemented

    def __invert__(self) -> BooleanExpression:
        return Not(self)

    def bind(self, schema: Schema, case_sensitive: bool = True) -> BooleanExpression:
        """The predicate over the fields of a schema.

        Args:
            schema: the table's schema.
            case_sensitive: whether column names must match in case.

        Raises:
            UnknownColumnError: a column is not part of the schema.
            TypeMismatchError: a value or a function does not fit its column.
        """
        return BIND(schema, self, case_sensitive)

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} is immutable: cannot set {name!r}")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} is immutable: cannot delete {name!r}")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._arguments()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(repr(each) for each in self._arguments())})"

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return type(self) is type(other) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash((type(self).__name__, self._key()))

    def _arguments(self) -> tuple[Any, ...]:
        """The arguments with which the class makes an equal predicate."""
        return ()

    def _key(self) -> Any:
        """The values that equality compares."""
        return self._arguments()


class AlwaysTrue(BooleanExpression):
    """The predicate that every row matches."""

    __slots__ = ()

    def __str__(self) -> str:
        return "true"


class AlwaysFalse(BooleanExpression):
    """The predicate that no row matches."""

    __slots__ = ()

    def __str__(self) -> str:
        return "false"


class _Junction(BooleanExpression):
    __slots__ = ("depth", "operands")
    operands: tuple[BooleanExpression, ...]
    _neutral: ClassVar[type[BooleanExpression]]
    _absorbing: ClassVar[type[BooleanExpression]]
    _word: ClassVar[str]

    def __new__(cls, *operands: BooleanExpression) -> BooleanExpression:  # type: ignore[misc]
        flat: list[BooleanExpression] = []
        for each in operands:
            if not isinstance(each, BooleanExpression):
                raise TypeMismatchError(
                    f"Cannot combine {each!r} ({type(each).__name__}) with {cls._word!r}: expected expressions; "
                    "hms_iceberg.expressions.text.parser.parse makes one from a string"
                )
            if isinstance(each, cls._absorbing):
                return each
            if isinstance(each, cls):
                flat.extend(each.operands)
            elif not isinstance(each, cls._neutral):
                flat.append(each)
        if not flat:
            return cls._neutral()
        if len(flat) == 1:
            return flat[0]
        return cls._made(operands=tuple(flat), depth=_depth_above(flat))

    @property
    def left(self) -> BooleanExpression:
        return self.operands[0]

    @property
    def right(self) -> BooleanExpression:
        return type(self)(*self.operands[1:])

    def _arguments(self) -> tuple[Any, ...]:
        return self.operands

    def __str__(self) -> str:
        return f" {self._word} ".join(
            f"({each})" if isinstance(each, _Junction) else str(each) for each in self.operands
        )


class And(_Junction):
    """A conjunction. Simplifies: `And()` is true, `And(x)` is x, `And(x, AlwaysFalse())` is false."""

    __slots__ = ()
    _neutral = AlwaysTrue
    _absorbing = AlwaysFalse
    _word = "and"


class Or(_Junction):
    """A disjunction. Simplifies: `Or()` is false, `Or(x)` is x, `Or(x, AlwaysTrue())` is true."""

    __slots__ = ()
    _neutral = AlwaysFalse
    _absorbing = AlwaysTrue
    _word = "or"


class Not(BooleanExpression):
    """A negation; a comparison with null is neither true nor false, and so is its `Not`."""

    __slots__ = ("child", "depth")
    child: BooleanExpression

    def __new__(cls, child: BooleanExpression) -> BooleanExpression:  # type: ignore[misc]
        if isinstance(child, Not):
            return child.child
        if isinstance(child, AlwaysTrue):
            return AlwaysFalse()
        if isinstance(child, AlwaysFalse):
            return AlwaysTrue()
        return cls._made(child=child, depth=_depth_above((child,)))

    def _arguments(self) -> tuple[Any, ...]:
        return (self.child,)

    def __str__(self) -> str:
        return f"not ({self.child})"


class UnboundPredicate(BooleanExpression):
    """A test of one term, named as in the schema that it will be bound to."""

    __slots__ = ("term",)
    term: Term
    operation: ClassVar[Operator]

    def __invert__(self) -> BooleanExpression:
        return self.negate()

    def negate(self) -> UnboundPredicate:
        """The predicate that is true if this one is false (both are not, for comparisons with null)."""
        return _CLASSES[self.operation.negated](*self._arguments())


class UnaryPredicate(UnboundPredicate):
    """A test without a literal."""

    __slots__ = ()

    def __new__(cls, term: str | Term) -> UnaryPredicate:
        return cls._made(term=to_term(term))

    def _arguments(self) -> tuple[Any, ...]:
        return (self.term,)

    def __str__(self) -> str:
        return f"{self.term} {self.operation.value}"


class LiteralPredicate(UnboundPredicate):
    """A comparison with one literal."""

    __slots__ = ("literal",)
    literal: Literal

    def __new__(cls, term: str | Term, literal: Any) -> LiteralPredicate:
        term = to_term(term)
        return cls._made(term=term, literal=_literal(cls, term, literal))

    def _arguments(self) -> tuple[Any, ...]:
        return self.term, self.literal

    def __str__(self) -> str:
        return f"{self.term} {self.operation.value} {self.literal}"


class SetPredicate(UnboundPredicate):
    """A comparison with several literals; two sets in different order are equal."""

    __slots__ = ("literals",)
    literals: tuple[Literal, ...]
    _when_empty: ClassVar[type[BooleanExpression]]
    _when_single: ClassVar[type[LiteralPredicate]]

    def __new__(cls, term: str | Term, literals: Iterable[Any]) -> BooleanExpression:  # type: ignore[misc]
        if isinstance(literals, (str, bytes, Literal)) or not isinstance(literals, Iterable):
            raise TypeMismatchError(
                f"Cannot make {cls.__name__} of {literals!r} for {term}: expected several values, such as a list"
            )
        bound_term = to_term(term)
        unique = tuple(dict.fromkeys(_literal(cls, bound_term, each) for each in literals))
        if not unique:
            return cls._when_empty()
        if len(unique) == 1:
            return cls._when_single(bound_term, unique[0])
        return cls._made(term=bound_term, literals=unique)

    def _arguments(self) -> tuple[Any, ...]:
        return self.term, self.literals

    def _key(self) -> Any:
        return self.term, frozenset(self.literals)

    def __str__(self) -> str:
        return f"{self.term} {self.operation.value} ({', '.join(str(each) for each in self.literals)})"


def _literal(cls: type[UnboundPredicate], term: Term, value: Any) -> Literal:
    try:
        return literal(value)
    except TypeMismatchError as error:
        raise TypeMismatchError(f"Cannot make {cls.__name__} for {term}: {error}") from None


class IsNull(UnaryPredicate):
    """A test whether a term is null."""

    __slots__ = ()
    operation = Operator.IS_NULL


class NotNull(UnaryPredicate):
    """A test whether a term is not null."""

    __slots__ = ()
    operation = Operator.NOT_NULL


class IsNaN(UnaryPredicate):
    """A test whether a term is NaN; false for null."""

    __slots__ = ()
    operation = Operator.IS_NAN


class NotNaN(UnaryPredicate):
    """A test whether a term is not NaN; true for null."""

    __slots__ = ()
    operation = Operator.NOT_NAN


class EqualTo(LiteralPredicate):
    """A test whether a term equals a literal."""

    __slots__ = ()
    operation = Operator.EQ


class NotEqualTo(LiteralPredicate):
    """A test whether a term is neither null nor equal to a literal."""

    __slots__ = ()
    operation = Operator.NOT_EQ


class LessThan(LiteralPredicate):
    """A test whether a term is less than a literal."""

    __slots__ = ()
    operation = Operator.LT


class LessThanOrEqual(LiteralPredicate):
    """A test whether a term is less than or equal to a literal."""

    __slots__ = ()
    operation = Operator.LT_EQ


class GreaterThan(LiteralPredicate):
    """A test whether a term is greater than a literal; NaN is greater than any other number."""

    __slots__ = ()
    operation = Operator.GT


class GreaterThanOrEqual(LiteralPredicate):
    """A test whether a term is greater than or equal to a literal; NaN is greater than any other number."""

    __slots__ = ()
    operation = Operator.GT_EQ


class _PrefixPredicate(LiteralPredicate):
    __slots__ = ()

    def __str__(self) -> str:
        prefix = str(self.literal.value)
        for special in ("\\", "%", "_"):
            prefix = prefix.replace(special, "\\" + special)
        return f"{self.term} {self.operation.value} {literal(prefix + '%')}"


class StartsWith(_PrefixPredicate):
    """A test whether a term's text starts with a literal."""

    __slots__ = ()
    operation = Operator.STARTS_WITH


class NotStartsWith(_PrefixPredicate):
    """A test whether a term's text is not null and does not start with a literal."""

    __slots__ = ()
    operation = Operator.NOT_STARTS_WITH


class _BoxPredicate(LiteralPredicate):
    __slots__ = ()

    def __new__(cls, term: str | Term, literal: Any) -> LiteralPredicate:  # type: ignore[misc]
        return super().__new__(cls, term, literal if isinstance(literal, Literal) else Box.of(literal))

    def __str__(self) -> str:
        return f"{self.operation.value}({self.term}, {self.literal})"


class IntersectsBox(_BoxPredicate):
    """A test whether the box around a shape has a point in common with a given box; false for null and for empty
    shapes.

    The box around a shape is that of its x and y coordinates, NaN left out. What edges of a geography reach beyond
    their ends does not count. Its longitudes go the shorter way round: from the least to the greatest, or across the
    antimeridian from the least eastern (0 and above) to the greatest western one. The given box is
    xmin, ymin, xmax, ymax, as `bounds` of shapely's shapes; on the globe, xmin may be above xmax.
    """

    __slots__ = ()
    operation = Operator.INTERSECTS_BOX


class NotIntersectsBox(_BoxPredicate):
    """A test whether a shape is not null and its box has no point in common with a given one; true for empty shapes."""

    __slots__ = ()
    operation = Operator.NOT_INTERSECTS_BOX


class In(SetPredicate):
    """A test whether a term equals one of several literals; `In(t, [])` is false, `In(t, [x])` is `EqualTo(t, x)`."""

    __slots__ = ()
    operation = Operator.IN
    _when_empty = AlwaysFalse
    _when_single = EqualTo


class NotIn(SetPredicate):
    """A test whether a term is not null and equals none of several literals; `NotIn(t, [])` is true."""

    __slots__ = ()
    operation = Operator.NOT_IN
    _when_empty = AlwaysTrue
    _when_single = NotEqualTo


_CLASSES: dict[Operator, type[UnboundPredicate]] = {
    cls.operation: cls
    for cls in (
        IsNull,
        NotNull,
        IsNaN,
        NotNaN,
        EqualTo,
        NotEqualTo,
        LessThan,
        LessThanOrEqual,
        GreaterThan,
        GreaterThanOrEqual,
        StartsWith,
        NotStartsWith,
        IntersectsBox,
        NotIntersectsBox,
        In,
        NotIn,
    )
}


def predicate(operation: Operator, term: str | Term, *arguments: Any) -> BooleanExpression:
    """The predicate of an operation: `predicate(Operator.EQ, "a", 1)` is `EqualTo("a", 1)`."""
    return _CLASSES[operation](term, *arguments)  # type: ignore[call-arg]


def _depth_above(children: Sequence[BooleanExpression]) -> int:
    depth = 1 + max(child.depth for child in children)
    if depth > MAX_DEPTH:
        raise InvalidInputError(
            f"Cannot combine conditions: 'and', 'or' and 'not' alternate {depth} levels deep, at most {MAX_DEPTH} are "
            f"possible. Combine all alternatives of a level at once: Or(a, b, c), or In(column, values)."
        )
    return depth
