"""Manifests of one partition spec written anew, sorted by partition and of the table's target size."""

from __future__ import annotations

from hms_iceberg.maintenance.rewrite.manifest_rewrite import rewrite_manifests
from hms_iceberg.spark.procedures.procedure import TABLE, Call, Column, Parameter, Procedure, Row


def _rewrite_manifests(call: Call) -> list[Row]:
    result = rewrite_manifests(call.table(), spec_id=call.get("spec_id"), sort_by=call.get("sort_by"))
    return [(result.rewritten_manifests_count, result.added_manifests_count)]


REWRITE_MANIFESTS = Procedure(
    "rewrite_manifests",
    (
        TABLE,
        Parameter("use_caching", "boolean"),  # nothing is read twice here
        Parameter("spec_id", "int"),
        Parameter("sort_by", "array<string>"),
    ),
    (
        Column("rewritten_manifests_count", "int", nullable=False),
        Column("added_manifests_count", "int", nullable=False),
    ),
    _rewrite_manifests,
)
