"""Replacing the partitions that new data falls into: the dynamic overwrite."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hms_iceberg.errors import InvalidInputError
from hms_iceberg.expressions.tree import AlwaysTrue
from hms_iceberg.spec.manifests.manifest_values import DataFile, PartitionKey
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.snapshots_and_refs import MAIN_BRANCH, Operation, new_snapshot_id
from hms_iceberg.updates.machinery.conflicts import Concurrent
from hms_iceberg.updates.machinery.content import ContentChange, Isolation, always, commit_content, parent_on
from hms_iceberg.updates.machinery.update import FileReader, Update, Workspace
from hms_iceberg.updates.rows.append import check_data


@dataclass(frozen=True)
class ReplacePartitions(Update):
    """Removes everything in the partitions of `files` (of their spec), and adds the files.

    A file of a spec without fields replaces all data of the table, that of other specs too, as in Apache Iceberg
    (`BaseReplacePartitions`).

    Attributes:
        files: data files, already written.
        isolation: `SERIALIZABLE` refuses data that was added to one of the partitions meanwhile, `SNAPSHOT` deletes;
            without isolation whatever is there when it is committed is replaced.
        append_only: refuses to replace a partition that is not empty.
    """

    files: tuple[DataFile, ...]
    isolation: Isolation = Isolation.NONE
    append_only: bool = False
    branch: str = MAIN_BRANCH
    properties: Mapping[str, str] = field(default_factory=dict)
    stage_only: bool = False
    snapshot_id: int = field(default_factory=new_snapshot_id)

    @property
    def _partitions(self) -> frozenset[PartitionKey]:
        return frozenset(file.partition_key for file in self.files)

    def _replaces_all(self, base: TableMetadata) -> bool:
        return any(not base.spec_by_id(spec_id).fields for spec_id, _ in self._partitions)

    @property
    def new_files(self) -> tuple[DataFile, ...]:
        """The files that the overwrite adds."""
        return self.files

    def validate(self, start: TableMetadata, base: TableMetadata, reader: FileReader) -> None:
        """Refuses concurrent commits that the isolation level does not allow."""
        if self.isolation is Isolation.NONE:
            return
        head = parent_on(start, self.branch)
        concurrent = Concurrent.between(
            head.snapshot_id if head else None, base, self.branch, reader, "replace partitions of"
        )
        if self._replaces_all(base):
            if self.isolation is Isolation.SERIALIZABLE:
                concurrent.check_no_new_data(AlwaysTrue())
            concurrent.check_no_removed_data(AlwaysTrue())
            concurrent.check_no_new_deletes(AlwaysTrue())
            return
        if self.isolation is Isolation.SERIALIZABLE:
            concurrent.check_no_new_data_in(self._partitions)
        concurrent.check_no_removed_data_in(self._partitions)
        concurrent.check_no_new_deletes_in(self._partitions)

    def apply(self, base: TableMetadata, workspace: Workspace) -> TableMetadata:
        """The metadata with a snapshot in which the files take the place of their partitions.

        Raises:
            InvalidInputError: a partition is not empty, and `append_only` is set.
        """
        check_data(self.files, base)
        partitions = self._partitions
        everything = self._replaces_all(base)
        spec_ids = {spec_id for spec_id, _ in partitions}

        def replaced(file: DataFile) -> bool:
            if not everything and file.partition_key not in partitions:
                return False
            if self.append_only:
                raise InvalidInputError(
                    f"Cannot append to the table at {base.location}: partition {file.partition} has data already "
                    f"({file.file_path}). Replace it, or append elsewhere."
                )
            return True

        change = ContentChange(
            snapshot_id=self.snapshot_id,
            what="replace partitions of",
            operation=always(Operation.OVERWRITE),
            added=self.files,
            matches=lambda entries: [replaced(entry.data_file) for entry in entries],
            may_match=lambda manifest: everything or manifest.partition_spec_id in spec_ids,
            drops_deletes=replaced,
            branch=None if self.stage_only else self.branch,
            properties={"replace-partitions": "true", **self.properties},
        )
        return commit_content(base, change, workspace)
