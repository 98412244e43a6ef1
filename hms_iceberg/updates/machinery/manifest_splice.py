"""A manifest without some of its files, of which every other entry is copied as it is but for its status.

Decoding and encoding entries one by one costs most of a removal from a large manifest, and changes hardly a byte.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hms_iceberg.encryption.encrypted_tables import encrypted
from hms_iceberg.lazy import pl
from hms_iceberg.scan.manifests.manifest_bytes import EntryBytes
from hms_iceberg.scan.manifests.manifest_frames import ManifestDecoder
from hms_iceberg.scan.partition_columns import PartitionColumns, partition_columns
from hms_iceberg.scan.tasks import content_files
from hms_iceberg.spec.manifests.avro_container import (
    DEFAULT_CODEC,
    AvroContainer,
    join_blocks,
    pack_blocks,
    read_container,
)
from hms_iceberg.spec.manifests.manifest_avro import manifest_metadata
from hms_iceberg.spec.manifests.manifest_list_avro import PartitionSummary
from hms_iceberg.spec.manifests.manifest_values import DataFile, ManifestContent, ManifestEntryStatus, ManifestFile
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.table_properties import MANIFEST_TARGET_SIZE_BYTES
from hms_iceberg.updates.machinery.manifest_files import metadata_file
from hms_iceberg.updates.machinery.update import Workspace

_NUMBERS = ("sequence_number", "file_sequence_number")
# Finding out where fields begin takes as long as encoding about so many entries anew.
_FEW = 40
_EXISTING, _DELETED = int(ManifestEntryStatus.EXISTING), int(ManifestEntryStatus.DELETED)


class ManifestSplice:
    """One manifest of data files, of the table's format version, with a row of `EntryBytes.files` for each live
    file."""

    def __init__(
        self, manifest: ManifestFile, entries: EntryBytes, container: AvroContainer, base: TableMetadata
    ) -> None:
        self._manifest = manifest
        self._entries = entries
        self._container = container
        self._base = base
        self._partitions = partition_columns(base)
        self.files = entries.files.with_row_index("row").filter(pl.col("status") != _DELETED)

    @classmethod
    def of(cls, manifest: ManifestFile, base: TableMetadata, data: bytes) -> ManifestSplice | None:
        """The manifest; None if its entries are to be encoded anew: of an older format, an unusual layout, or few.
        Entries with fields that nobody here knows are copied even if they are few, so that they keep them."""
        container = read_container(data, f"manifest {manifest.manifest_path}")
        if manifest.content is not ManifestContent.DATA:
            return None
        decoder = ManifestDecoder([(data, manifest)], partition_columns(base))
        if manifest.entries_count is not None and manifest.entries_count < _FEW and not decoder.has_other_fields:
            return None
        entries = EntryBytes.of(decoder)
        if entries is None or not entries.has(changed_fields(base)):
            return None
        return cls(manifest, entries, container, base)

    def without(
        self, paths: set[str], snapshot_id: int, workspace: Workspace
    ) -> tuple[tuple[ManifestFile, ...], tuple[DataFile, ...]] | None:
        """The manifests that take this one's place, and the files removed; None if it holds none of them."""
        gone = self.files["file_path"].is_in(list(paths))
        if not gone.any():
            return None
        files = self.files.with_columns(
            pl.when(gone).then(_DELETED).otherwise(_EXISTING).alias("status"),
            pl.when(gone).then(snapshot_id).otherwise(pl.col("snapshot_id")).alias("snapshot_id"),
        )
        values = {name: files[name].to_list() for name in changed_fields(self._base)}
        packed = pack_blocks(self._entries.with_values(files["row"].to_numpy(), values), DEFAULT_CODEC)
        return write_spliced(
            packed, files, self._manifest, self._container.schema_json, snapshot_id, workspace, self._base
        ), tuple(content_files(files.filter(gone), self._partitions))


def write_spliced(
    packed: list[tuple[int, bytes]],
    files: pl.DataFrame,
    origin: ManifestFile,
    schema_json: bytes,
    snapshot_id: int,
    workspace: Workspace,
    base: TableMetadata,
) -> tuple[ManifestFile, ...]:
    """Manifests of about the target size, of entries (none added) in compressed blocks, each with their number."""
    spec = base.spec_by_id(origin.partition_spec_id)
    schema = base.schema_for_spec(spec)
    metadata = manifest_metadata(schema, spec, origin.content, base.format_version)
    partitions = partition_columns(base)
    manifests = []
    start = 0
    for blocks in _of_size(packed, max(1, MANIFEST_TARGET_SIZE_BYTES.of(base.properties))):
        part = files.slice(start, sum(count for count, _ in blocks))
        start += len(part)
        data = join_blocks(blocks, schema_json, DEFAULT_CODEC, metadata)
        location = metadata_file(base, f"{workspace.commit_id}-m{workspace.next_number('manifest')}.avro")
        stored, key = encrypted(data, base.properties)
        workspace.create(location, stored)
        summary = PartitionSummary(spec.partition_type(schema))
        for file in content_files(_one_a_partition(part, partitions, spec.spec_id), partitions):
            summary.add(file.partition)
        listed = replace(
            origin,
            manifest_path=location,
            manifest_length=len(stored),
            key_metadata=key,
            added_snapshot_id=snapshot_id,
            sequence_number=None,
            partitions=summary.summaries(),
            first_row_id=None,
        )
        manifests.append(_counted(listed, part))
    return tuple(manifests)


def _counted(manifest: ManifestFile, files: pl.DataFrame) -> ManifestFile:
    kept = files["status"].to_numpy() == _EXISTING
    rows = files["record_count"].to_numpy()
    numbers = files["sequence_number"].to_numpy()[kept]
    return replace(
        manifest,
        min_sequence_number=int(numbers.min()) if len(numbers) else None,
        added_files_count=0,
        existing_files_count=int(np.count_nonzero(kept)),
        deleted_files_count=int(np.count_nonzero(~kept)),
        added_rows_count=0,
        existing_rows_count=int(rows[kept].sum()),
        deleted_rows_count=int(rows[~kept].sum()),
    )


def changed_fields(base: TableMetadata) -> tuple[str, ...]:
    """The fields of an entry that change in the copy: inherited values are written out."""
    numbers = _NUMBERS if base.format_version > 1 else ()
    return ("status", "snapshot_id", *numbers, *(("first_row_id",) if base.format_version > 2 else ()))


def _of_size(blocks: list[tuple[int, bytes]], target: int) -> list[list[tuple[int, bytes]]]:
    """Blocks for files of about the target size."""
    total = sum(len(packed) for _, packed in blocks)
    if total <= 1.25 * target:
        return [blocks]
    share = total / -(-total // target)
    files: list[list[tuple[int, bytes]]] = [[]]
    size = 0
    for block in blocks:
        if size >= share * len(files):
            files.append([])
        files[-1].append(block)
        size += len(block[1])
    return files


def _one_a_partition(files: pl.DataFrame, partitions: PartitionColumns, spec_id: int) -> pl.DataFrame:
    names = list(partitions.columns(spec_id))
    return files.unique(subset=names) if names else files.head(0)
