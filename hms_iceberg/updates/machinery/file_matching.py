"""Whether the rows of files may, or must, match a filter: by their partitions and by their metrics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

from hms_iceberg.expressions.binding import bind
from hms_iceberg.expressions.complement import complement
from hms_iceberg.expressions.evaluate import evaluator
from hms_iceberg.expressions.projection.projections import inclusive_projection, strict_projection
from hms_iceberg.expressions.tree import BooleanExpression
from hms_iceberg.scan.manifest_pruning import manifests_may_match
from hms_iceberg.scan.metrics_filter import files_may_match
from hms_iceberg.spec.manifests.manifest_values import DataFile, ManifestFile
from hms_iceberg.spec.metadata.table_metadata import TableMetadata

PartitionTest = Callable[[tuple[object, ...]], bool]


class FileMatcher:
    """Decides about files and manifests of a table; predicates are projected once a spec.

    Raises:
        UnknownColumnError, TypeMismatchError: the filter does not fit the table's schema.
    """

    def __init__(self, metadata: TableMetadata, row_filter: BooleanExpression, case_sensitive: bool = True) -> None:
        self._metadata = metadata
        self._filter = bind(metadata.schema(), row_filter, case_sensitive)
        self._projected: dict[tuple[int, bool], BooleanExpression] = {}
        self._tests: dict[tuple[int, bool], PartitionTest] = {}

    @cached_property
    def _complement(self) -> BooleanExpression:
        return complement(self._filter)

    def may_match(self, files: Sequence[DataFile]) -> list[bool]:
        """Of each file False only if certainly none of its rows matches."""
        by_metrics = files_may_match(self._filter, files)
        return [may and self.may_match_partition(file) for may, file in zip(by_metrics, files, strict=True)]

    def may_match_partition(self, file: DataFile) -> bool:
        """False only if certainly no row of the file's partition matches."""
        return self._test(file.spec_id, strict=False)(file.partition)

    def must_match(self, files: Sequence[DataFile]) -> list[bool]:
        """Of each file True only if certainly every one of its rows matches."""
        others = files_may_match(self._complement, files)
        return [
            not other or self._test(file.spec_id, strict=True)(file.partition)
            for other, file in zip(others, files, strict=True)
        ]

    def may_match_manifest(self, manifest: ManifestFile) -> bool:
        """False only if certainly no file of the manifest has a matching row."""
        spec_id = manifest.partition_spec_id
        partition_type = self._metadata.spec_by_id(spec_id).partition_type(self._metadata.schema())
        (answer,) = manifests_may_match(self._projection(spec_id, strict=False), partition_type, [manifest])
        return answer

    def _projection(self, spec_id: int, strict: bool) -> BooleanExpression:
        """The filter over the partitions of a spec, bound."""
        key = (spec_id, strict)
        if key not in self._projected:
            spec, schema = self._metadata.spec_by_id(spec_id), self._metadata.schema()
            project = strict_projection if strict else inclusive_projection
            self._projected[key] = bind(spec.partition_type(schema), project(schema, spec)(self._filter))
        return self._projected[key]

    def _test(self, spec_id: int, strict: bool) -> PartitionTest:
        key = (spec_id, strict)
        if key not in self._tests:
            partition_type = self._metadata.spec_by_id(spec_id).partition_type(self._metadata.schema())
            self._tests[key] = evaluator(partition_type, self._projection(spec_id, strict))
        return self._tests[key]
