"""Building changes of whole files, for who writes files himself: engines, compaction, migration. Names as in Java."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from hms_iceberg.expressions.text.parser import parse
from hms_iceberg.expressions.tree import BooleanExpression
from hms_iceberg.spec.manifests.manifest_values import DataFile, ManifestFile
from hms_iceberg.spec.snapshots_and_refs import MAIN_BRANCH
from hms_iceberg.table.changes.pending import PendingChange, StartedChange
from hms_iceberg.updates.machinery.content import Isolation
from hms_iceberg.updates.machinery.update import Update
from hms_iceberg.updates.rewrite_manifests import RewriteManifests
from hms_iceberg.updates.rows.append import FastAppend, MergeAppend
from hms_iceberg.updates.rows.delete import DeleteFiles
from hms_iceberg.updates.rows.overwrite import Overwrite
from hms_iceberg.updates.rows.rewrite_files import RewriteFiles

Builder = TypeVar("Builder", bound="FileChange")


class FileChange(PendingChange):
    """A change that becomes one snapshot."""

    def __init__(self, started: StartedChange) -> None:
        super().__init__(started)
        self._added: list[DataFile] = []
        self._removed: list[DataFile] = []
        self._filter: BooleanExpression | None = None
        self._branch = MAIN_BRANCH
        self._summary: dict[str, str] = {}
        self._stage_only = False
        self._conflict_filter: BooleanExpression | None = None
        self._isolation = Isolation.NONE
        self._case_sensitive = True

    def to_branch(self: Builder, name: str) -> Builder:
        """Changes this branch instead of main."""
        self._branch = name
        return self

    def set(self: Builder, key: str, value: str) -> Builder:
        """Sets a key of the snapshot's summary."""
        self._summary[key] = value
        return self

    def stage_only(self: Builder) -> Builder:
        """Adds the snapshot without moving a branch; `cherrypick` publishes it."""
        self._stage_only = True
        return self

    def case_sensitive(self: Builder, case_sensitive: bool) -> Builder:
        """Whether filters name columns in their case."""
        self._case_sensitive = case_sensitive
        return self

    def _of_snapshot(self) -> dict[str, Any]:
        return {"branch": self._branch, "properties": dict(self._summary), "stage_only": self._stage_only}


class AppendFiles(FileChange):
    """Appends data files; manifests are merged if `merging`."""

    def __init__(self, started: StartedChange, merging: bool) -> None:
        super().__init__(started)
        self._merging = merging

    def append_file(self, file: DataFile) -> AppendFiles:
        """Adds a data file."""
        self._added.append(file)
        return self

    def append_data_file(self, data_file: DataFile) -> AppendFiles:
        """PyIceberg's name of `append_file`."""
        return self.append_file(data_file)

    def _updates(self) -> list[Update]:
        kind = MergeAppend if self._merging else FastAppend
        return [kind(tuple(self._added), **self._of_snapshot())]


class DeleteDataFiles(FileChange):
    """Removes data files: one by one, and all that a filter covers."""

    def delete_file(self, file: DataFile) -> DeleteDataFiles:
        """Removes a data file, which must be there when the change is committed."""
        self._removed.append(file)
        return self

    def delete_data_file(self, data_file: DataFile) -> DeleteDataFiles:
        """PyIceberg's name of `delete_file`."""
        return self.delete_file(data_file)

    def delete_by_predicate(self, predicate: BooleanExpression, case_sensitive: bool = True) -> None:
        """PyIceberg's name of `delete_from_row_filter`."""
        self.case_sensitive(case_sensitive).delete_from_row_filter(predicate)

    def delete_from_row_filter(self, row_filter: str | BooleanExpression) -> DeleteDataFiles:
        """Removes all files of which every row matches; one with some rows that match is refused."""
        self._filter = _expression(row_filter)
        return self

    def _updates(self) -> list[Update]:
        case_sensitive = self._case_sensitive
        return [DeleteFiles(tuple(self._removed), self._filter, case_sensitive=case_sensitive, **self._of_snapshot())]


