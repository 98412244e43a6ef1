"""From a change of content to a snapshot, as every operation that adds and removes files needs it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from hms_iceberg.errors import InvalidInputError
from hms_iceberg.expressions.tree import AlwaysFalse, BooleanExpression
from hms_iceberg.spec.manifests.manifest_values import (
    DataFile,
    DataFileContent,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
)
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.snapshots_and_refs import MAIN_BRANCH, Operation
from hms_iceberg.spec.table_properties import ISOLATION_LEVELS
from hms_iceberg.updates.machinery.files_to_remove import PathsToRemove
from hms_iceberg.updates.machinery.manifest_files import (
    check_specs,
    manifest_list_of,
    write_added,
)
from hms_iceberg.updates.machinery.manifest_filter import (
    Filtered,
    Removal,
    merge_manifests,
    oldest_data,
    remove_files,
)
from hms_iceberg.updates.machinery.new_snapshot import SnapshotDraft, SummaryBuilder, parent_on, write_snapshot
from hms_iceberg.updates.machinery.update import Workspace


@dataclass(frozen=True)
class ContentChange:
    """Files that an operation adds and removes."""

    snapshot_id: int  # of the snapshot that the change becomes
    what: str  # the change, to complete 'cannot … the table'
    # says what it did, given what was added and which data files were really removed
    operation: Callable[[Sequence[DataFile], Sequence[DataFile]], Operation]
    added: tuple[DataFile, ...] = ()  # data files and delete files to add
    removed: tuple[DataFile, ...] = ()  # data files and delete files to remove, which must be there
    paths: PathsToRemove | None = None  # finds data files to remove besides
    may_match: Callable[[ManifestFile], bool] | None = None  # manifests that may hold such files
    # delete files to remove besides those that lose their data file
    drops_deletes: Callable[[DataFile], bool] | None = None
    branch: str | None = MAIN_BRANCH  # the branch to move; None stages the snapshot
    properties: Mapping[str, str] = field(default_factory=dict)  # the caller's keys for the summary
    # given to added data files, if they take the place of older ones (compaction)
    data_sequence_number: int | None = None


def commit_content(base: TableMetadata, change: ContentChange, workspace: Workspace) -> TableMetadata:
    """The metadata with a snapshot that makes the change. Manifests are written once, and reused while they are in the
    base, so that a replay writes little more than a manifest list."""
    check_added(change.added, base)
    parent = parent_on(base, change.branch or MAIN_BRANCH)
    manifests = [manifest for manifest in manifest_list_of(parent, workspace) if manifest.has_live_files()]
    data = remove_files(
        [manifest for manifest in manifests if manifest.content is ManifestContent.DATA],
        Removal(
            key="data",
            files=[file for file in change.removed if file.is_data],
            paths=change.paths,
            may_match=change.may_match,
        ),
        base,
        change.snapshot_id,
        workspace,
        change.what,
    )
    new_data, new_deletes = _added_manifests(change, base, workspace)
    oldest = oldest_data([*data.manifests, *new_data], base)
    deletes = _without_deletes(base, change, data.removed, oldest, manifests, workspace)
    kept_data, merged_data = merge_manifests([*new_data, *data.manifests], base, change.snapshot_id, workspace)
    kept_deletes, merged = merge_manifests([*new_deletes, *deletes.manifests], base, change.snapshot_id, workspace)
    removed = [*data.removed, *deletes.removed]
    summary = SummaryBuilder(base).added(change.added).removed(removed)
    summary.removed_duplicates(data.duplicates + deletes.duplicates)
    draft = SnapshotDraft(
        snapshot_id=change.snapshot_id,
        operation=change.operation(change.added, data.removed),
        manifests=[*kept_data, *kept_deletes],
        summary=summary.build(change.properties),
        branch=change.branch,
        replaced_manifests=data.replaced + deletes.replaced + merged_data + merged,
    )
    return write_snapshot(base, draft, workspace)


def _without_deletes(
    base: TableMetadata,
    change: ContentChange,
    removed_data: Sequence[DataFile],
    oldest: int,
    manifests: Iterable[ManifestFile],
    workspace: Workspace,
) -> Filtered:
    """Manifests without deletes that go: those of the change, those that lose their data file, and, as in Apache
    Iceberg, those that are older than all data."""
    orphaned = frozenset(file.file_path for file in removed_data)
    drops = change.drops_deletes

    def is_outlived(number: int | None) -> bool:
        return number is not None and number < oldest

    def goes(entry: ManifestEntry) -> bool:
        if is_outlived(entry.sequence_number) or entry.data_file.only_data_file in orphaned:
            return True
        return drops is not None and drops(entry.data_file)

    return remove_files(
        [manifest for manifest in manifests if manifest.content is ManifestContent.DELETES],
        Removal(
            key=("deletes", orphaned, oldest),
            files=[file for file in change.removed if not file.is_data],
            matches=lambda entries: [goes(each) for each in entries],
            may_match=None if orphaned or drops is not None else (lambda each: is_outlived(each.min_sequence_number)),
        ),
        base,
        change.snapshot_id,
        workspace,
        change.what,
    )


def _added_manifests(
    change: ContentChange, base: TableMetadata, workspace: Workspace
) -> tuple[list[ManifestFile], list[ManifestFile]]:
    written = workspace.once(
        (change.snapshot_id, "added manifests", base.format_version),
        lambda: write_added(change.added, base, change.snapshot_id, workspace, change.data_sequence_number),
    )
    return (
        [manifest for manifest in written if manifest.content is ManifestContent.DATA],
        [manifest for manifest in written if manifest.content is ManifestContent.DELETES],
    )


def check_added(files: Sequence[DataFile], base: TableMetadata) -> None:
    """Refuses files that the table's specs or format version cannot have. Source: Iceberg specification, "Delete
    Formats": deletes need v2, deletion vectors v3, and position delete files must not be added from v3 on."""
    check_specs(files, base, base.location)
    vectors: set[str] = set()
    for file in files:
        if file.is_data:
            continue
        if base.format_version < 2:
            raise _refused(file, base, "has format version 1, which knows no deletes. Upgrade it (format-version 2)")
        if file.content is DataFileContent.EQUALITY_DELETES:
            if not file.equality_ids:
                raise _refused(file, base, "needs the field ids of the key of equality deletes, and the file has none")
            continue
        if file.is_deletion_vector and base.format_version < 3:
            raise _refused(
                file,
                base,
                "has format version 2, which knows no deletion vectors. Upgrade it, or write position delete files",
            )
        if not file.is_deletion_vector and base.format_version >= 3:
            raise _refused(
                file,
                base,
                "has format version 3, which takes deletion vectors instead of new position "
                "delete files. Write a deletion vector",
            )
        if file.is_deletion_vector:
            if file.referenced_data_file is None or file.content_offset is None or file.content_size_in_bytes is None:
                raise _refused(file, base, "needs the data file, offset and size of a deletion vector")
            if file.referenced_data_file in vectors:
                raise _refused(
                    file, base, f"would get two deletion vectors for {file.referenced_data_file}. Merge them"
                )
            vectors.add(file.referenced_data_file)


