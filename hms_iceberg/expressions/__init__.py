"""Predicates over rows, files and partitions: immutable trees and pure functions.

    parse("a > 5 and s like 'x%'")   text to tree                          parser
    EqualTo("a", 5) & ~IsNull("b")   the tree by hand                      tree
    bind(schema, tree)               field ids, typed literals, no `not`   binding
    evaluator(schema, tree)          rows                                  evaluate
    inclusive_projection, strict_…   partition predicates                  projections
    residual_evaluator               what is left to check in a partition  residuals
    fold, BoundExpressionVisitor     translation to other engines          visitors

What a predicate means is what SQL's `where` means, and is the same everywhere: a comparison with null is never true,
nor is its negation. For floating-point numbers it is Spark's order: NaN equals itself and is greater than every other
number, and -0.0 equals 0.0. `is nan` of null is false, so `is not nan` of null is true.

The names that users build predicates with can be imported from here: `from hms_iceberg.expressions import EqualTo`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hms_iceberg.expressions.bound import (
        BoundLiteralPredicate,
        BoundPredicate,
        BoundReference,
        BoundSetPredicate,
        BoundUnaryPredicate,
    )
    from hms_iceberg.expressions.terms import Reference, Transformed, VariantGet
    from hms_iceberg.expressions.text.parser import parse
    from hms_iceberg.expressions.tree import (
        AlwaysFalse,
        AlwaysTrue,
        And,
        BooleanExpression,
        EqualTo,
        GreaterThan,
        GreaterThanOrEqual,
        In,
        IntersectsBox,
        IsNaN,
        IsNull,
        LessThan,
        LessThanOrEqual,
        LiteralPredicate,
        Not,
        NotEqualTo,
        NotIn,
        NotIntersectsBox,
        NotNaN,
        NotNull,
        NotStartsWith,
        Or,
        SetPredicate,
        StartsWith,
        UnaryPredicate,
        UnboundPredicate,
    )

__all__ = [
    "AlwaysFalse",
    "AlwaysTrue",
    "And",
    "BooleanExpression",
    "BoundLiteralPredicate",
    "BoundPredicate",
    "BoundReference",
    "BoundSetPredicate",
    "BoundUnaryPredicate",
    "EqualTo",
    "GreaterThan",
    "GreaterThanOrEqual",
    "In",
    "IntersectsBox",
    "IsNaN",
    "IsNull",
    "LessThan",
    "LessThanOrEqual",
    "LiteralPredicate",
    "Not",
    "NotEqualTo",
    "NotIn",
    "NotIntersectsBox",
    "NotNaN",
    "NotNull",
    "NotStartsWith",
    "Or",
    "Reference",
    "SetPredicate",
    "StartsWith",
    "Transformed",
    "UnaryPredicate",
    "UnboundPredicate",
    "VariantGet",
    "parse",
]


def __getattr__(name: str) -> Any:
    """Load a public name on first use (PEP 562), so that importing one module of the room stays cheap."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    homes = {"parse": "text.parser", "Reference": "terms", "Transformed": "terms", "VariantGet": "terms"}
    home = homes.get(name, "bound" if name.startswith("Bound") else "tree")
    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
