"""Conditions in two languages: as filters of this package are written, and as DuckDB is asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from hms_iceberg.spec.data_types import StringType
from tests.support.sql_oracle import Kind


@dataclass(frozen=True)
class Condition:
    """One condition, in parentheses where it needs them.

    Args:
        text: as `Table.delete` takes it.
        sql: as the oracle takes it.
    """

    text: str
    sql: str


@dataclass(frozen=True)
class Column:
    """A column that conditions test: its name in the table, its name in the oracle, and its type."""

    name: str
    sql: str
    kind: Kind


_COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")


@st.composite
def one_test(draw: st.DrawFn, column: Column) -> Condition:
    """One test of a column, with literals at and beyond the limits of its type."""
    kind = column.kind
    words = ["compare", "compare", "compare", "in", "not in", "between", "not between", "distinct", "null"]
    words += ["nan"] if kind.is_floating else []
    words += ["like", "not like"] if isinstance(kind.iceberg, StringType) else []
    word = draw(st.sampled_from(words))
    literals = st.sampled_from((*kind.values, *kind.beyond))
    if word == "compare":
        operator, value = draw(st.sampled_from(_COMPARISONS)), draw(literals)
        return _test(column, f"{{name}} {operator} {{0}}", value)
    if word in ("in", "not in"):
        values = draw(st.lists(literals, min_size=1, max_size=3))
        places = ", ".join(f"{{{place}}}" for place in range(len(values)))
        return _test(column, f"{{name}} {word} ({places})", *values)
    if word in ("between", "not between"):
        return _test(column, f"{{name}} {word} {{0}} and {{1}}", draw(literals), draw(literals))
    if word == "distinct":
        negated = draw(st.sampled_from(["", "not "]))
        return _test(column, f"{{name}} is {negated}distinct from {{0}}", draw(literals))
    if word in ("like", "not like"):
        return _prefix(column, draw(literals), word)
    negated = draw(st.sampled_from(["", "not "]))
    if word == "nan":  # not NaN is true of null: the test is of the value, as it is for null
        answer = f"coalesce(isnan({column.sql}), false)"
        return Condition(f"{column.name} is {negated}nan", f"({negated}{answer})")
    return Condition(f"{column.name} is {negated}null", f"({column.sql} IS {negated}NULL)")


def _test(column: Column, form: str, *values: Any) -> Condition:
    kind = column.kind
    text = form.format(*map(kind.text, values), name=column.name)
    return Condition(text, f"({form.format(*map(kind.literal, values), name=column.sql)})")


def _prefix(column: Column, prefix: str, word: str) -> Condition:
    escaped = prefix.replace("%", "\\%").replace("_", "\\_")
    pattern = column.kind.text(f"{escaped}%")
    negated = "NOT " if word == "not like" else ""
    return Condition(
        f"{column.name} {word} {pattern}", f"({negated}starts_with({column.sql}, {column.kind.literal(prefix)}))"
    )


def presence(name: str, sql: str) -> st.SearchStrategy[Condition]:
    """Whether a nested column is null."""
    return st.sampled_from(
        [Condition(f"{name} is {negated}null", f"({sql} IS {negated}NULL)") for negated in ("", "not ")]
    )


_CONSTANTS = [Condition("true", "true"), Condition("false", "false")]


def conditions(leaves: st.SearchStrategy[Condition], max_leaves: int = 4) -> st.SearchStrategy[Condition]:
    """Trees of and, or and not over tests."""

    def joined(word: str, parts: list[Condition]) -> Condition:
        return Condition(
            f"({f' {word} '.join(each.text for each in parts)})", f"({f' {word} '.join(each.sql for each in parts)})"
        )

    return st.recursive(
        st.one_of(leaves, leaves, leaves, leaves, leaves, st.sampled_from(_CONSTANTS)),
        lambda inner: st.one_of(
            st.builds(joined, st.sampled_from(["and", "or"]), st.lists(inner, min_size=2, max_size=3)),
            inner.map(lambda each: Condition(f"not ({each.text})", f"(NOT {each.sql})")),
        ),
        max_leaves=max_leaves,
    )
