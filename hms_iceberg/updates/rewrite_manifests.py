"""Writing manifests anew, so that planning reads fewer and prunes more: files stay what they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hms_iceberg.spec.manifests.manifest import DataFile, ManifestContent, ManifestEntryStatus, ManifestFile
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.snapshots import MAIN_BRANCH, Operation, new_snapshot_id
from hms_iceberg.updates.machinery.manifest_files import entries_of, manifest_list_of, write_entries
from hms_iceberg.updates.machinery.snapshot_writer import SnapshotDraft, parent_on, write_snapshot
from hms_iceberg.updates.machinery.update import FileReader, Update, Workspace


@dataclass(frozen=True)
class RewriteManifests(Update):
    """Reads manifests, sorts their files, and writes them into manifests of the target size.

    A concurrent append keeps its own manifest; a manifest that somebody else rewrote or filtered is rewritten anew.

    Attributes:
        rewrite_if: which manifests; None for all.
        sort_key: the order of files over the new manifests; None for that of their partitions.
        content: data or delete manifests; None for both.
    """

    rewrite_if: Callable[[ManifestFile], bool] | None = None
    sort_key: Callable[[DataFile], Any] | None = None
    content: ManifestContent | None = ManifestContent.DATA
    branch: str = MAIN_BRANCH
    properties: Mapping[str, str] = field(default_factory=dict)
    snapshot_id: int = field(default_factory=new_snapshot_id)

    def validate(self, start: TableMetadata, base: TableMetadata, reader: FileReader) -> None:
        """Nothing: no file is added or removed."""

    def apply(self, base: TableMetadata, workspace: Workspace) -> TableMetadata:
        """The metadata with a snapshot of the same files; the same object where no manifest is to be rewritten."""
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
        entries = [
            replace(entry, status=ManifestEntryStatus.EXISTING)
            for manifest in manifests
            for entry in entries_of(manifest, workspace)
            if entry.is_live
        ]
        sort_key = self.sort_key or partition_key
        entries.sort(key=lambda entry: sort_key(entry.data_file))
        return write_entries(entries, base, self.snapshot_id, workspace), len(entries)


def partition_key(file: DataFile) -> tuple[Any, ...]:
    """Sorts files by spec and partition, nulls first; values of one partition field are of one type."""
    return file.spec_id, tuple(
        (value is not None, "" if value is None else _sortable(value)) for value in file.partition
    )


def _sortable(value: Any) -> Any:
    return str(value) if isinstance(value, float) and value != value else value
