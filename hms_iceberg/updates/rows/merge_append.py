"""Appending files, with small manifests merged into larger ones."""

from __future__ import annotations

from dataclasses import dataclass

from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.snapshots_and_refs import Operation
from hms_iceberg.updates.machinery.content import ContentChange, commit_content
from hms_iceberg.updates.machinery.operations import always
from hms_iceberg.updates.machinery.update import Workspace
from hms_iceberg.updates.rows.append import FastAppend, check_data


@dataclass(frozen=True)
class MergeAppend(FastAppend):
    """Adds data files, and merges manifests by the table's `commit.manifest.*` properties. Always replays."""

    def apply(self, base: TableMetadata, workspace: Workspace) -> TableMetadata:
        """The metadata with a snapshot that appends the files."""
        check_data(self.files, base)
        change = ContentChange(
            snapshot_id=self.snapshot_id,
            what="append to",
            operation=always(Operation.APPEND),
            added=self.files,
            branch=None if self.stage_only else self.branch,
            properties=self.properties,
        )
        return commit_content(base, change, workspace)
