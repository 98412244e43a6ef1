"""Manifests of a snapshot written anew: without files that are removed, or small ones merged into larger ones.

Only manifests that hold a removed file are rewritten; merging follows the `commit.manifest.*` properties.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial

from hms_iceberg.encryption.encrypted_tables import manifest_bytes
from hms_iceberg.errors import CommitConflictError
from hms_iceberg.lazy import pl
from hms_iceberg.scan.manifests.manifest_bytes import EntryBytes
from hms_iceberg.scan.manifests.manifest_frames import ManifestDecoder, columnar_schema
from hms_iceberg.scan.partition_columns import partition_columns
from hms_iceberg.spec.manifests.avro_container import DEFAULT_CODEC, pack_blocks, read_container
from hms_iceberg.spec.manifests.manifest_avro import decode_manifest
from hms_iceberg.spec.manifests.manifest_values import (
    DataFile,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
)
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.table_properties import (
    MANIFEST_MERGE_ENABLED,
    MANIFEST_MIN_COUNT_TO_MERGE,
    MANIFEST_TARGET_SIZE_BYTES,
)
from hms_iceberg.updates.machinery.files_to_remove import PathsToRemove
from hms_iceberg.updates.machinery.held_partitions import HeldPartitions
from hms_iceberg.updates.machinery.manifest_files import write_entries
from hms_iceberg.updates.machinery.manifest_splice import ManifestSplice, changed_fields, merge_spliced, write_spliced
from hms_iceberg.updates.machinery.update import Workspace

FileKey = tuple[str, int | None]


def file_key(file: DataFile) -> FileKey:
    """The identity of a file in a table: its location, and for a deletion vector its place in the Puffin file."""
    return file.file_path, file.content_offset


@dataclass(frozen=True)
class Removal:
    """Which live files to remove."""

    key: object  # identifies the removal among others of the transaction; equal keys must mean equal removals
    files: Sequence[DataFile] = ()  # files by identity, which must all be there
    # says of live entries which are to go for another reason (a removed data file)
    matches: Callable[[Sequence[ManifestEntry]], Sequence[bool]] | None = None
    paths: PathsToRemove | None = None  # finds data files that are to go for another reason (a filter, a partition)
    # says of a manifest whether `matches` or `paths` can find any of its entries
    may_match: Callable[[ManifestFile], bool] | None = None

    @property
    def is_by_name(self) -> bool:
        """Whether nothing but `files` is removed."""
        return self.matches is None and self.paths is None


@dataclass
class Filtered:
    manifests: list[ManifestFile] = field(default_factory=list)  # those to keep, rewritten ones in their place
    removed: list[DataFile] = field(default_factory=list)  # files that were removed, once each
    duplicates: int = 0  # how many further entries of removed files there were
    replaced: int = 0  # how many manifests were rewritten or left out


@dataclass(frozen=True)
class _Rewritten:
    manifests: tuple[ManifestFile, ...]
    removed: tuple[DataFile, ...]


def remove_files(
    manifests: Iterable[ManifestFile],
    removal: Removal,
    base: TableMetadata,
    snapshot_id: int,
    workspace: Workspace,
    what: str,
) -> Filtered:
    """Removes files from manifests. A manifest that is rewritten once is not rewritten again by a replay."""
    wanted = {file_key(file) for file in removal.files}
    homes = HeldPartitions(((file.spec_id, file.partition) for file in removal.files), base)
    contents = {file.is_data for file in removal.files}
    result, found = Filtered(), set[FileKey]()
    rewritten: list[_Rewritten | None] = []
    every = list(manifests)

    def rewrite(manifest: ManifestFile) -> _Rewritten | None:
        once = (snapshot_id, "without removed files", removal.key, manifest.manifest_path)
        made = workspace.once(
            (*once, base.format_version, base.current_schema_id),
            partial(_rewrite, manifest, wanted, removal, base, snapshot_id, workspace),
        )
        found.update(file_key(file) for file in ([] if made is None else made.removed))
        return made

    for manifest in every:
        is_home = (manifest.content is ManifestContent.DATA) in contents and homes.may_be_in(manifest)
        may_hold = manifest.has_live_files() and (is_home or _may_match(manifest, removal))
        rewritten.append(rewrite(manifest) if may_hold else None)
    if not wanted <= found:  # summaries of partitions may be wrong
        rewritten = [
            rewrite(manifest) if made is None and manifest.has_live_files() else made
            for manifest, made in zip(every, rewritten, strict=True)
        ]
    missing = sorted(key[0] for key in wanted - found)
    if missing:
        raise CommitConflictError(
            f"Cannot {what} ",
            base.location,
            f": {len(missing)} of the files to remove are not in it (any more), the first is {missing[0]}. A "
            "concurrent commit removed them. Refresh the table and repeat the change.",
        )
    told = set[FileKey]()
    for manifest, made in zip(every, rewritten, strict=True):
        if made is None:
            result.manifests.append(manifest)
            continue
        result.replaced += 1
        result.manifests += made.manifests
        for file in made.removed:
            if file_key(file) in told:
                result.duplicates += 1
            else:
                told.add(file_key(file))
                result.removed.append(file)
    return result


def oldest_data(manifests: Iterable[ManifestFile], base: TableMetadata) -> int:
    """The least sequence number of data files, also of those that the next snapshot adds; older deletes are void."""
    new = base.last_sequence_number + 1
    ages = (each.min_sequence_number for each in manifests)
    return min((new if age is None else age for age in ages), default=new)


def _may_match(manifest: ManifestFile, removal: Removal) -> bool:
    return not removal.is_by_name and (removal.may_match is None or removal.may_match(manifest))


def _rewrite(
    manifest: ManifestFile,
    wanted: set[FileKey],
    removal: Removal,
    base: TableMetadata,
    snapshot_id: int,
    workspace: Workspace,
) -> _Rewritten | None:
    """The manifest with removed files marked as deleted; None if it holds none of them."""
    data = manifest_bytes(manifest, workspace)
    if manifest.content is ManifestContent.DATA:
        splice, paths = ManifestSplice(manifest, base, data), {path for path, _ in wanted}
        if removal.paths is not None:
            paths.update(removal.paths(manifest.partition_spec_id, splice.live()))
        if removal.paths is not None or splice.copies:
            if not splice.holds(paths):
                return None
            spliced = splice.without(paths, snapshot_id, workspace)
            if spliced is not None:
                return _Rewritten(*spliced)
        wanted = {(path, None) for path in paths}
    entries: list[ManifestEntry] = []
    removed: list[DataFile] = []
    # A removal by an earlier snapshot is no news to this one.
    live = [entry for entry in decode_manifest(data, manifest) if entry.is_live]
    matches = [False] * len(live) if removal.matches is None else removal.matches(live)
    for entry, match in zip(live, matches, strict=True):
        if match or file_key(entry.data_file) in wanted:
            removed.append(entry.data_file)
            entries.append(replace(entry, status=ManifestEntryStatus.DELETED, snapshot_id=snapshot_id))
        else:
            entries.append(replace(entry, status=ManifestEntryStatus.EXISTING))
    if not removed:
        return None
    return _Rewritten(write_entries(entries, base, snapshot_id, workspace), tuple(removed))


def merge_manifests(
    manifests: Sequence[ManifestFile], base: TableMetadata, snapshot_id: int, workspace: Workspace
) -> tuple[list[ManifestFile], int]:
    """The manifests (of one content, newest first) with small ones merged, and how many of the parent's went."""
    if not MANIFEST_MERGE_ENABLED.of(base.properties):
        return list(manifests), 0
    target = MANIFEST_TARGET_SIZE_BYTES.of(base.properties)
    min_count = MANIFEST_MIN_COUNT_TO_MERGE.of(base.properties)
    by_spec: dict[int, list[ManifestFile]] = {}
    for manifest in manifests:
        by_spec.setdefault(manifest.partition_spec_id, []).append(manifest)
    merged: list[ManifestFile] = []
    replaced = 0
    for spec_id in sorted(by_spec, reverse=True):
        for bin_ in _packed_from_end(by_spec[spec_id], target):
            is_first = bin_[0] is manifests[0]
            if len(bin_) == 1 or (is_first and len(bin_) < min_count):
                merged += bin_
                continue
            made = _merged(tuple(bin_), base, snapshot_id, workspace)
            merged += made
            gone = (manifest for manifest in bin_ if manifest not in made)
            replaced += sum(1 for manifest in gone if manifest.added_snapshot_id != snapshot_id)
    return merged, replaced


