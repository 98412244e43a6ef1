"""Writing manifests anew, so that planning reads fewer and prunes more: files stay what they are."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from hms_iceberg.spec.manifests.manifest_values import DataFile, ManifestContent, ManifestEntryStatus, ManifestFile
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.snapshots_and_refs import MAIN_BRANCH, Operation, new_snapshot_id
from hms_iceberg.updates.machinery.manifest_files import entries_of, manifest_list_of, write_entries
from hms_iceberg.updates.machinery.manifest_filter import cluster_manifests
from hms_iceberg.updates.machinery.new_snapshot import SnapshotDraft, parent_on, write_snapshot
from hms_iceberg.updates.machinery.update import FileReader, Update, Workspace


@dataclass(frozen=True)
class RewriteManifests(Update):
    """Reads manifests, sorts their files, and writes them into manifests of the target size. A concurrent append keeps
    its own manifest; a manifest that somebody else rewrote or filtered is rewritten anew."""

    rewrite_if: Callable[[ManifestFile], bool] | None = None  # which manifests; None for all
    # the order of files over the new manifests; None for that of their partitions
    sort_key: Callable[[DataFile], Any] | None = None
    content: ManifestContent | None = ManifestContent.DATA  # data or delete manifests; None for both
    branch: str = MAIN_BRANCH
    properties: Mapping[str, str] = field(default_factory=dict)
    snapshot_id: int = field(default_factory=new_snapshot_id)
    cluster_by: tuple[str, ...] = ()  # names of partition fields by which files are sorted first; not with `sort_key`

    def validate(self, start: TableMetadata, base: TableMetadata, reader: FileReader) -> None:
        """Accepts every history: no file is added or removed."""

    def apply(self, base: TableMetadata, workspace: Workspace) -> TableMetadata:
        """The metadata with a snapshot of the same files; the same object if no manifest is to be rewritten."""
        manifests = [
            manifest
            for manifest in manifest_list_of(parent_on(base, self.branch), workspace)
            if manifest.has_live_files()
        ]
        chosen = tuple(manifest for manifest in manifests if self._is_chosen(manifest))
        if not chosen:
            return base
        key = (self.snapshot_id, "rewritten", base.format_version, tuple(manifest.manifest_path for manifest in chosen))
        written, entries = workspace.once(key, lambda: self._write(chosen, base, workspace))
        kept = [manifest for manifest in manifests if manifest not in chosen]
        draft = SnapshotDraft(
            snapshot_id=self.snapshot_id,
            operation=Operation.REPLACE,
            manifests=[*written, *kept],
            summary={**self.properties, "entries-processed": str(entries), "changed-partition-count": "0"},
            branch=self.branch,
            replaced_manifests=len(chosen),
        )
        return write_snapshot(base, draft, workspace)

    def _is_chosen(self, manifest: ManifestFile) -> bool:
        if self.content is not None and manifest.content is not self.content:
            return False
        return self.rewrite_if is None or self.rewrite_if(manifest)

    def _write(
        self, manifests: tuple[ManifestFile, ...], base: TableMetadata, workspace: Workspace
    ) -> tuple[tuple[ManifestFile, ...], int]:
        """The new manifests, and how many files they hold."""
        groups: dict[tuple[int, ManifestContent], list[ManifestFile]] = {}
        for manifest in manifests:
            groups.setdefault((manifest.partition_spec_id, manifest.content), []).append(manifest)
        written: list[ManifestFile] = []
        files = 0
        for (spec_id, _), group in groups.items():
            names = [field.name for field in base.spec_by_id(spec_id).fields]
            cluster_by = [name for name in self.cluster_by if name in names]
            done = None
            if self.sort_key is None:
                done = cluster_manifests(group, cluster_by, base, self.snapshot_id, workspace)
            new, count = done or self._encoded(group, [names.index(each) for each in cluster_by], base, workspace)
            written += new
            files += count
        return tuple(written), files

    def _encoded(
        self, manifests: list[ManifestFile], first: list[int], base: TableMetadata, workspace: Workspace
    ) -> tuple[tuple[ManifestFile, ...], int]:
        entries = [
            replace(entry, status=ManifestEntryStatus.EXISTING)
            for manifest in manifests
            for entry in entries_of(manifest, workspace)
            if entry.is_live
        ]
        sort_key = self.sort_key or partial(_partition_key, first)
        entries.sort(key=lambda entry: sort_key(entry.data_file))
        return write_entries(entries, base, self.snapshot_id, workspace), len(entries)


def _partition_key(first: list[int], file: DataFile) -> tuple[Any, ...]:
    """Sorts files by partition, by some fields first, nulls first; values of one partition field are of one type."""
    values = [(value is not None, "" if value is None else _sortable(value)) for value in file.partition]
    return (*(values[position] for position in first), *values)


def _sortable(value: Any) -> Any:
    """A key to sort values by, with NaN above every other number."""
    return (math.isnan(value), 0.0 if math.isnan(value) else value) if isinstance(value, float) else value
