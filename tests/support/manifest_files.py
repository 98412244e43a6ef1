"""The files of a table with all that its manifests say of them."""

from __future__ import annotations

from collections.abc import Iterator

from hms_iceberg.spec.manifests.manifest_avro import decode_manifest
from hms_iceberg.spec.manifests.manifest_list_avro import decode_manifest_list
from hms_iceberg.spec.manifests.manifest_values import DataFile, ManifestContent
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.storage import Storage


def data_files(metadata: TableMetadata, storage: Storage) -> Iterator[DataFile]:
    """The live data files of the current snapshot, with their metrics."""
    snapshot = metadata.current_snapshot()
    assert snapshot is not None
    assert snapshot.manifest_list is not None
    for manifest in decode_manifest_list(storage.read(snapshot.manifest_list)):
        if manifest.content is ManifestContent.DATA:
            for entry in decode_manifest(storage.read(manifest.manifest_path), manifest):
                if entry.is_live:
                    yield entry.data_file