def _packed_from_end(manifests: list[ManifestFile], target: int) -> list[list[ManifestFile]]:
    bins: list[list[ManifestFile]] = []
    size = 0
    for manifest in reversed(manifests):
        if not bins or size + manifest.manifest_length > target:
            bins.append([])
            size = 0
        bins[-1].append(manifest)
        size += manifest.manifest_length
    return [bin_[::-1] for bin_ in reversed(bins)]


def _merged(
    bin_: tuple[ManifestFile, ...], base: TableMetadata, snapshot_id: int, workspace: Workspace
) -> tuple[ManifestFile, ...]:
    key = (snapshot_id, "merged", base.format_version, tuple(manifest.manifest_path for manifest in bin_))
    merged = workspace.once(key, lambda: _write_merged(bin_, base, snapshot_id, workspace))
    for manifest in bin_:
        if manifest.added_snapshot_id == snapshot_id and manifest not in merged:
            workspace.release(manifest.manifest_path)
    return merged


def _write_merged(
    bin_: tuple[ManifestFile, ...], base: TableMetadata, snapshot_id: int, workspace: Workspace
) -> tuple[ManifestFile, ...]:
    spliced = merge_spliced(bin_, base, snapshot_id, workspace)
    if spliced is not None:
        return spliced
    entries: list[ManifestEntry] = []
    kept: list[ManifestFile] = []
    alike: dict[bytes, list[ManifestFile]] = {}
    partitions = partition_columns(base)
    for manifest in bin_:
        data = manifest_bytes(manifest, workspace)
        if ManifestDecoder([(data, manifest)], partitions).has_other_fields:
            is_new = manifest.added_snapshot_id == snapshot_id  # its entries tell what this snapshot did
            same = kept if is_new else alike.setdefault(columnar_schema(data, manifest, partitions), [])
            same.append(manifest)
            continue
        for entry in decode_manifest(data, manifest):
            if entry.snapshot_id == snapshot_id:
                entries.append(entry)
            elif entry.is_live:
                entries.append(replace(entry, status=ManifestEntryStatus.EXISTING))
    for same in alike.values():
        clustered = cluster_manifests(same, (), base, snapshot_id, workspace) if len(same) > 1 else None
        kept += same if clustered is None else clustered[0]
    return (*write_entries(entries, base, snapshot_id, workspace), *kept)


