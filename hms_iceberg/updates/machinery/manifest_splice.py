"""A manifest without some of its files, of which every other entry is copied as it is but for its status.

Decoding and encoding entries one by one costs most of a removal from a large manifest, and changes hardly a byte.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import groupby
from typing import Any

import numpy as np

from hms_iceberg.cached_properties import cached_property
from hms_iceberg.encryption.encrypted_tables import encrypted, manifest_bytes
from hms_iceberg.lazy import pl
from hms_iceberg.scan.manifests.cache import EncodedMetrics, ManifestFrame
from hms_iceberg.scan.manifests.entry_frames import manifest_name
from hms_iceberg.scan.manifests.manifest_bytes import EntryBytes
from hms_iceberg.scan.manifests.manifest_frames import (
    InflatedEntries,
    ManifestDecoder,
    check_sequence_numbers,
    columnar_schema,
)
from hms_iceberg.scan.partition_columns import partition_columns
from hms_iceberg.scan.tasks import content_files
from hms_iceberg.spec.manifests.avro_container import (
    DEFAULT_CODEC,
    AvroContainer,
    join_blocks,
    pack_blocks,
    read_blocks,
    read_container,
)
from hms_iceberg.spec.manifests.manifest_avro import manifest_metadata
from hms_iceberg.spec.manifests.manifest_list_avro import PartitionSummary
from hms_iceberg.spec.manifests.manifest_values import DataFile, ManifestEntryStatus, ManifestFile
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.table_properties import MANIFEST_TARGET_SIZE_BYTES
from hms_iceberg.updates.machinery.manifest_files import metadata_file
from hms_iceberg.updates.machinery.update import Workspace

_NUMBERS = ("sequence_number", "file_sequence_number")
# Finding out where fields begin takes as long as encoding about so many entries anew.
_FEW = 40
_READERS = 8
_AT_ONCE = 16  # manifests: few take nearly as long as these
_STATUSES = {
    "added": ManifestEntryStatus.ADDED,
    "existing": ManifestEntryStatus.EXISTING,
    "deleted": ManifestEntryStatus.DELETED,
}
_COUNTS = tuple(f"{name}_{of}_count" for name in _STATUSES for of in ("files", "rows"))
_EXISTING, _DELETED = int(ManifestEntryStatus.EXISTING), int(ManifestEntryStatus.DELETED)


class ManifestSplice:
    """One manifest of data files, decoded once: files are looked for in the same columns that tell where the bytes of
    their entries are."""

    def __init__(self, manifest: ManifestFile, base: TableMetadata, data: bytes) -> None:
        self._manifest = manifest
        self._base = base
        self._data = data
        self._partitions = partition_columns(base)
        self._decoder = ManifestDecoder([(data, manifest)], self._partitions)

    @property
    def copies(self) -> bool:
        """Whether bytes are worth copying. Entries with fields that nobody here knows are copied even if they are few,
        so that they keep them."""
        count = self._manifest.entries_count
        return count is None or count >= _FEW or self._decoder.has_other_fields

    @cached_property
    def _entries(self) -> InflatedEntries:
        return self._decoder.inflated()

    @cached_property
    def _is_live(self) -> pl.Series:
        return self._entries.files["status"] != _DELETED

    def live(self) -> ManifestFrame:
        """The live files; their metrics are decoded when they are looked at."""
        files = self._entries.files
        files = files if self._is_live.all() else files.filter(self._is_live)
        check_sequence_numbers(files, [self._manifest])
        data = self._data
        return ManifestFrame(files, EncodedMetrics(files, self._manifest, self._partitions, lambda _: data, data))

    def holds(self, paths: set[str]) -> bool:
        """Whether any of these files is live in the manifest."""
        return bool((self._entries.files["file_path"].is_in(list(paths)) & self._is_live).any())

    def without(
        self, paths: set[str], snapshot_id: int, workspace: Workspace
    ) -> tuple[tuple[ManifestFile, ...], tuple[DataFile, ...]] | None:
        """The manifests that take this one's place, and the files removed; None if entries must be encoded anew: of an
        older format, an unusual layout, or few."""
        if not self.copies or not self._decoder.has(changed_fields(self._base)):
            return None
        files = self._entries.files.with_row_index("row").filter(self._is_live)
        gone = files["file_path"].is_in(list(paths))
        files = files.with_columns(
            pl.when(gone).then(_DELETED).otherwise(_EXISTING).alias("status"),
            pl.when(gone).then(snapshot_id).otherwise(pl.col("snapshot_id")).alias("snapshot_id"),
        )
        container = read_container(self._data, manifest_name(self._manifest))
        packed = self._packed(container, files)
        if packed is None:
            return None
        manifest, schema_json = self._manifest, container.schema_json
        written = write_spliced(packed, files, manifest, schema_json, snapshot_id, workspace, self._base)
        return written, tuple(content_files(files.filter(gone), self._partitions))

    def _packed(self, container: AvroContainer, files: pl.DataFrame) -> list[tuple[int, bytes]] | None:
        """Entries in compressed blocks. A block in which none of them changes is copied as it is: most blocks, of a
        manifest that lost files before."""
        rows, names = files["row"].to_numpy(), changed_fields(self._base)
        changes = np.ones(self._entries.files.height, bool)
        if container.codec == DEFAULT_CODEC and (self._entries.files["status"] == _EXISTING).any():
            before = self._entries.columns.select(names)[files["row"]]
            changes[rows] = np.logical_or.reduce([before[name].ne_missing(files[name]).to_numpy() for name in names])
        blocks = [each for each in read_blocks(container, manifest_name(self._manifest)) if each.records]
        ends = np.cumsum([each.records for each in blocks])
        is_changed = np.logical_or.reduceat(changes, [0, *ends[:-1]])
        entries = EntryBytes.of(self._entries.of_blocks(is_changed), names)
        if entries is None:
            return None
        places = np.cumsum(np.repeat(is_changed, [each.records for each in blocks])) - 1  # in the blocks that change
        pieces: list[tuple[bool, int, bytes]] = []
        first = 0
        for is_new, group in groupby(zip(is_changed.tolist(), ends, blocks, strict=True), lambda each: each[0]):
            several = list(group)
            begun, first = first, int(np.searchsorted(rows, several[-1][1]))
            if is_new:
                values = {name: files[name][begun:first].to_list() for name in names}
                pieces += ((True, *each) for each in entries.with_values(places[rows[begun:first]], values))
            else:
                pieces += ((False, each.records, container.data[each.start : each.end]) for _, _, each in several)
        packed = iter(pack_blocks([(count, raw) for is_new, count, raw in pieces if is_new], DEFAULT_CODEC))
        return [next(packed) if is_new else (count, data) for is_new, count, data in pieces]


def merge_spliced(
    manifests: Sequence[ManifestFile], base: TableMetadata, snapshot_id: int, workspace: Workspace
) -> tuple[ManifestFile, ...] | None:
    """Manifests of one content and spec as one, in their order: those that the snapshot added are copied as they are,
    of others the live files are.

    None if entries are to be encoded anew: manifests of an older format, of several layouts, or of an unusual one, or
    few entries.
    """
    if sum(_FEW if each.entries_count is None else each.entries_count for each in manifests) < _FEW:
        return None
    partitions = partition_columns(base)
    with ThreadPoolExecutor(_READERS, thread_name_prefix="iceberg-read") as pool:
        contents = list(pool.map(lambda each: manifest_bytes(each, workspace), manifests))
    read = list(zip(contents, manifests, strict=True))
    if len({columnar_schema(data, each, partitions) for data, each in read}) > 1:
        return None
    if not ManifestDecoder(read[:1], partitions).has(changed_fields(base)):
        return None
    packed: list[tuple[int, bytes]] = []
    listed: list[ManifestFile] = []
    for is_added, several in _several(read, snapshot_id):
        if is_added:  # by this library, and so deflated
            for data, manifest in several:
                container, name = read_container(data, manifest_name(manifest)), manifest_name(manifest)
                packed += ((each.records, data[each.start : each.end]) for each in read_blocks(container, name))
                listed.append(manifest)
            continue
        entries = EntryBytes.of(ManifestDecoder(several, partitions).inflated(), changed_fields(base))
        if entries is None:
            return None
        files = entries.files.with_row_index("row").filter(pl.col("status") != _DELETED)
        files = files.with_columns(pl.lit(_EXISTING, files.schema["status"]).alias("status"))
        values = {name: files[name].to_list() for name in changed_fields(base)}
        packed += pack_blocks(entries.with_values(files["row"].to_numpy(), values), DEFAULT_CODEC)
        listed.append(_of_files(files, several[0][1], base))
    schema_json = read_container(contents[0], manifest_name(manifests[0])).schema_json
    return (_written(packed, _of_all(listed, base), schema_json, snapshot_id, workspace, base),)


def _several(
    read: Sequence[tuple[bytes, ManifestFile]], snapshot_id: int
) -> Iterator[tuple[bool, list[tuple[bytes, ManifestFile]]]]:
    """Some manifests at a time, all or none of which the snapshot added; what these inherit is not known yet."""
    for is_added, group in groupby(read, lambda each: each[1].added_snapshot_id == snapshot_id):
        same = list(group)
        for start in range(0, len(same), _AT_ONCE):
            yield is_added, same[start : start + _AT_ONCE]


def write_spliced(
    packed: list[tuple[int, bytes]],
    files: pl.DataFrame,
    origin: ManifestFile,
    schema_json: bytes,
    snapshot_id: int,
    workspace: Workspace,
    base: TableMetadata,
) -> tuple[ManifestFile, ...]:
    """Manifests of about the target size, of entries in compressed blocks, each with their number."""
    manifests = []
    start = 0
    for blocks in _of_size(packed, max(1, MANIFEST_TARGET_SIZE_BYTES.of(base.properties))):
        part = files.slice(start, sum(count for count, _ in blocks))
        start += len(part)
        listed = _of_files(part, origin, base)
        manifests.append(_written(blocks, listed, schema_json, snapshot_id, workspace, base))
    return tuple(manifests)


def _written(
    packed: list[tuple[int, bytes]],
    listed: ManifestFile,
    schema_json: bytes,
    snapshot_id: int,
    workspace: Workspace,
    base: TableMetadata,
) -> ManifestFile:
    """A manifest of entries in compressed blocks, with the counts and partitions of a row."""
    spec = base.spec_by_id(listed.partition_spec_id)
    metadata = manifest_metadata(base.schema_for_spec(spec), spec, listed.content, base.format_version)
    data = join_blocks(packed, schema_json, DEFAULT_CODEC, metadata)
    location = metadata_file(base, f"{workspace.commit_id}-m{workspace.next_number('manifest')}.avro")
    stored, key = encrypted(data, base.properties)
    workspace.create(location, stored)
    return replace(
        listed,
        manifest_path=location,
        manifest_length=len(stored),
        key_metadata=key,
        added_snapshot_id=snapshot_id,
        sequence_number=None,
        first_row_id=None,
    )


def _of_files(files: pl.DataFrame, origin: ManifestFile, base: TableMetadata) -> ManifestFile:
    """A row with the counts and partitions of files, in other things like another."""
    partitions, summary = partition_columns(base), _summary(origin, base)
    for file in content_files(_extremes(files, partitions.columns(origin.partition_spec_id)), partitions):
        summary.add(file.partition)
    counts: dict[str, Any] = {}
    for name, status in _STATUSES.items():
        rows = files["record_count"].filter(files["status"] == int(status))
        counts |= {f"{name}_files_count": len(rows), f"{name}_rows_count": rows.sum()}
    return replace(
        origin,
        partitions=summary.summaries(),
        min_sequence_number=files["sequence_number"].filter(files["status"] != _DELETED).min(),
        **counts,
    )


def _of_all(listed: Sequence[ManifestFile], base: TableMetadata) -> ManifestFile:
    """A row with the counts and partitions of several, in other things like the first."""
    summary = _summary(listed[0], base)
    for each in listed:
        summary.add_summaries(each.partitions or ())
    counts: dict[str, Any] = {name: sum(getattr(each, name) or 0 for each in listed) for name in _COUNTS}
    ages = [each.min_sequence_number for each in listed if each.min_sequence_number is not None]
    oldest = min(ages, default=None)
    return replace(listed[0], partitions=summary.summaries(), min_sequence_number=oldest, **counts)


def _summary(manifest: ManifestFile, base: TableMetadata) -> PartitionSummary:
    spec = base.spec_by_id(manifest.partition_spec_id)
    return PartitionSummary(spec.partition_type(base.schema_for_spec(spec)))


def _extremes(files: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """Files that have the least and the greatest value of each of some columns, and a null; of columns of floating
    point numbers one file of each value."""
    rows: set[int | None] = set()
    for name in names:
        values = files[name]
        if values.dtype.is_float():
            signed = pl.DataFrame([values.alias("value"), (1 / values == -math.inf).alias("is -0.0")])
            rows.update(signed.with_row_index("row").unique(signed.columns)["row"])
        else:
            rows.update((values.arg_min(), values.arg_max()))
            rows.add(values.is_null().arg_max() if values.null_count() else None)
    return files[sorted(each for each in rows if each is not None)]


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
