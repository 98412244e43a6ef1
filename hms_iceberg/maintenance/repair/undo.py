"""Taking a repair back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hms_iceberg.errors import CommitConflictError, CorruptMetadataError, InvalidInputError, MissingFileError
from hms_iceberg.maintenance.repair.repair_journal import metadata_before, repair_that_stands
from hms_iceberg.metastore import Identifier
from hms_iceberg.transaction.transaction import table_commit
from hms_iceberg.transaction.workspace import read_version

if TYPE_CHECKING:
    from hms_iceberg.catalog import Catalog


@dataclass(frozen=True)
class UndoneRepair:
    """A repair that is taken back. `str()` tells it.

    Attributes:
        identifier: the table.
        journal: location of the repair's journal.
        metadata_location: the metadata file that the table goes back to.
    """

    identifier: Identifier
    journal: str
    metadata_location: str

    def __str__(self) -> str:
        name = ".".join(self.identifier)
        return f"{name}: back to {self.metadata_location}, as before the repair of the journal {self.journal}"


def undo_repair(catalog: Catalog, identifier: Identifier, *, dry_run: bool = True) -> UndoneRepair:
    """Lets the metastore name the metadata file again that it named before the table's last repair.

    A repair deletes nothing, so that all that this file names is as it was, damage included.

    Args:
        catalog: the catalog of the table.
        identifier: the table's name.
        dry_run: only tell.

    Raises:
        NoSuchTableError: no such Iceberg table.
        InvalidInputError: the last change of the table is no repair, or the metadata file of before cannot be read.
        CommitConflictError: the table was changed meanwhile; nothing was done.
    """
    name = ".".join(identifier)
    pointer, storage = catalog.metastore.load(identifier), catalog.storage
    current = read_version(pointer.metadata_location, storage)
    done = repair_that_stands(current, storage)
    if done is None:
        raise InvalidInputError(
            f"Cannot take back a repair of table {name}: its last change is none, or others changed the table while it "
            f"was repaired. To go back further, look at `hms-iceberg history {name}` and use `hms-iceberg rollback`."
        )
    try:
        before = metadata_before(done, storage)
    except (MissingFileError, CorruptMetadataError) as error:
        raise InvalidInputError(
            f"Cannot take back the repair of table {name}: the metadata file of before is gone or damaged. Restore it "
            f"first. {error}"
        ) from error
    undone = UndoneRepair(identifier, done.journal, done.before)
    if dry_run:
        return undone
    commit = table_commit(identifier, catalog.metastore, storage)

    def undo() -> None:
        with catalog.metastore.lease(identifier, before.metadata.properties) as lease:
            lease.acquire()
            if lease.load().metadata_location != pointer.metadata_location:
                raise CommitConflictError(
                    f"Cannot take back the repair of table {name}: the table was changed meanwhile."
                )
            if not storage.exists(before.location):  # commits may delete old versions
                commit.workspace.create(before.location, storage.read(done.copy))
            commit.swap(lease, current, before)

    commit.run(undo)
    return undone
