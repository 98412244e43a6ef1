"""Manifest lists that grow: new manifests before those of the parent, whose bytes are copied as they are.

A fast append keeps every manifest of its parent. If the parent's list has the schema that this version writes, its
Avro blocks go into the new list without being read, so that a commit costs the same in a table of ten manifests and in
one of ten thousand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hms_iceberg.errors import CorruptFileError
from hms_iceberg.spec.manifests.avro_container import SYNC_SIZE, read_blocks, read_container
from hms_iceberg.spec.manifests.manifest_list_avro import decode_manifest_list, encode_manifest_list
from hms_iceberg.spec.manifests.manifest_values import ManifestFile

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
    """The parent's manifest list with manifests added before its own.

    Args:
        parent: content of the parent's list.
        location: where that is, for messages.
        added: manifests of the new snapshot.
        facts: the new snapshot.

    Returns:
        The new list, the next row id after it, and how many manifests of the parent are in it.

    Raises:
        CorruptManifestError: the parent's list cannot be read.
    """
    head, next_row_id = facts.encode(added)
    spliced = _spliced(head, parent)
    if spliced is not None:
        return spliced[0], next_row_id, spliced[1]
    kept = [manifest for manifest in decode_manifest_list(parent, location) if manifest.has_live_files()]
    data, next_row_id = facts.encode([*added, *kept])
    return data, next_row_id, len(kept)


def _spliced(head: bytes, parent: bytes) -> tuple[bytes, int] | None:
    """Both files as one, with the header of the first; None if their schemas or codecs differ."""
    try:
        new, old = read_container(head, _WHAT), read_container(parent, _WHAT)
        if new.schema_json != old.schema_json or new.codec != old.codec:
            return None
        if new.metadata.get("format-version") != old.metadata.get("format-version"):
            return None
        kept = list(read_blocks(old, _WHAT))
        added = b"".join(head[block.first : block.last - SYNC_SIZE] + old.sync for block in read_blocks(new, _WHAT))
    except CorruptFileError:
        return None  # whoever reads the list record by record says what is wrong with it
    records = sum(block.records for block in kept)
    if len(kept) > _FEW_BLOCKS + records // _SMALL_BLOCK:
        return None
    return head[: new.body_offset - SYNC_SIZE] + old.sync + added + old.body(), records
