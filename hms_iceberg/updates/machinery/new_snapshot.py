"""A new snapshot: its manifest list, its place on a branch, and what its summary counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce

from hms_iceberg.encryption.encrypted_tables import encrypted_list, list_bytes
from hms_iceberg.errors import InvalidInputError
from hms_iceberg.spec.json_model import text_properties
from hms_iceberg.spec.manifests.manifest_values import DataFile, DataFileContent, ManifestFile, PartitionKey
from hms_iceberg.spec.metadata.metadata_snapshots import add_encryption_key, add_snapshot
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.snapshots_and_refs import MAIN_BRANCH, Operation, Snapshot, Summary
from hms_iceberg.spec.table_properties import SUMMARY_PARTITION_LIMIT
from hms_iceberg.updates.machinery.manifest_files import (
    ListFacts,
    extend_manifest_list,
    manifest_list_of,
    metadata_file,
)
from hms_iceberg.updates.machinery.update import Workspace

ENGINE_NAME = "hms_iceberg"


def parent_on(base: TableMetadata, branch: str) -> Snapshot | None:
    """The snapshot that the next one on `branch` follows: the branch's head, or main's if the branch is new."""
    ref = base.refs.get(branch)
    if ref is None:
        return base.current_snapshot()
    if not ref.is_branch:
        raise InvalidInputError(
            f"Cannot write to {branch!r} of the table at {base.location}: it is a tag, and tags do not move. "
            "Write to a branch."
        )
    return base.snapshot_by_id(ref.snapshot_id)


@dataclass(frozen=True)
class SnapshotDraft:
    """A snapshot as an operation has decided it, before the base gives it a number and a parent."""

    snapshot_id: int  # drawn once for the operation
    operation: Operation  # what it did
    # the content of the manifest list, new manifests first; without the parent's if `keeps_parent`
    manifests: Sequence[ManifestFile]
    summary: Mapping[str, str] = field(default_factory=dict)  # changes, without totals
    branch: str | None = MAIN_BRANCH  # the branch to move; None stages the snapshot without moving any
    replaced_manifests: int = 0  # how many manifests of the parent are not in the list any more
    keeps_parent: bool = False  # the list is `manifests` and all manifests of the parent


def write_snapshot(base: TableMetadata, draft: SnapshotDraft, workspace: Workspace) -> TableMetadata:
    """Writes the manifest list and returns the metadata with the snapshot added, its branch moved to it."""
    parent = parent_on(base, draft.branch or MAIN_BRANCH)
    sequence_number = base.last_sequence_number + 1 if base.format_version > 1 else 0
    attempt = workspace.next_number("manifest list") + 1
    location = metadata_file(base, f"snap-{draft.snapshot_id}-{attempt}-{workspace.commit_id}.avro")
    first_row_id = (base.next_row_id or 0) if base.format_version >= 3 else None
    facts = ListFacts(
        format_version=base.format_version,
        snapshot_id=draft.snapshot_id,
        parent_snapshot_id=parent.snapshot_id if parent else None,
        sequence_number=sequence_number,
        next_row_id=first_row_id,
    )
    if draft.keeps_parent and parent is not None and parent.manifest_list is not None:
        old = list_bytes(parent, workspace)
        data, next_row_id, kept = extend_manifest_list(old, parent.manifest_list, draft.manifests, facts)
    else:
        manifests = draft.manifests
        if draft.keeps_parent:
            manifests = [*manifests, *manifest_list_of(parent, workspace)]
        data, next_row_id = facts.encode(manifests)
        kept = sum(1 for manifest in manifests if manifest.added_snapshot_id != draft.snapshot_id)
    stored, keys = encrypted_list(data, base.encryption_keys, base.properties, workspace, workspace.now_ms())
    workspace.create(location, stored)
    created = sum(1 for manifest in draft.manifests if manifest.added_snapshot_id == draft.snapshot_id)
    summary = {
        "operation": str(draft.operation),
        "engine-name": ENGINE_NAME,
        **with_totals(draft.summary, None if parent is None else parent.summary),
        "manifests-created": str(created),
        "manifests-kept": str(kept),
        "manifests-replaced": str(draft.replaced_manifests),
    }
    newest = max((snapshot.timestamp_ms for snapshot in base.snapshots), default=0)
    snapshot = Snapshot(
        snapshot_id=draft.snapshot_id,
        parent_snapshot_id=parent.snapshot_id if parent else None,
        sequence_number=sequence_number,
        timestamp_ms=max(workspace.now_ms(), newest, base.last_updated_ms),
        manifest_list=location,
        summary=Summary.of(summary),
        schema_id=base.current_schema_id,
        first_row_id=first_row_id,
        added_rows=None if first_row_id is None else (next_row_id or 0) - first_row_id,
        key_id=keys[0].key_id if keys else None,
        keys=keys,
    )
    return add_snapshot(reduce(add_encryption_key, reversed(keys), base), snapshot, branch=draft.branch)


# --------------------------------------------------------------------------------------------------- the summary


_TOTALS = (
    ("total-records", "added-records", "deleted-records"),
    ("total-files-size", "added-files-size", "removed-files-size"),
    ("total-data-files", "added-data-files", "deleted-data-files"),
    ("total-delete-files", "added-delete-files", "removed-delete-files"),
    ("total-position-deletes", "added-position-deletes", "removed-position-deletes"),
    ("total-equality-deletes", "added-equality-deletes", "removed-equality-deletes"),
)


@dataclass
class _Counts:
    """Counters by their key in the summary; only those above zero are written."""

    values: dict[str, int] = field(default_factory=dict)

    def add(self, key: str, amount: int = 1) -> None:
        self.values[key] = self.values.get(key, 0) + amount

    def count(self, file: DataFile, added: bool) -> None:
        change, change_data = ("added", "added") if added else ("removed", "deleted")
        size = file.content_size_in_bytes if file.is_deletion_vector else file.file_size_in_bytes
        self.add(f"{change}-files-size", size or 0)
        if file.content is DataFileContent.DATA:
            self.add(f"{change_data}-data-files")
            self.add(f"{change_data}-records", file.record_count)
            return
        self.add(f"{change}-delete-files")
        if file.content is DataFileContent.EQUALITY_DELETES:
            self.add(f"{change}-equality-delete-files")
            self.add(f"{change}-equality-deletes", file.record_count)
        else:
            self.add(f"{change}-dvs" if file.is_deletion_vector else f"{change}-position-delete-files")
            self.add(f"{change}-position-deletes", file.record_count)

    def as_text(self) -> dict[str, str]:
        return {key: str(value) for key, value in self.values.items() if value > 0}


class SummaryBuilder:
    """Counts the files that a snapshot adds and removes, table-wide and by partition."""

    def __init__(self, metadata: TableMetadata) -> None:
        self._metadata = metadata
        self._counts = _Counts()
        self._partitions: dict[PartitionKey, tuple[DataFile, _Counts]] = {}
        self._duplicates = 0

    def added(self, files: Iterable[DataFile]) -> SummaryBuilder:
        """Counts files that the snapshot adds, of any content."""
        return self._count(files, added=True)

    def removed(self, files: Iterable[DataFile]) -> SummaryBuilder:
        """Counts files that the snapshot removes, of any content."""
        return self._count(files, added=False)

    def removed_duplicates(self, count: int) -> SummaryBuilder:
        """Counts further entries of files that were removed already."""
        self._duplicates += count
        return self

    def _count(self, files: Iterable[DataFile], added: bool) -> SummaryBuilder:
        for file in files:
            self._counts.count(file, added)
            _, counts = self._partitions.setdefault(file.partition_key, (file, _Counts()))
            counts.count(file, added)
        return self

    def build(self, properties: Mapping[str, str]) -> dict[str, str]:
        """The changes' part of the summary; `properties` are the caller's own keys."""
        summary = {**text_properties(properties, "Snapshot properties"), **self._counts.as_text()}
        if self._duplicates:
            summary["deleted-duplicate-files"] = str(self._duplicates)
        summary["changed-partition-count"] = str(len(self._partitions))
        limit = SUMMARY_PARTITION_LIMIT.of(self._metadata.properties)
        if self._partitions and len(self._partitions) <= limit:
            summary["partition-summaries-included"] = "true"
            summary.update(self._partition_summaries())
        return summary

    def _partition_summaries(self) -> dict[str, str]:
        summaries: dict[str, _Counts] = {}
        for file, counts in self._partitions.values():
            spec = self._metadata.spec_by_id(file.spec_id)
            path = spec.partition_to_path(file.partition, self._metadata.schema())
            merged = summaries.setdefault(path, _Counts())
            for key, amount in counts.values.items():
                merged.add(key, amount)
        return {
            f"partitions.{path}": ",".join(f"{key}={value}" for key, value in counts.as_text().items())
            for path, counts in summaries.items()
            if path
        }


def with_totals(summary: Mapping[str, str], parent: Mapping[str, str] | None) -> dict[str, str]:
    """The summary with `total-*` counts, carried on from the parent's; they start at zero without a parent. A total
    that the parent does not have, or that would become negative, is left out rather than guessed."""
    totals = {}
    for total, added, removed in _TOTALS:
        before = "0" if parent is None else parent.get(total)
        if before is None:
            continue
        try:
            after = int(before) + int(summary.get(added, 0)) - int(summary.get(removed, 0))
        except ValueError:
            continue
        if after >= 0:
            totals[total] = str(after)
    return {**summary, **totals}
