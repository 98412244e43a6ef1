"""Methods of tables and transactions that begin a change other than of rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, TypeVar

from hms_iceberg.spec.json_model import text_properties
from hms_iceberg.spec.metadata.format_rules import FORMAT_VERSION_PROPERTY
from hms_iceberg.table.changes.file_changes import (
    AppendFiles,
    DeleteDataFiles,
    OverwriteFiles,
    RewriteDataFiles,
    RewriteManifestFiles,
)
from hms_iceberg.table.changes.manage_snapshots import ExpireSnapshotsBuilder, ManageSnapshots, UpdateStatistics
from hms_iceberg.table.changes.pending import StartedChange
from hms_iceberg.table.changes.row_delta_builder import NewRowDelta
from hms_iceberg.table.changes.update_schema import UpdateSchema
from hms_iceberg.table.changes.update_spec import UpdateSortOrder, UpdateSpec
from hms_iceberg.updates.machinery.update import Update
from hms_iceberg.updates.table_settings import SetLocation, SetProperties

Self = TypeVar("Self", bound="ChangeMethods")


class ChangeMethods(ABC):
    """Methods that begin a change.

    On a transaction the change is part of it. On a table it is a transaction of its own, which `commit()` of the
    change, or the end of a `with` block, commits.
    """

    @abstractmethod
    def _begin(self) -> StartedChange:
        """The transaction that a new change becomes part of."""

    def add(self: Self, update: Update) -> Self:
        """Adds any pending update, such as those of `hms_iceberg.updates`."""
        started = self._begin()
        started.transaction.add(update)
        started.end()
        return self

    # ---------------------------------------------------------------------------------------- definition

    def update_schema(self, allow_incompatible_changes: bool = False, case_sensitive: bool = True) -> UpdateSchema:
        """Begins a change of the schema.

        Args:
            allow_incompatible_changes: whether changes are possible that break readers, such as a new
                required column.
            case_sensitive: whether names of columns must match in case.

        Returns:
            the change, to which steps are added; it is made when its `with` block ends, or by `commit`.
        """
        return UpdateSchema(self._begin(), allow_incompatible_changes, case_sensitive)

    def update_spec(self, case_sensitive: bool = True) -> UpdateSpec:
        """Begins a change of the partition spec."""
        return UpdateSpec(self._begin(), case_sensitive)

    def update_sort_order(self, case_sensitive: bool = True) -> UpdateSortOrder:
        """Begins a new sort order."""
        return UpdateSortOrder(self._begin(), case_sensitive)

    def set_properties(self: Self, properties: Mapping[str, Any] | None = None, **more: Any) -> Self:
        """Sets table properties; `format-version` upgrades the table's format."""
        given = text_properties(properties or {}, "Table properties") | text_properties(more, "Table properties")
        return self.add(SetProperties(updates=given))

    def remove_properties(self: Self, *names: str) -> Self:
        """Removes table properties; absent ones are ignored."""
        return self.add(SetProperties(removals=frozenset(names)))

    def upgrade_table_version(self: Self, format_version: int) -> Self:
        """Upgrades the table's format; files and snapshots stay as they are. There is no way back.

        Raises:
            InvalidInputError: the version is below the table's.
        """
        return self.set_properties({FORMAT_VERSION_PROPERTY: format_version})

    def update_location(self: Self, location: str) -> Self:
        """Makes new files go to another base location; files that exist stay where they are."""
        return self.add(SetLocation(location))

    # ----------------------------------------------------------------------------------------- snapshots

    def manage_snapshots(self) -> ManageSnapshots:
        """Begins changes of branches, tags and the current snapshot."""
        return ManageSnapshots(self._begin())

    def expire_snapshots(self) -> ExpireSnapshotsBuilder:
        """Begins an expiry of snapshots. Files stay.

        `hms_iceberg.maintenance.expire_with_files` deletes those that no snapshot needs any more.
        """
        return ExpireSnapshotsBuilder(self._begin())

    def update_statistics(self) -> UpdateStatistics:
        """Begins changes of the statistics files of snapshots."""
        return UpdateStatistics(self._begin())

    # --------------------------------------------------------------------------------------------- files

    def new_append(self) -> AppendFiles:
        """Begins an append of data files, by which small manifests are merged."""
        return AppendFiles(self._begin(), merging=True)

    def new_fast_append(self) -> AppendFiles:
        """Begins an append of data files that rewrites no manifest."""
        return AppendFiles(self._begin(), merging=False)

    def new_delete(self) -> DeleteDataFiles:
        """Begins a removal of whole data files."""
        return DeleteDataFiles(self._begin())

    def new_overwrite(self) -> OverwriteFiles:
        """Begins a replacement of data files."""
        return OverwriteFiles(self._begin())

    def rewrite_files(self) -> RewriteDataFiles:
        """Begins a replacement of files by others with the same rows."""
        return RewriteDataFiles(self._begin())

    def rewrite_manifests(self) -> RewriteManifestFiles:
        """Begins a rewriting of manifests."""
        return RewriteManifestFiles(self._begin())

    def new_row_delta(self) -> NewRowDelta:
        """Begins a change that adds rows, and deletes rows by position or by key, in one snapshot."""
        return NewRowDelta(self._begin())
