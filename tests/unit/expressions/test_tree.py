from __future__ import annotations

import copy
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from uuid import UUID

import pytest

from hms_iceberg.errors import InvalidInputError, TypeMismatchError
from hms_iceberg.expressions.evaluate import evaluator
from hms_iceberg.expressions.literals import Literal, Operator, literal
from hms_iceberg.expressions.terms import Reference, Transformed
from hms_iceberg.expressions.tree import (
    MAX_DEPTH,
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
    Not,
    NotEqualTo,
    NotIn,
    NotNaN,
    NotNull,
    NotStartsWith,
    Or,
    StartsWith,
)
from hms_iceberg.spec.data_types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    LongType,
    NestedField,
    StringType,
    TimestampNanoType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.transforms.partition_transforms import BucketTransform, DayTransform

A, B, C = EqualTo("a", 1), IsNull("b"), LessThan("c", 2)


def test_operators_build_the_same_trees_as_the_classes():
    assert And(A, B) == A & B
    assert Or(A, B) == A | B
    assert A.negate() == ~A
    assert Not(A & B) == ~(A & B)
    assert Or(And(A, B), C.negate()) == A & B | ~C


def test_and_and_or_are_flat():
    assert (A & B) & C == A & (B & C) == And(A, B, C)
    assert And(A, B, C).operands == (A, B, C)
    assert (And(A, B, C).left, And(A, B, C).right) == (A, And(B, C))
    assert Or(A, And(B, C)).operands == (A, And(B, C))


def test_constants_simplify_away():
    assert And() == And(AlwaysTrue(), AlwaysTrue()) == AlwaysTrue()
    assert Or() == Or(AlwaysFalse(), AlwaysFalse()) == AlwaysFalse()
    assert And(A, AlwaysTrue()) == Or(AlwaysFalse(), A) == A
    assert And(A, AlwaysFalse(), B) == AlwaysFalse()
    assert Or(A, AlwaysTrue(), B) == AlwaysTrue()
    assert Not(AlwaysTrue()) == AlwaysFalse()
    assert Not(Not(A)) == A


def test_sets_simplify_to_comparisons_and_constants():
    assert In("a", []) == AlwaysFalse()
    assert NotIn("a", []) == AlwaysTrue()
    assert In("a", [1, 1]) == EqualTo("a", 1)
    assert NotIn("a", {1}) == NotEqualTo("a", 1)
    assert In("a", [1, 2, 1]) == In("a", (2, 1))
    assert hash(In("a", [1, 2])) == hash(In("a", [2, 1]))


def test_equality_tells_literals_of_different_types_apart():
    assert EqualTo("a", 1) != EqualTo("a", 1.0)
    assert EqualTo("a", 1) != EqualTo("a", True)
    assert EqualTo("a", Decimal("1.0")) != EqualTo("a", Decimal("1.00"))
    assert EqualTo("a", float("nan")) == EqualTo("a", float("nan"))
    assert EqualTo("a", 1) != NotEqualTo("a", 1)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (True, Literal(True, BooleanType())),
        (5, Literal(5, LongType())),
        (2**70, Literal(2**70, LongType())),
        (1.5, Literal(1.5, DoubleType())),
        (Decimal("1.50"), Literal(Decimal("1.50"), DecimalType(3, 2))),
        (Decimal("0.05"), Literal(Decimal("0.05"), DecimalType(2, 2))),
        (Decimal("1E+3"), Literal(Decimal(1000), DecimalType(4, 0))),
        ("x", Literal("x", StringType())),
        (bytearray(b"x"), Literal(b"x", BinaryType())),
        (UUID(int=1), Literal(UUID(int=1), UUIDType())),
        (date(1969, 12, 31), Literal(-1, DateType())),
        (time(0, 0, 1, 5), Literal(1_000_005, TimeType())),
        (datetime(1970, 1, 1, 0, 0, 1), Literal(1_000_000, TimestampType())),
        (datetime(1970, 1, 1, 1, tzinfo=timezone(timedelta(hours=1))), Literal(0, TimestamptzType())),
    ],
)
def test_python_values_become_literals_of_their_own_type(value, expected):
    assert literal(value) == expected
    assert EqualTo("a", value).literal == expected


def test_numpy_and_pandas_values_become_literals():
    numpy = pytest.importorskip("numpy")
    pandas = pytest.importorskip("pandas")
    assert literal(numpy.int32(5)) == literal(5)
    assert literal(numpy.float32(0.5)) == literal(0.5)
    assert literal(numpy.bool_(True)) == literal(True)
    assert In("a", numpy.array([1, 2])) == In("a", [1, 2])
    assert literal(pandas.Timestamp(1_000_001)) == Literal(1_000_001, TimestampNanoType())
    assert literal(pandas.Timestamp(1_000_000)) == Literal(1_000, TimestampType())
    with pytest.raises(TypeMismatchError, match="null cannot be compared"):
        literal(pandas.NaT)


@pytest.mark.parametrize("value", [None, object(), [1], {}, Decimal("1e5000")])
def test_what_is_no_value_is_refused_with_the_column_and_the_value(value):
    with pytest.raises(TypeMismatchError, match=r"EqualTo for `my col`: Cannot make a literal|null cannot be compared"):
        EqualTo("my col", value)


