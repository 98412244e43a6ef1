"""Whether the rows of a file may, or must, match a filter: by its partition and by its metrics."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from hms_iceberg.expressions.evaluate import evaluator
from hms_iceberg.expressions.manifest_evaluator import manifest_evaluator
from hms_iceberg.expressions.metrics import InclusiveMetrics, StrictMetrics
from hms_iceberg.expressions.projections import inclusive_projection, strict_projection
from hms_iceberg.expressions.tree import BooleanExpression
from hms_iceberg.spec.manifests.manifest import DataFile, ManifestFile
from hms_iceberg.spec.metadata.table_metadata import TableMetadata


class FileMatcher:
    """Decides about files and manifests of a table; predicates are projected once a spec.

    Raises:
        UnknownColumnError, TypeMismatchError: the filter does not fit the table's schema.
    """

    def __init__(self, metadata: TableMetadata, row_filter: BooleanExpression, case_sensitive: bool = True) -> None:
        self._metadata = metadata
        self._filter = row_filter
        self._case_sensitive = case_sensitive
        self._may: dict[int, Callable[[tuple[object, ...]], bool]] = {}
        self._must: dict[int, Callable[[tuple[object, ...]], bool]] = {}
        self._manifests: dict[int, Callable[[ManifestFile], bool]] = {}
        self._inclusive = InclusiveMetrics(metadata.schema(), row_filter, case_sensitive)

    @cached_property
    def _strict(self) -> StrictMetrics:
        return StrictMetrics(self._metadata.schema(), self._filter, self._case_sensitive)

    def may_match(self, file: DataFile) -> bool:
        """False only where certainly no row of the file matches."""
        return self.may_match_partition(file) and self._inclusive.eval(file)

    def may_match_partition(self, file: DataFile) -> bool:
        """False only where certainly no row of the file's partition matches."""
        test = self._may.get(file.spec_id)
        if test is None:
            spec, schema = self._metadata.spec_by_id(file.spec_id), self._metadata.schema()
            projected = inclusive_projection(schema, spec, self._case_sensitive)(self._filter)
            test = self._may[file.spec_id] = evaluator(spec.partition_type(schema), projected)
        return test(file.partition)

    def must_match(self, file: DataFile) -> bool:
        """True only where certainly every row of the file matches."""
        test = self._must.get(file.spec_id)
        if test is None:
            spec, schema = self._metadata.spec_by_id(file.spec_id), self._metadata.schema()
            projected = strict_projection(schema, spec, self._case_sensitive)(self._filter)
            test = self._must[file.spec_id] = evaluator(spec.partition_type(schema), projected)
        return test(file.partition) or self._strict.eval(file)

    def may_match_manifest(self, manifest: ManifestFile) -> bool:
        """False only where certainly no file of the manifest has a matching row."""
        spec_id = manifest.partition_spec_id
        test = self._manifests.get(spec_id)
        if test is None:
            spec, schema = self._metadata.spec_by_id(spec_id), self._metadata.schema()
            test = self._manifests[spec_id] = manifest_evaluator(spec, schema, self._filter, self._case_sensitive)
        return test(manifest)
