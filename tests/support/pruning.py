"""The rules that prune files and manifests, asked of one of them."""

from __future__ import annotations

from collections.abc import Sequence

from hms_iceberg.expressions.binding import bind
from hms_iceberg.expressions.residuals import inclusive_projection
from hms_iceberg.expressions.tree import BooleanExpression
from hms_iceberg.expressions.visitors import complement
from hms_iceberg.scan.metadata_filter import manifests_may_match
from hms_iceberg.scan.metrics_filter import files_may_match
from hms_iceberg.spec.manifests.manifest_values import DataFile, ManifestFile
from hms_iceberg.spec.partitions.partition_specs import PartitionSpec
from hms_iceberg.spec.schema import Schema


def may_match(schema: Schema, expression: BooleanExpression, file: DataFile) -> bool:
    """Whether some row of a file may match, by its metrics."""
    return files_may_match(bind(schema, expression), [file])[0]


def all_may_match(schema: Schema, expression: BooleanExpression, files: Sequence[DataFile]) -> list[bool]:
    """`may_match` of each of many files, which takes hardly longer than that of one."""
    return list(files_may_match(bind(schema, expression), files))


def all_must_match(schema: Schema, expression: BooleanExpression, files: Sequence[DataFile]) -> list[bool]:
    """`must_match` of each of many files, which takes hardly longer than that of one."""
    return [not may for may in files_may_match(complement(bind(schema, expression)), files)]


def must_match(schema: Schema, expression: BooleanExpression, file: DataFile) -> bool:
    """Whether every row of a file must match, by its metrics."""
    return not files_may_match(complement(bind(schema, expression)), [file])[0]


def manifest_may_match(
    spec: PartitionSpec, schema: Schema, expression: BooleanExpression, manifest: ManifestFile
) -> bool:
    """Whether some row of a manifest's files may match, by its partition summaries."""
    partition_type = spec.partition_type(schema)
    projected = bind(partition_type, inclusive_projection(schema, spec)(expression))
    return manifests_may_match(projected, partition_type, [manifest])[0]
