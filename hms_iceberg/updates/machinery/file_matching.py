"""Live files of a snapshot, and whether their rows may, or must, match a filter, by partitions and metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from hms_iceberg.cached_properties import cached_property
from hms_iceberg.encryption.encrypted_tables import manifest_bytes
from hms_iceberg.errors import CorruptFileError
from hms_iceberg.expressions.binding import bind
from hms_iceberg.expressions.evaluate import evaluator
from hms_iceberg.expressions.residuals import inclusive_projection, strict_projection
from hms_iceberg.expressions.tree import BooleanExpression
from hms_iceberg.expressions.visitors import complement
from hms_iceberg.lazy import pl
from hms_iceberg.scan.manifests.manifest_frames import ManifestDecoder, columnar_schema
from hms_iceberg.scan.metadata_filter import manifests_may_match
from hms_iceberg.scan.metrics_filter import files_may_match
from hms_iceberg.scan.partition_columns import partition_columns
from hms_iceberg.spec.manifests.manifest_avro import decode_manifest
from hms_iceberg.spec.manifests.manifest_values import DataFile, ManifestFile
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.updates.machinery.listed_manifests import OnUnreadable, in_batches, tell
from hms_iceberg.updates.machinery.update import FileReader


def live_files(
    manifests: Iterable[ManifestFile],
    metadata: TableMetadata,
    reader: FileReader,
    on_unreadable: OnUnreadable = None,
) -> Iterator[pl.DataFrame]:
    """The live files of manifests: frames of `file_path` and `content`; without `on_unreadable`, errors are raised."""
    partitions = partition_columns(metadata)
    for batch in in_batches(manifests, lambda each: manifest_bytes(each, reader), lambda each: each.entries_count or 0):
        alike: dict[Any, list[tuple[bytes, ManifestFile]]] = {}
        for manifest, data in batch:
            if isinstance(data, Exception):
                tell(data, on_unreadable)
                continue
            try:
                schema = columnar_schema(data, manifest, partitions)
            except CorruptFileError:
                yield from _one_by_one([(data, manifest)], on_unreadable)
            else:
                alike.setdefault((manifest.partition_spec_id, schema), []).append((data, manifest))
        for files in alike.values():
            try:
                frame = ManifestDecoder(files, partitions).files()
                # Manifests of data files alone come without what tells them from deletes.
                content = pl.col("content") if "content" in frame.columns else pl.lit(0, pl.Int32).alias("content")
                yield frame.select("file_path", content)
            except CorruptFileError:
                yield from _one_by_one(files, on_unreadable)


def _one_by_one(files: Iterable[tuple[bytes, ManifestFile]], on_unreadable: OnUnreadable) -> Iterator[pl.DataFrame]:
    """Manifests that cannot be read together, or not as columns."""
    for data, manifest in files:
        try:
            entries = decode_manifest(data, manifest)
        except CorruptFileError as error:
            tell(error, on_unreadable)
        else:
            live = [(each.data_file.file_path, int(each.data_file.content)) for each in entries if each.is_live]
            yield pl.DataFrame(live, schema={"file_path": pl.String, "content": pl.Int32}, orient="row")


PartitionTest = Callable[[tuple[object, ...]], bool]


class FileMatcher:
    """Decides about files and manifests of a table; predicates are projected once a spec."""

    def __init__(self, metadata: TableMetadata, row_filter: BooleanExpression, case_sensitive: bool = True) -> None:
        self._metadata = metadata
        self._filter = bind(metadata.schema(), row_filter, case_sensitive)
        self._projected: dict[tuple[int, bool], BooleanExpression] = {}
        self._tests: dict[tuple[int, bool], PartitionTest] = {}

    @cached_property
    def _complement(self) -> BooleanExpression:
        return complement(self._filter)

    def may_match(self, files: Sequence[DataFile]) -> list[bool]:
        """For each file, False only if certainly none of its rows matches."""
        by_metrics = files_may_match(self._filter, files)
        return [may and self.may_match_partition(file) for may, file in zip(by_metrics, files, strict=True)]

    def may_match_partition(self, file: DataFile) -> bool:
        """False only if certainly no row of the file's partition matches."""
        return self._test(file.spec_id, strict=False)(file.partition)

    def must_match(self, files: Sequence[DataFile]) -> list[bool]:
        """For each file, True only if certainly every one of its rows matches."""
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
