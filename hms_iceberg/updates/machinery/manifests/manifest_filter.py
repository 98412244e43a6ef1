"""Removing files from the manifests of a snapshot: only manifests that hold one of them are rewritten."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from hms_iceberg.errors import CommitConflictError
from hms_iceberg.spec.manifests.manifest_avro import decode_manifest
from hms_iceberg.spec.manifests.manifest_values import (
    DataFile,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
)
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.updates.machinery.manifests.manifest_files import write_entries
from hms_iceberg.updates.machinery.manifests.manifest_splice import ManifestSplice
from hms_iceberg.updates.machinery.update import Workspace

FileKey = tuple[str, int | None]


def file_key(file: DataFile) -> FileKey:
    """The identity of a file in a table: its location, and for a deletion vector its place in the Puffin file."""
    return file.file_path, file.content_offset if file.is_deletion_vector else None


@dataclass(frozen=True)
class Removal:
    """Which live files to remove.

    Attributes:
        key: identifies the removal among others of the transaction; equal keys must mean equal removals.
        files: files by identity, which must all be there.
        matches: says of live entries which are to go for another reason (a filter, a partition, a removed data file).
        may_match: says of a manifest whether `matches` can be true of any of its entries.
    """

    key: object
    files: Sequence[DataFile] = ()
    matches: Callable[[Sequence[ManifestEntry]], Sequence[bool]] | None = None
    may_match: Callable[[ManifestFile], bool] | None = None


@dataclass
class Filtered:
    """The manifests after a removal.

    Attributes:
        manifests: those to keep, rewritten ones in their place.
        removed: files that were removed, once each.
        duplicates: how many further entries of removed files there were.
        replaced: how many manifests were rewritten or left out.
    """

    manifests: list[ManifestFile] = field(default_factory=list)
    removed: list[DataFile] = field(default_factory=list)
    duplicates: int = 0
    replaced: int = 0


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
    """Removes files from manifests. A manifest that is rewritten once is not rewritten again by a replay.

    Raises:
        CommitConflictError: a file of `removal.files` is in none of the manifests.
    """
    wanted = {file_key(file) for file in removal.files}
    homes = {(file.spec_id, file.is_data) for file in removal.files}
    result, found = Filtered(), set[FileKey]()
    for manifest in manifests:
        rewritten = None
        if _may_hold(manifest, homes, removal):
            once = (snapshot_id, "without removed files", removal.key, manifest.manifest_path)
            rewritten = workspace.once(
                (*once, base.format_version, base.current_schema_id),
                partial(_rewrite, manifest, wanted, removal, base, snapshot_id, workspace),
            )
        if rewritten is None:
            result.manifests.append(manifest)
            continue
        result.replaced += 1
        result.manifests += rewritten.manifests
        for file in rewritten.removed:
            key = file_key(file)
            if key in found:
                result.duplicates += 1
            else:
                found.add(key)
                result.removed.append(file)
    missing = sorted(key[0] for key in wanted - found)
    if missing:
        raise CommitConflictError(
            f"Cannot {what} the table at {base.location}: {len(missing)} of the files to remove are not in it (any "
            f"more), the first is {missing[0]}. A concurrent commit removed them. Refresh the table and repeat the "
            "change."
        )
    return result


def _may_hold(manifest: ManifestFile, homes: set[tuple[int, bool]], removal: Removal) -> bool:
    if not manifest.has_live_files():
        return False
    if (manifest.partition_spec_id, manifest.content is ManifestContent.DATA) in homes:
        return True
    return removal.matches is not None and (removal.may_match is None or removal.may_match(manifest))


def _rewrite(
    manifest: ManifestFile,
    wanted: set[FileKey],
    removal: Removal,
    base: TableMetadata,
    snapshot_id: int,
    workspace: Workspace,
) -> _Rewritten | None:
    """The manifest with removed files marked as deleted; None if it holds none of them."""
    data = workspace.read(manifest.manifest_path)
    splice = None if removal.matches is not None else ManifestSplice.of(manifest, base, data)
    if splice is not None:
        spliced = splice.without({path for path, _ in wanted}, snapshot_id, workspace)
        return None if spliced is None else _Rewritten(*spliced)
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
