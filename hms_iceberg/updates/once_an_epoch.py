"""A change that a stream makes once: its epoch comes again after a restart, and may have been committed before."""

from __future__ import annotations

from dataclasses import dataclass

from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.updates.machinery.content import parent_on
from hms_iceberg.updates.machinery.update import FileReader, Update, Workspace

_QUERY_ID, _EPOCH = "spark.sql.streaming.queryId", "spark.sql.streaming.epochId"


@dataclass(frozen=True)
class Epoch:
    """An epoch of a stream, as the snapshots of its commits name it.

    Attributes:
        query_id: of the stream, the same after a restart.
        number: its own.
        branch: what the stream writes to.
    """

    query_id: str
    number: int
    branch: str

    @property
    def properties(self) -> dict[str, str]:
        """The epoch as entries of the snapshot's summary."""
        return {_QUERY_ID: self.query_id, _EPOCH: str(self.number)}

    def is_in(self, metadata: TableMetadata) -> bool:
        """Whether the stream's last commit in the branch's history is this epoch, or one after it."""
        head = parent_on(metadata, self.branch)
        for snapshot in metadata.ancestors_of(head.snapshot_id if head else None):
            summary = snapshot.summary
            if summary.get(_QUERY_ID) == self.query_id and _EPOCH in summary:
                return self.number <= int(summary[_EPOCH])
        return False


@dataclass(frozen=True)
class OnceAnEpoch(Update):
    """Another update, unless the table has its epoch: each attempt looks, since two commits of one epoch may race.

    Attributes:
        update: the change.
        epoch: of the change.
    """

    update: Update
    epoch: Epoch

    @property
    def new_files(self) -> tuple[DataFile, ...]:
        """The data files that the wrapped update adds."""
        return self.update.new_files

    def validate(self, start: TableMetadata, base: TableMetadata, reader: FileReader) -> None:
        """Validates the wrapped change, unless its epoch is committed already."""
        if not self.epoch.is_in(base):
            self.update.validate(start, base, reader)

    def apply(self, base: TableMetadata, workspace: Workspace) -> TableMetadata:
        """The change; of an epoch that is there, nothing, and its files are not needed."""
        if not self.epoch.is_in(base):
            return self.update.apply(base, workspace)
        for file in self.new_files:
            workspace.release(file.file_path)
        return base
