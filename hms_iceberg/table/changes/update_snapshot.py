"""Which change of whole files a snapshot is to be, by PyIceberg's names."""

from __future__ import annotations

from hms_iceberg.table.changes.file_changes import AppendFiles, Builder, DeleteDataFiles, OverwriteFiles
from hms_iceberg.table.changes.pending import StartedChange
from hms_iceberg.table.changes.row_change import ChangeOptions


class UpdateSnapshot:
    """Begins one of four changes; each collects files and commits at the end of a `with` block.

    >>> with table.transaction() as transaction, transaction.update_snapshot().fast_append() as append:
    ...     append.append_data_file(file)
    """

    def __init__(self, started: StartedChange, options: ChangeOptions) -> None:
        self._started = started
        self._options = options

    def fast_append(self) -> AppendFiles:
        """An append that rewrites no manifest."""
        return self._with_options(AppendFiles(self._started, merging=False))

    def merge_append(self) -> AppendFiles:
        """An append by which small manifests are merged."""
        return self._with_options(AppendFiles(self._started, merging=True))

    def overwrite(self) -> OverwriteFiles:
        """A replacement of files by others."""
        return self._with_options(OverwriteFiles(self._started))

    def delete(self) -> DeleteDataFiles:
        """A removal of whole files."""
        return self._with_options(DeleteDataFiles(self._started))

    def _with_options(self, change: Builder) -> Builder:
        change.to_branch(self._options.branch)
        for key, value in self._options.snapshot_properties.items():
            change.set(key, value)
        return change.stage_only() if self._options.stage_only else change
