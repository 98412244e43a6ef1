"""Files to remove that are found in the columns of manifests: no file becomes an object that stays."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass

from hms_iceberg.errors import InvalidInputError
from hms_iceberg.expressions.binding import bind
from hms_iceberg.expressions.tree import BooleanExpression
from hms_iceberg.lazy import pl
from hms_iceberg.scan.manifests.cache import ManifestCache, ManifestFrame
from hms_iceberg.scan.manifests.manifest_source import ManifestSource
from hms_iceberg.scan.partition_columns import PartitionColumns, partition_columns
from hms_iceberg.scan.planner import ALL_MATCH, Planner
from hms_iceberg.scan.tasks import content_files
from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.updates.machinery.update import FileReader

PathsToRemove = Callable[[int, ManifestFrame], Collection[str]]
"""The locations of files to remove, of those of a manifest: gets its spec id and its columns."""


class WholeFiles:
    """Finds the files all of whose rows match a filter."""

    def __init__(
        self,
        base: TableMetadata,
        row_filter: BooleanExpression,
        case_sensitive: bool,
        removed: Collection[DataFile],
        reader: FileReader,
    ) -> None:
        self._base = base
        self._filter = row_filter
        schema = base.schema()
        source = ManifestSource(reader, partition_columns(base), ManifestCache(0))
        self._planner = Planner(base, schema, bind(schema, row_filter, case_sensitive), source, decide=True)
        self._removed = pl.Series([file.file_path for file in removed], dtype=pl.String)

    def __call__(self, spec_id: int, manifest: ManifestFrame) -> Collection[str]:
        files, _ = self._planner.keep_files(spec_id, manifest, {})
        files = files.filter(~files["file_path"].is_in(self._removed.implode()))
        partly = files.filter(~files[ALL_MATCH])
        if partly.height:
            raise InvalidInputError(
                f"Cannot delete {self._filter} of the table at {self._base.location} by whole files: some, but not "
                f"all, rows of {partly['file_path'][0]} may match. Use Table.delete, which rewrites such files or "
                "writes row deletes."
            )
        return files["file_path"].to_list()


@dataclass(frozen=True)
class FilesOfPartitions:
    """Finds the files whose partition passes a test, which is asked once a partition."""

    partitions: PartitionColumns
    is_wanted: Callable[[DataFile], bool]

    def __call__(self, spec_id: int, manifest: ManifestFrame) -> Collection[str]:
        files = manifest.frame
        names = [name for name in self.partitions.columns(spec_id) if files.schema[name] != pl.Null]
        # A join takes -0.0 and 0.0 for equal, which are two partitions.
        signs = {f"{name} is -0.0": 1 / pl.col(name) == -math.inf for name in names if files.schema[name].is_float()}
        keyed = files.select("file_path", *names, **signs).with_row_index("row")
        keys = keyed.columns[2:]
        first = keyed.unique(keys, keep="first", maintain_order=True) if keys else keyed.head(1)
        one_each = content_files(files[first["row"]], self.partitions)
        wanted = first.filter(pl.Series([self.is_wanted(file) for file in one_each], dtype=pl.Boolean))
        if not keys:
            return files["file_path"].to_list() if wanted.height else []
        return keyed.join(wanted.select(keys), on=keys, how="semi", nulls_equal=True)["file_path"].to_list()
