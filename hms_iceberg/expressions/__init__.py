"""Predicates over rows, files and partitions: immutable trees and pure functions.

    parse("a > 5 and s like 'x%'")   text to tree                          parser
    EqualTo("a", 5) & ~IsNull("b")   the tree by hand                      tree
    bind(schema, tree)               field ids, typed literals, no `not`   binding
    evaluator(schema, tree)          rows                                  evaluate
    InclusiveMetrics, StrictMetrics  one data file by its metrics          metrics
    inclusive_projection, strict_…   partition predicates                  projections
    manifest_evaluator               one manifest by its summaries         manifest_evaluator
    residual_evaluator               what is left to check in a partition  residuals

What a predicate means is what SQL's `where` means, and is the same everywhere: a comparison with null is never true,
nor is its negation. For floating-point numbers it is Spark's order: NaN equals itself and is greater than every other
number, and -0.0 equals 0.0. `is nan` of null is false, so `is not nan` of null is true.
"""

from __future__ import annotations