def test_null_among_the_values_of_a_set_is_refused():
    with pytest.raises(TypeMismatchError, match="In for a: A null cannot be compared with"):
        In("a", [1, None])


def test_a_string_or_a_number_is_no_set_of_values():
    for wrong in ("abc", b"abc", 5):
        with pytest.raises(TypeMismatchError, match="expected several values"):
            In("a", wrong)


def test_only_expressions_can_be_combined():
    with pytest.raises(TypeMismatchError, match=r"Cannot combine 'b = 1' \(str\) with 'and'"):
        And(A, "b = 1")
    with pytest.raises(TypeError):
        A & "b = 1"


@pytest.mark.parametrize("name", ["", None, 5])
def test_a_column_needs_a_name(name):
    with pytest.raises(TypeMismatchError, match="expected a name"):
        IsNull(name)


def test_nodes_cannot_be_changed():
    for node in (A, In("a", [1, 2]), A & B, Not(A)):
        with pytest.raises(AttributeError, match="immutable"):
            node.term = Reference("x")
        with pytest.raises(AttributeError):
            node.anything = 1
        assert copy.deepcopy(node) == node


def test_every_predicate_has_an_opposite():
    pairs = [
        (IsNull("a"), NotNull("a")),
        (IsNaN("a"), NotNaN("a")),
        (A, NotEqualTo("a", 1)),
        (LessThan("a", 1), GreaterThanOrEqual("a", 1)),
        (StartsWith("a", "x"), NotStartsWith("a", "x")),
        (In("a", [1, 2]), NotIn("a", [1, 2])),
    ]
    for one, other in pairs:
        assert one.negate() == other
        assert other.negate() == one


def test_a_flipped_comparison_changes_sides():
    assert Operator.LT.flipped is Operator.GT
    assert Operator.LT_EQ.flipped is Operator.GT_EQ
    assert Operator.EQ.flipped is Operator.EQ


@pytest.mark.parametrize(
    ("tree", "text"),
    [
        (A & (B | C), "a = 1 and (b is null or c < 2)"),
        (A & B | C, "(a = 1 and b is null) or c < 2"),
        (Not(A), "not (a = 1)"),
        (EqualTo("my col.x", "it's"), "`my col`.x = 'it''s'"),
        (EqualTo("a.b", b"\x0a\xff"), "a.b = X'0AFF'"),
        (EqualTo("select", 1.5), "select = 1.5D"),
        (EqualTo("and", True), "`and` = true"),
        (EqualTo("a`b", 1), "`a``b` = 1"),
        (EqualTo(".x", 1), "`.x` = 1"),
        (StartsWith("a", "50%_\\"), "a like '50\\%\\_\\\\%'"),
        (GreaterThan("a", date(2024, 2, 29)), "a > date'2024-02-29'"),
        (GreaterThan("a", float("inf")), "a > double('Infinity')"),
        (GreaterThan("a", Decimal(5)), "a > 5BD"),
        (EqualTo(Transformed(Reference("id"), BucketTransform(16)), 3), "bucket(16, id) = 3"),
        (EqualTo(Transformed(Reference("ts"), DayTransform()), date(1970, 1, 2)), "days(ts) = date'1970-01-02'"),
        (AlwaysTrue(), "true"),
    ],
)
def test_trees_print_as_filter_strings(tree, text):
    assert str(tree) == text


def test_a_chain_of_thousands_is_as_shallow_as_one_of_two():
    tree = Or(*(EqualTo("a", number) for number in range(20_000)))
    assert len(tree.operands) == 20_000
    assert hash(tree) == hash(Or(*tree.operands))
    assert tree == Or(*tree.operands)
    assert len(str(tree)) > 100_000


def test_users_import_the_names_from_the_package():
    import hms_iceberg.expressions as room

    for name in room.__all__:
        assert getattr(room, name).__name__ == name
    assert room.EqualTo is EqualTo
    assert set(room.__all__) <= set(dir(room))
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        room.Nothing  # noqa: B018


def alternating(levels: int) -> BooleanExpression:
    """Conditions on `n` and `m`, `and` and `or` in turn, so many levels deep."""
    node: BooleanExpression = EqualTo("n", 0)
    for level in range(levels):
        node = (And if level % 2 else Or)(EqualTo("m", level), node)
    return node


def test_trees_may_be_deep_but_not_endless():
    columns = Schema(NestedField(1, "n", LongType()), NestedField(2, "m", LongType())).as_struct()
    deepest = alternating(MAX_DEPTH)
    assert deepest == copy.deepcopy(deepest)
    for m in (MAX_DEPTH - 1, 3):
        expected = True
        for level in range(MAX_DEPTH):
            expected = (m == level and expected) if level % 2 else (m == level or expected)
        assert evaluator(columns, deepest)((0, m)) is expected
    for levels in (MAX_DEPTH + 1, 200, 5000):
        with pytest.raises(InvalidInputError, match="alternate 101 levels deep"):
            alternating(levels)
    with pytest.raises(InvalidInputError, match="levels deep"):
        Not(deepest)
    chain = Not(EqualTo("n", 0))
    for value in range(3000):
        chain = chain & NotEqualTo("n", value)
    assert chain.depth == 2


def test_text_of_half_a_surrogate_pair_is_no_literal():
    with pytest.raises(TypeMismatchError, match="character 2 is half of a surrogate pair"):
        EqualTo("s", "a\ud800")
