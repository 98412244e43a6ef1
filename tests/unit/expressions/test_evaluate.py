from __future__ import annotations

import math

import pytest

from hms_iceberg.errors import TypeMismatchError
from hms_iceberg.expressions.binding import bind
from hms_iceberg.expressions.evaluate import evaluator
from hms_iceberg.expressions.text.parser import parse
from hms_iceberg.expressions.visitors import (
    BoundExpressionVisitor,
    bound_predicates,
    fold,
    referenced_field_ids,
    unbind,
)
from hms_iceberg.spec.data_types import DoubleType, IntegerType, NestedField, StringType, StructType
from hms_iceberg.spec.schema import Schema

SCHEMA = Schema(
    NestedField(1, "a", IntegerType()),
    NestedField(2, "f", DoubleType()),
    NestedField(3, "st", StructType(NestedField(4, "x", IntegerType()), NestedField(5, "s", StringType()))),
)


def rows_matching(text: str, rows: list) -> list:
    test = evaluator(SCHEMA, parse(text))
    return [row for row in rows if test(row)]


@pytest.mark.parametrize("text", ["a = 1", "a != 1", "a < 1", "a >= 1", "a in (1, 2)", "a not in (1, 2)"])
def test_a_comparison_with_null_is_never_true_nor_is_its_negation(text):
    assert rows_matching(text, [(None, None, None)]) == []
    assert rows_matching(f"not ({text})", [(None, None, None)]) == []


def test_nan_equals_itself_and_is_greater_than_every_number():
    nan = (0, math.nan, None)
    for text in ("f > 1e308", "f >= 1", "f != 1", "f = double('NaN')", "f is nan", "f not in (1, 2)"):
        assert rows_matching(text, [nan]) == [nan], text
    for text in ("f < 1", "f <= 1", "f = 1", "f is not nan", "f in (1, 2)", "not (f > 1)"):
        assert rows_matching(text, [nan]) == [], text


def test_null_is_not_nan():
    assert rows_matching("f is nan", [(0, None, None)]) == []
    assert rows_matching("f is not nan", [(0, None, None)]) == [(0, None, None)]


def test_negative_zero_equals_zero():
    row = (0, -0.0, None)
    for text in ("f = 0", "f >= 0", "f <= 0", "f in (0, 1)", "f = -0.0D"):
        assert rows_matching(text, [row]) == [row], text
    for text in ("f < 0", "f > 0", "f != 0"):
        assert rows_matching(text, [row]) == [], text


def test_rows_may_be_sequences_or_mappings_and_so_may_structs():
    rows = [
        (1, None, (5, "x")),
        {"a": 1, "f": None, "st": {"x": 5, "s": "x"}},
        {"a": 1, "st": {4: 5, 5: "x"}},
        [1, None, [5, "x"]],
    ]
    assert rows_matching("st.x = 5 and st.s like 'x%' and a = 1 and f is null", rows) == rows


def test_a_field_of_a_null_struct_is_null():
    assert rows_matching("st.x is null and st is null", [(1, 1.0, None)]) == [(1, 1.0, None)]
    assert rows_matching("st.x = 5", [(1, 1.0, None), {"a": 1}]) == []


def test_buckets_are_computed():
    assert rows_matching("bucket(4, a) = 3", [(34, None, None), (35, None, None), (None, None, None)]) == [
        (34, None, None)
    ]


class _Names(BoundExpressionVisitor[str]):
    """What a translator looks like."""

    def visit_true(self):
        return "T"

    def visit_false(self):
        return "F"

    def visit_and(self, operands):
        return f"({' & '.join(operands)})"

    def visit_or(self, operands):
        return f"({' | '.join(operands)})"

    def visit_is_null(self, term):
        return f"null({term.name})"

    def visit_greater_than(self, term, value):
        return f"{term.name}>{value}"

    def visit_in(self, term, values):
        return f"{term.name}@{values}"


def test_a_visitor_folds_a_bound_tree():
    bound = bind(SCHEMA, parse("a > 1 and (st.x in (3, 2) or f is null)"))
    assert fold(bound, _Names()) == "(a>1 & (st.x@(2, 3) | null(f)))"
    assert fold(bind(SCHEMA, parse("true")), _Names()) == "T"


def test_an_unbound_tree_is_refused_by_a_visitor_of_bound_ones():
    with pytest.raises(TypeMismatchError, match="bind the expression to a schema first"):
        fold(parse("a > 1"), _Names())
    with pytest.raises(TypeMismatchError, match="bind the expression to a schema first"):
        fold(parse("not (a > 1)"), _Names())
    with pytest.raises(TypeMismatchError, match="expected an expression"):
        fold("a > 1", _Names())


def test_the_fields_that_a_filter_reads():
    bound = bind(SCHEMA, parse("a > 1 and (st.x = 3 or st is null or bucket(4, a) = 1)"))
    assert referenced_field_ids(bound) == {1, 3, 4}
    assert [str(each) for each in bound_predicates(bound)] == ["a > 1", "st.x = 3", "st is null", "bucket(4, a) = 1"]


def test_an_unbound_tree_comes_back_from_a_bound_one():
    text = "a > 1 and (st.x in (2, 3) or f is null or st.s like 'x%')"
    assert unbind(bind(SCHEMA, parse(text))) == parse(text)
    assert unbind(parse(f"not ({text})")) == parse(f"not ({text})")
