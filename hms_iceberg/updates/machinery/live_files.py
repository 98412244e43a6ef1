"""The live files of many manifests, as columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from hms_iceberg.errors import CorruptFileError
from hms_iceberg.lazy import pl
from hms_iceberg.scan.manifests.manifest_frames import ManifestDecoder, columnar_schema
from hms_iceberg.scan.partition_columns import partition_columns
from hms_iceberg.spec.manifests.manifest_avro import decode_manifest
from hms_iceberg.spec.manifests.manifest_values import ManifestFile
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.updates.machinery.manifests.reading_ahead import OnUnreadable, in_batches, tell
from hms_iceberg.updates.machinery.update import FileReader


def live_files(
    manifests: Iterable[ManifestFile],
    metadata: TableMetadata,
    reader: FileReader,
    on_unreadable: OnUnreadable = None,
) -> Iterator[pl.DataFrame]:
    """The live files of manifests: frames of `file_path` and `content`.

    Args:
        manifests: the manifests.
        metadata: a version of the table that has their partition specs.
        reader: reads them.
        on_unreadable: gets the error of a manifest that cannot be read, which is passed over; raised if it is None.

    Raises:
        StorageError, CorruptManifestError: a manifest cannot be read.
    """
    partitions = partition_columns(metadata)
    for batch in in_batches(manifests, lambda each: each.manifest_path, reader):
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
