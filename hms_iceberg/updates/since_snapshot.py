"""A change that relies on what a table held at a given snapshot, rather than when its transaction began."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hms_iceberg.errors import InvalidInputError
from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.updates.machinery.update import FileReader, Update, Workspace


@dataclass(frozen=True)
class SinceSnapshot(Update):
    """Validates another update against everything that was committed after a snapshot.

    Attributes:
        update: the change, on main.
        snapshot_id: the snapshot.
    """

    update: Update
    snapshot_id: int

    @property
    def new_files(self) -> tuple[DataFile, ...]:
        """The data files that the wrapped update adds."""
        return self.update.new_files

    def validate(self, start: TableMetadata, base: TableMetadata, reader: FileReader) -> None:
        """Nothing more than `apply`, which validates each time."""

    def apply(self, base: TableMetadata, workspace: Workspace) -> TableMetadata:
        """The change, if nothing since the snapshot is against it.

        Raises:
            InvalidInputError: the table has no such snapshot.
            CommitConflictError: something is.
        """
        if base.snapshot_by_id(self.snapshot_id) is None:
            raise InvalidInputError(
                f"Cannot validate a change of the table at {base.location} from snapshot {self.snapshot_id}: it has no "
                "such snapshot."
            )
        branch = getattr(self.update, "branch", "main")
        refs = {
            name: replace(ref, snapshot_id=self.snapshot_id) if name == branch else ref
            for name, ref in base.refs.items()
        }
        start = replace(base, refs=refs, current_snapshot_id=self.snapshot_id)
        self.update.validate(start, base, workspace)
        return self.update.apply(base, workspace)
