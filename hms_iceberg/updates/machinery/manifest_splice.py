"""A manifest without some of its files, of which every other entry is copied as it is but for its status.

Decoding and encoding entries one by one costs most of a removal from a large manifest, and changes hardly a byte.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import chain, groupby

from hms_iceberg.encryption.encrypted_tables import encrypted, manifest_bytes
from hms_iceberg.lazy import pl
from hms_iceberg.scan.manifests.manifest_bytes import EntryBytes
from hms_iceberg.scan.manifests.manifest_frames import ManifestDecoder, columnar_schema
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
# The columns of which a manifest's row in the list is made, beside those of partitions.
_OF_SUMMARY = ("file_path", "file_format", "record_count", "file_size_in_bytes", "spec_id", "status", "sequence_number")
_READERS = 8
_AT_ONCE = 16  # manifests: few take nearly as long as these
_STATUSES = (ManifestEntryStatus.ADDED, ManifestEntryStatus.EXISTING, ManifestEntryStatus.DELETED)
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
    frames: list[pl.DataFrame] = []
    records: list[Iterator[bytes]] = []
    for is_added, several in _several(read, snapshot_id):
        entries = EntryBytes.of(ManifestDecoder(several, partitions))
        if entries is None or not entries.has(changed_fields(base)):
            return None
        files = entries.files.with_row_index("row")
        values: dict[str, list[int | None]] = {}
        if not is_added:
            files = files.filter(pl.col("status") != _DELETED)
            files = files.with_columns(pl.lit(_EXISTING, files.schema["status"]).alias("status"))
            values = {name: files[name].to_list() for name in changed_fields(base)}
        records.append(entries.with_values(files["row"].to_numpy(), values))
        frames.append(files.select(*_OF_SUMMARY, *partitions.columns(manifests[0].partition_spec_id)))
    schema_json = read_container(contents[0], f"manifest {manifests[0].manifest_path}").schema_json
    packed = pack_blocks(chain.from_iterable(records), DEFAULT_CODEC)
    return write_spliced(packed, pl.concat(frames), manifests[0], schema_json, snapshot_id, workspace, base)


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
    counted = files.group_by("status").agg(pl.len().alias("files"), pl.col("record_count").sum())
    counts = {status: (count, rows) for status, count, rows in counted.iter_rows()}
    added, existing, deleted = (counts.get(int(status), (0, 0)) for status in _STATUSES)
    numbers = files.filter(pl.col("status") != _DELETED)["sequence_number"].drop_nulls().to_numpy()
    return replace(
        manifest,
        min_sequence_number=int(numbers.min()) if len(numbers) else None,
        added_files_count=added[0],
        existing_files_count=existing[0],
        deleted_files_count=deleted[0],
        added_rows_count=added[1],
        existing_rows_count=existing[1],
        deleted_rows_count=deleted[1],
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
