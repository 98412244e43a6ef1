"""Random predicates over random rows: every part of the room agrees with a reference evaluator, and with each other."""

from __future__ import annotations

import pickle

from hypothesis import given, settings
from hypothesis import strategies as st

from hms_iceberg.errors import ExpressionParseError
from hms_iceberg.expressions.binding import bind, rewrite_not
from hms_iceberg.expressions.evaluate import evaluator
from hms_iceberg.expressions.literals import stored_literal
from hms_iceberg.expressions.terms import Reference, Transformed
from hms_iceberg.expressions.text.parser import parse
from hms_iceberg.expressions.tree import EqualTo, Not
from hms_iceberg.expressions.visitors import unbind
from hms_iceberg.spec.data_types import NestedField, StructType
from hms_iceberg.spec.schema import Schema
from tests.support.expression_strategies import (
    EXAMPLES,
    KINDS,
    TRANSFORMS,
    expressions,
    matches,
    near_values,
    predicates,
    table_leaves,
    table_rows,
    tables,
)

MANY = settings(max_examples=EXAMPLES, deadline=None)


def kinds_of(schema: Schema) -> dict:
    return {name: schema.find_type(name) for name in ("a", "b", "s.c")}


@MANY
@given(st.data())
def test_a_row_matches_where_the_reference_says_true(data):
    schema = data.draw(tables())
    expression = data.draw(expressions(table_leaves(schema)))
    test = evaluator(schema, expression)
    for row in data.draw(st.lists(table_rows(schema), min_size=1, max_size=8)):
        assert test(row) == (matches(expression, row, kinds_of(schema)) is True), (str(expression), row)


@MANY
@given(st.data())
def test_the_negation_matches_where_the_reference_says_false(data):
    schema = data.draw(tables())
    expression = data.draw(expressions(table_leaves(schema)))
    test = evaluator(schema, Not(expression))
    for row in data.draw(st.lists(table_rows(schema), min_size=1, max_size=8)):
        assert test(row) == (matches(expression, row, kinds_of(schema)) is False), (str(expression), row)


@MANY
@given(st.data())
def test_a_transform_in_a_predicate_means_its_result(data):
    transforms = [(each, kind) for each in TRANSFORMS for kind in KINDS if each.can_transform(kind)]
    transform, kind = data.draw(st.sampled_from(transforms))
    schema = data.draw(tables((kind,)))
    result = transform.result_type(kind)
    term = Transformed(Reference("a"), transform)
    expression = data.draw(expressions(predicates(term, result), max_leaves=2))
    test = evaluator(schema, expression)
    for row in data.draw(st.lists(table_rows(schema), min_size=1, max_size=8)):
        value = row[0]
        if type(value) is int and abs(value) > 2**30 and (kind.__class__.__name__ in ("IntegerType", "LongType")):
            continue  # truncation below the smallest value wraps around; a rewritten test does not
        assert test(row) == (matches(expression, row, kinds_of(schema)) is True), (str(expression), row)


@MANY
@given(st.data())
def test_text_of_a_tree_parses_to_an_equal_tree(data):
    schema = data.draw(tables())
    expression = data.draw(expressions(table_leaves(schema)))
    assert parse(str(expression)) == expression
    assert hash(parse(str(expression))) == hash(expression)


@MANY
@given(st.data())
def test_text_of_a_bound_tree_binds_to_an_equal_tree(data):
    schema = data.draw(tables())
    bound = bind(schema, data.draw(expressions(table_leaves(schema))))
    assert bind(schema, parse(str(bound))) == bound
    assert bind(schema, unbind(bound)) == bound
    assert bind(schema, bound) == bound


@MANY
@given(st.data())
def test_trees_survive_pickling(data):
    schema = data.draw(tables())
    expression = data.draw(expressions(table_leaves(schema)))
    assert pickle.loads(pickle.dumps(expression)) == expression
    bound = bind(schema, expression)
    assert pickle.loads(pickle.dumps(bound)) == bound


@MANY
@given(st.data())
def test_rewriting_not_leaves_none_and_changes_nothing(data):
    schema = data.draw(tables())
    expression = data.draw(expressions(table_leaves(schema)))
    rewritten = rewrite_not(expression)
    assert "Not(" not in repr(rewritten)
    for row in data.draw(st.lists(table_rows(schema), min_size=1, max_size=4)):
        assert evaluator(schema, rewritten)(row) == evaluator(schema, expression)(row)


def check_readable_or_refused(text: str) -> None:
    try:
        tree = parse(text)
    except ExpressionParseError as error:
        message = str(error)
    else:
        assert parse(str(tree)) == tree
        return
    assert "at position" in message


@MANY
@given(st.text(max_size=30))
def test_any_text_parses_or_is_refused_with_a_position(text):
    check_readable_or_refused(text)


_WORDS = (
    *(
        "a",
        "b.c",
        "`x y`",
        "1",
        "-2.5",
        "1e3",
        "'x'",
        "null",
        "true",
        "date'2020-01-01'",
        "isnan",
        "year",
        "cast",
        "as",
    ),
    *("and", "or", "not", "in", "is", "nan", "like", "between", "(", ")", "(", ")", ",", "=", "<>", "<", "<=>"),
)


@MANY
@given(st.lists(st.sampled_from(_WORDS), max_size=14).map(" ".join))
def test_any_sequence_of_words_parses_or_is_refused_with_a_position(text):
    check_readable_or_refused(text)


@MANY
@given(st.sampled_from(KINDS).flatmap(lambda kind: st.tuples(st.just(kind), near_values(kind))))
def test_every_stored_value_finds_itself(pair):
    kind, value = pair
    struct = StructType(NestedField(1, "a", kind))
    assert evaluator(struct, EqualTo("a", stored_literal(value, kind)))((value,))