_READERS = 8


def cluster_manifests(
    manifests: Sequence[ManifestFile],
    cluster_by: Sequence[str],
    base: TableMetadata,
    snapshot_id: int,
    workspace: Workspace,
) -> tuple[tuple[ManifestFile, ...], int] | None:
    """Manifests of the same live files (of one content and spec), sorted by partition, nulls first, of the target size,
    and how many files they hold; None if entries must be encoded anew: an older format or other layouts."""
    with ThreadPoolExecutor(_READERS, thread_name_prefix="iceberg-read") as pool:
        contents = list(pool.map(lambda each: manifest_bytes(each, workspace), manifests))
    partitions = partition_columns(base)
    read = list(zip(contents, manifests, strict=True))
    if len({columnar_schema(data, each, partitions) for data, each in read}) > 1:
        return None
    decoder = ManifestDecoder(read, partitions)
    entries = EntryBytes.of(decoder.inflated(), changed_fields(base)) if decoder.has(changed_fields(base)) else None
    if entries is None:
        return None
    spec_id = manifests[0].partition_spec_id
    columns = dict(
        zip((field.name for field in base.spec_by_id(spec_id).fields), partitions.columns(spec_id), strict=True)
    )
    order = [*(columns[name] for name in cluster_by), *columns.values()]
    files = entries.files.with_row_index("row").filter(pl.col("status") != int(ManifestEntryStatus.DELETED))
    files = files.with_columns(pl.lit(int(ManifestEntryStatus.EXISTING), files.schema["status"]).alias("status"))
    if order:
        files = files.sort(order, nulls_last=False, maintain_order=True)
    values = {name: files[name].to_list() for name in changed_fields(base)}
    packed = pack_blocks(entries.with_values(files["row"].to_numpy(), values), DEFAULT_CODEC)
    schema_json = read_container(contents[0], f"manifest {manifests[0].manifest_path}").schema_json
    written = write_spliced(packed, files, manifests[0], schema_json, snapshot_id, workspace, base)
    return written, len(files)