class Validated(FileChange):
    """A change that may rely on what was read before it."""

    def conflict_detection_filter(self: Builder, row_filter: str | BooleanExpression) -> Builder:
        """The rows that the change has read; without it, all."""
        self._conflict_filter = _expression(row_filter)
        return self

    def isolation(self: Builder, level: Isolation | str) -> Builder:
        """The isolation level against concurrent commits: `serializable`, `snapshot`, or (the default) `none`."""
        self._isolation = Isolation(level)
        return self

    def _of_validation(self) -> dict[str, Any]:
        return {
            "conflict_filter": self._conflict_filter,
            "isolation": self._isolation,
            "case_sensitive": self._case_sensitive,
        }


class OverwriteFiles(Validated):
    """Removes data files, one by one or by a filter, and adds others."""

    def __init__(self, started: StartedChange) -> None:
        super().__init__(started)
        self._must_match = False

    def add_file(self, file: DataFile) -> OverwriteFiles:
        """Adds a data file."""
        self._added.append(file)
        return self

    def delete_file(self, file: DataFile) -> OverwriteFiles:
        """Removes a data file, which must be there when the change is committed."""
        self._removed.append(file)
        return self

    def append_data_file(self, data_file: DataFile) -> OverwriteFiles:
        """PyIceberg's name of `add_file`."""
        return self.add_file(data_file)

    def delete_data_file(self, data_file: DataFile) -> OverwriteFiles:
        """PyIceberg's name of `delete_file`."""
        return self.delete_file(data_file)

    def overwrite_by_row_filter(self, row_filter: str | BooleanExpression) -> OverwriteFiles:
        """Removes all files of which every row matches; one with some rows that match is refused."""
        self._filter = _expression(row_filter)
        return self

    def validate_added_files_match_overwrite_filter(self) -> OverwriteFiles:
        """Refuses added files with rows that do not match the filter."""
        self._must_match = True
        return self

    def _updates(self) -> list[Update]:
        return [
            Overwrite(
                added=tuple(self._added),
                removed=tuple(self._removed),
                row_filter=self._filter,
                added_must_match=self._must_match,
                **self._of_validation(),
                **self._of_snapshot(),
            )
        ]


class RewriteDataFiles(FileChange):
    """Replaces files by others with the same rows."""

    def __init__(self, started: StartedChange) -> None:
        super().__init__(started)
        self._sequence_number: int | None = None

    def delete_file(self, file: DataFile) -> RewriteDataFiles:
        """Removes a data file, delete file or deletion vector."""
        self._removed.append(file)
        return self

    def add_file(self, file: DataFile) -> RewriteDataFiles:
        """Adds a file that holds rows (or deletes) of the removed ones."""
        self._added.append(file)
        return self

    def data_sequence_number(self, number: int) -> RewriteDataFiles:
        """Gives added data files an older sequence number, so that equality deletes that come meanwhile apply."""
        self._sequence_number = number
        return self

    def _updates(self) -> list[Update]:
        options = self._of_snapshot()
        del options["stage_only"]
        return [
            RewriteFiles(
                tuple(self._removed), tuple(self._added), data_sequence_number=self._sequence_number, **options
            )
        ]


class RewriteManifestFiles(FileChange):
    """Writes manifests anew; files stay what they are."""

    def __init__(self, started: StartedChange) -> None:
        super().__init__(started)
        self._if: Callable[[ManifestFile], bool] | None = None
        self._by: Callable[[DataFile], Any] | None = None

    def rewrite_if(self, predicate: Callable[[ManifestFile], bool]) -> RewriteManifestFiles:
        """Rewrites only the manifests for which the predicate is true."""
        self._if = predicate
        return self

    def cluster_by(self, key: Callable[[DataFile], Any]) -> RewriteManifestFiles:
        """The order of files over the new manifests; by default that of their partitions."""
        self._by = key
        return self

    def _updates(self) -> list[Update]:
        return [RewriteManifests(self._if, self._by, branch=self._branch, properties=dict(self._summary))]


def _expression(row_filter: str | BooleanExpression) -> BooleanExpression:
    return parse(row_filter) if isinstance(row_filter, str) else row_filter
