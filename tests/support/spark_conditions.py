"""Iceberg's predicates as Spark's conditions, for tests that ask both."""

from __future__ import annotations

from typing import Any

import numpy as np

from hms_iceberg.expressions.literals import Literal, Operator
from hms_iceberg.expressions.terms import Reference
from hms_iceberg.expressions.tree import (
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
    BinaryType,
    BooleanType,
    DateType,
    FixedType,
    StringType,
    TimestampType,
    TimestamptzType,
    UUIDType,
)

_SIGNS = {
    Operator.LT: "<",
    Operator.LT_EQ: "<=",
    Operator.GT: ">",
    Operator.GT_EQ: ">=",
    Operator.EQ: "=",
    Operator.NOT_EQ: "<>",
}


def condition(expression: BooleanExpression) -> str:
    """A predicate in Spark's SQL; its literals are of their columns' types."""
    if isinstance(expression, AlwaysTrue):
        return "true"
    if isinstance(expression, AlwaysFalse):
        return "false"
    if isinstance(expression, Not):
        return f"not ({condition(expression.child)})"
    if isinstance(expression, (And, Or)):
        word = " and " if isinstance(expression, And) else " or "
        return f"({word.join(condition(each) for each in expression.operands)})"
    assert isinstance(expression, UnboundPredicate) and isinstance(expression.term, Reference)
    return _test(expression, expression.term.name)


def _test(expression: UnboundPredicate, column: str) -> str:
    operation = expression.operation
    if operation in (Operator.IS_NULL, Operator.NOT_NULL):
        return f"{column} is {'' if operation is Operator.IS_NULL else 'not '}null"
    if operation in (Operator.IS_NAN, Operator.NOT_NAN):
        return f"{'' if operation is Operator.IS_NAN else 'not '}isnan({column})"
    if isinstance(expression, SetPredicate):
        if not expression.literals:  # SQL has no empty list
            return f"{column} {'<>' if operation is Operator.IN else '='} {column}"
        word = "in" if operation is Operator.IN else "not in"
        return f"{column} {word} ({', '.join(literal_text(each) for each in expression.literals)})"
    assert isinstance(expression, LiteralPredicate)
    if operation in (Operator.STARTS_WITH, Operator.NOT_STARTS_WITH):
        word = "" if operation is Operator.STARTS_WITH else "not "
        return f"{word}startswith({column}, {literal_text(expression.literal)})"
    return f"{column} {_SIGNS[operation]} {literal_text(expression.literal)}"


def literal_text(literal: Literal) -> str:
    """A literal in Spark's SQL."""
    value: Any = literal.value
    kind = literal.type
    if isinstance(kind, BooleanType):
        return str(value).lower()
    if isinstance(kind, StringType):
        return f"cast(unhex('{value.encode().hex()}') as string)"
    if isinstance(kind, UUIDType):
        return f"'{value}'"
    if isinstance(kind, (BinaryType, FixedType)):
        return f"unhex('{value.hex()}')"
    if isinstance(kind, DateType):
        return f"date_from_unix_date({value})"
    if isinstance(kind, TimestamptzType):
        return f"timestamp_micros(cast('{value}' as bigint))"
    if isinstance(kind, TimestampType):
        time = str(np.datetime64(max(value, 1 - 2**63), "us"))  # the very least is what numpy has no time for
        return f"timestamp_ntz'{time if time[0] == '-' or time[4] == '-' else '+' + time}'"
    return f"cast('{value}' as {'bigint' if str(kind) == 'long' else kind})"