def _refused(file: DataFile, base: TableMetadata, why: str) -> InvalidInputError:
    kind = "deletion vector" if file.is_deletion_vector else file.content.name.lower().replace("_", " ")
    return InvalidInputError(f"Cannot add the {kind} {file.file_path}: the table at {base.location} {why}.")


class Isolation(str, Enum):
    """How much of what an operation read must still hold when it commits."""

    SERIALIZABLE = "serializable"
    """Nobody added or removed rows that it would have read."""
    SNAPSHOT = "snapshot"
    """Nobody deleted rows of the files that it replaces."""
    NONE = "none"
    """Only the files that it removes have to be there still."""


def isolation_of(properties: Mapping[str, str], operation: str) -> Isolation:
    """The level that a table sets for `delete`, `update` or `merge`."""
    return Isolation(ISOLATION_LEVELS[operation].of(properties))


def overwrite_operation(added: Sequence[DataFile], removed: Sequence[DataFile]) -> Operation:
    """An overwrite that only adds is an append, one that only removes a delete."""
    if added and not removed:
        return Operation.APPEND
    if removed and not added:
        return Operation.DELETE
    return Operation.OVERWRITE


def filter_operation(added: Sequence[DataFile], removed: Sequence[DataFile]) -> Operation:
    """The operation of an overwrite by a filter: overwrite if files were added, else delete, also if no row matched."""
    return Operation.OVERWRITE if added else Operation.DELETE


def overwriting(row_filter: BooleanExpression | None) -> Callable[[Sequence[DataFile], Sequence[DataFile]], Operation]:
    """The rule for the operation of an overwrite: by the filter if there is one, otherwise by the files."""
    return overwrite_operation if row_filter is None or isinstance(row_filter, AlwaysFalse) else filter_operation


def row_delta_operation(added: Sequence[DataFile], removed: Sequence[DataFile]) -> Operation:
    """A row delta that only adds data is an append, one that adds no data a delete."""
    adds_data = any(file.is_data for file in added)
    deletes = any(not file.is_data for file in added) or any(file.is_data for file in removed)
    if adds_data and not deletes:
        return Operation.APPEND
    if deletes and not adds_data:
        return Operation.DELETE
    return Operation.OVERWRITE


def always(operation: Operation) -> Callable[[Sequence[DataFile], Sequence[DataFile]], Operation]:
    """A rule that gives one operation whatever was added and removed."""
    return lambda added, removed: operation
