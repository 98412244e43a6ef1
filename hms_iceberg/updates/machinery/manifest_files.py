"""Manifests and manifest lists as files: names, sizes, and how an update writes and reads them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from hms_iceberg.encryption.encrypted_tables import encrypted, is_encrypted, manifest_bytes
from hms_iceberg.errors import CorruptFileError, InvalidInputError
from hms_iceberg.scan.manifests.manifest_source import manifests_of
from hms_iceberg.spec.manifests.avro_container import SYNC_SIZE, read_blocks, read_container
from hms_iceberg.spec.manifests.manifest_avro import decode_manifest, encode_manifest
from hms_iceberg.spec.manifests.manifest_list_avro import decode_manifest_list, encode_manifest_list
from hms_iceberg.spec.manifests.manifest_values import (
    DataFile,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
)
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.snapshots_and_refs import Snapshot
from hms_iceberg.spec.table_properties import MANIFEST_TARGET_SIZE_BYTES, metadata_folder
from hms_iceberg.updates.machinery.update import FileReader, Workspace


def metadata_file(metadata: TableMetadata, name: str) -> str:
    """Location of a metadata file of this name, below `write.metadata.path`."""
    return f"{metadata_folder(metadata.location, metadata.properties)}/{name}"


def manifest_list_of(snapshot: Snapshot | None, reader: FileReader) -> list[ManifestFile]:
    """The manifests of a snapshot; none if there is no snapshot."""
    return [] if snapshot is None else manifests_of(snapshot, reader)


def entries_of(manifest: ManifestFile, reader: FileReader) -> list[ManifestEntry]:
    """All entries of a manifest with snapshot id, sequence numbers and first row id inherited."""
    return decode_manifest(manifest_bytes(manifest, reader), manifest)


def write_added(
    files: Sequence[DataFile],
    base: TableMetadata,
    snapshot_id: int,
    workspace: Workspace,
    data_sequence_number: int | None = None,
) -> tuple[ManifestFile, ...]:
    """Manifests of newly added files by spec and content. Sequence numbers are inherited, so that a retry reuses them;
    files that replace older ones have a data sequence number, not above theirs."""
    entries = [
        ManifestEntry(
            ManifestEntryStatus.ADDED, snapshot_id, data_sequence_number if file.is_data else None, None, file
        )
        for file in files
    ]
    return write_entries(entries, base, snapshot_id, workspace)


def write_entries(
    entries: Sequence[ManifestEntry], base: TableMetadata, snapshot_id: int, workspace: Workspace
) -> tuple[ManifestFile, ...]:
    """Manifests of these entries, in their order, apart by partition spec and content, of about the target size."""
    written: list[ManifestFile] = []

    def room(entry: ManifestEntry) -> tuple[int, bool]:
        return entry.data_file.spec_id, not entry.data_file.is_data

    for (spec_id, is_deletes), group in groupby(sorted(entries, key=room), key=room):
        content = ManifestContent.DELETES if is_deletes else ManifestContent.DATA
        written += _write_split(list(group), base, spec_id, content, snapshot_id, workspace)
    return tuple(written)


def _write_split(
    entries: list[ManifestEntry],
    base: TableMetadata,
    spec_id: int,
    content: ManifestContent,
    snapshot_id: int,
    workspace: Workspace,
) -> list[ManifestFile]:
    target = max(1, MANIFEST_TARGET_SIZE_BYTES.of(base.properties))
    encoded = _encode(entries, base, spec_id, content, snapshot_id)
    pieces = [encoded]
    if len(encoded[0]) > 1.25 * target:
        parts = min(len(entries), -(-len(encoded[0]) // target))
        step = -(-len(entries) // parts)
        chunks = (entries[start : start + step] for start in range(0, len(entries), step))
        pieces = [_encode(chunk, base, spec_id, content, snapshot_id) for chunk in chunks]
    manifests = []
    for data, manifest in pieces:
        name = f"{workspace.commit_id}-m{workspace.next_number('manifest')}.avro"
        location = metadata_file(base, name)
        stored, key = encrypted(data, base.properties)
        workspace.create(location, stored)
        manifests.append(replace(manifest, manifest_path=location, manifest_length=len(stored), key_metadata=key))
    return manifests


def _encode(
    entries: Iterable[ManifestEntry], base: TableMetadata, spec_id: int, content: ManifestContent, snapshot_id: int
) -> tuple[bytes, ManifestFile]:
    spec = base.spec_by_id(spec_id)
    return encode_manifest(
        entries,
        schema=base.schema_for_spec(spec),
        spec=spec,
        content=content,
        format_version=base.format_version,
        snapshot_id=snapshot_id,
    )


def check_specs(files: Iterable[DataFile], base: TableMetadata, table: str) -> None:
    """Refuses files of a partition spec that the table does not have, or with a partition of the wrong length, and
    files that are encrypted where the table is not, or the other way round."""
    needs_key = is_encrypted(base.properties)
    widths = {spec.spec_id: len(spec.fields) for spec in base.partition_specs}
    for file in files:
        if (file.key_metadata is not None) != needs_key:
            is_what = "encrypted, and the file is not" if needs_key else "not encrypted, and the file is"
            raise InvalidInputError(
                f"Cannot add {file.file_path} to the table at {table}: the table is {is_what}. Write its rows "
                f"anew with `append`."
            )
        width = widths.get(file.spec_id)
        if width is None:
            raise InvalidInputError(
                f"Cannot add {file.file_path} to the table at {table}: its partition spec {file.spec_id} is not one "
                f"of the table's specs {sorted(widths)}. Write the file with one of them."
            )
        if len(file.partition) != width:
            raise InvalidInputError(
                f"Cannot add {file.file_path} to the table at {table}: partition spec {file.spec_id} has {width} "
                f"fields, the file's partition {file.partition} has {len(file.partition)}."
            )


_WHAT = "manifest list"
# Each append adds a block: a list of many small ones is now and then written anew.
_FEW_BLOCKS = 64
_SMALL_BLOCK = 256


@dataclass(frozen=True)
class ListFacts:
    """Facts about its snapshot that a new manifest list needs; arguments of `encode_manifest_list`."""

    format_version: int
    snapshot_id: int
    parent_snapshot_id: int | None
    sequence_number: int
    next_row_id: int | None

    def encode(self, manifests: Sequence[ManifestFile]) -> tuple[bytes, int | None]:
        """A manifest list of these manifests, and the next row id after it."""
        return encode_manifest_list(
            manifests,
            format_version=self.format_version,
            snapshot_id=self.snapshot_id,
            parent_snapshot_id=self.parent_snapshot_id,
            sequence_number=self.sequence_number,
            next_row_id=self.next_row_id,
        )


def extend_manifest_list(
    parent: bytes, location: str, added: Sequence[ManifestFile], facts: ListFacts
) -> tuple[bytes, int | None, int]:
    """The parent's manifest list with new manifests first, the next row id, and how many of the parent's are in it."""
    head, next_row_id = facts.encode(added)
    spliced = _spliced(head, parent)
    if spliced is not None:
        return spliced[0], next_row_id, spliced[1]
    kept = decode_manifest_list(parent, location)
    data, next_row_id = facts.encode([*added, *kept])
    return data, next_row_id, len(kept)


def _spliced(head: bytes, parent: bytes) -> tuple[bytes, int] | None:
    """Both files as one, with the header of the first; None if their schemas or codecs differ."""
    try:
        new, old = read_container(head, _WHAT), read_container(parent, _WHAT)
        if new.schema_json != old.schema_json or new.codec != old.codec:
            return None
        kept = list(read_blocks(old, _WHAT))
        added = b"".join(head[block.first : block.last - SYNC_SIZE] + old.sync for block in read_blocks(new, _WHAT))
    except CorruptFileError:
        return None  # whoever reads the list record by record says what is wrong with it
    records = sum(block.records for block in kept)
    if len(kept) > _FEW_BLOCKS + records // _SMALL_BLOCK:
        return None
    return head[: new.body_offset - SYNC_SIZE] + old.sync + added + old.body(), records
