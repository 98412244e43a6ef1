"""Carrying out a repair, and undoing it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hms_iceberg.errors import CommitConflictError, CorruptMetadataError, InvalidInputError, MissingFileError
from hms_iceberg.maintenance.repair.repair_journal import (
    DoneRepair,
    metadata_before,
    repair_that_stands,
    state_of,
    write_done,
    write_journal,
)
from hms_iceberg.maintenance.repair.repair_plan import RepairPlan, checked_base, plan_repair
from hms_iceberg.metastore import CatalogMetastore, Identifier, MetadataVersion, table_identifier
from hms_iceberg.spec.metadata.table_metadata import changed
from hms_iceberg.storage import Storage
from hms_iceberg.table import Table
from hms_iceberg.table.file_system_catalog import FileSystemCatalog
from hms_iceberg.table.needed_files.needed_by_others import table_rows_of
from hms_iceberg.table.version_files import VersionDamage
from hms_iceberg.transaction.transaction import table_commit
from hms_iceberg.transaction.workspace import read_version, write_version
from hms_iceberg.updates.rows.overwrite import DeleteFiles
from hms_iceberg.updates.rows.rewrite_files import RewriteFiles

if TYPE_CHECKING:
    from hms_iceberg.catalog import Catalog


@dataclass(frozen=True)
class RepairResult:
    """The plan of a repair, and how far it was carried out.

    Attributes:
        plan: the plan.
        journal: location of the journal; None if nothing was done.
    """

    plan: RepairPlan
    journal: str | None = None


def repair_table(
    catalog: Catalog,
    identifier: str | Identifier,
    *,
    dry_run: bool = True,
    accept_loss: bool = False,
    record_counts: bool = False,
) -> RepairResult:
    """Repairs a damaged table as far as that is safe.

    A journal is written first. Then come rebuilt metadata files under new names, a new version of the metadata and the
    row of the metastore, all in one commit; and then a snapshot on each branch without the files that are gone. No file
    that is there is changed or deleted.

    Args:
        catalog: the catalog of the table.
        identifier: the table's name.
        dry_run: only plan.
        accept_loss: also do what loses something: rows, deletes, snapshots, or changes of the metadata.
        record_counts: also open every live file, which finds damage that leaves its size.

    Returns:
        the plan with its steps, and where the journal is; no journal if nothing was done.

    Raises:
        NoSuchTableError: no such Iceberg table.
        CommitConflictError: the table was changed meanwhile; nothing was done.
        StorageError: the storage does not let a file be read, which says nothing about the file.
        InvalidInputError: no version of the metadata is left to go on from.
    """
    identifier = table_identifier(identifier)
    metastore, damage = _to_repair(catalog.metastore, identifier)
    pointer = metastore.load(identifier)
    rows = table_rows_of(metastore)
    plan = plan_repair(pointer, catalog.storage, damage, rows, accept_loss=accept_loss, record_counts=record_counts)
    if dry_run or not plan.steps:
        return RepairResult(plan)
    base, metadata = checked_base(plan)
    journal, copy = write_journal(plan, base, metadata, catalog.storage)
    versions = []
    if plan.swaps:
        versions.append(_swap(plan, metastore, catalog.storage))
    versions += _remove(plan, lambda: catalog.load_table(identifier))
    state = _state_after([base.location, *versions], catalog.storage)
    write_done(DoneRepair(journal, pointer.metadata_location, copy, state), catalog.storage)
    return RepairResult(plan, journal)


def _to_repair(metastore: CatalogMetastore, identifier: Identifier) -> tuple[CatalogMetastore, VersionDamage | None]:
    """The metastore as a repair goes by it, and what keeps readers of the table from its newest version."""
    if isinstance(metastore, FileSystemCatalog):
        return metastore.for_repair(), metastore.damage(identifier)
    return metastore, None


def _state_after(versions: list[str], storage: Storage) -> str:
    """The state of the table after the last of its versions; empty if others made some in between."""
    metadata = read_version(versions[-1], storage).metadata
    log = [each.metadata_file for each in metadata.metadata_log]
    expected = versions[:-1]
    return state_of(metadata) if log[-len(expected) :] == expected[-len(log) :] else ""


def _swap(plan: RepairPlan, metastore: CatalogMetastore, storage: Storage) -> str:
    """Commits the repaired metadata if the table is unchanged since the plan; returns its location."""
    base, metadata = checked_base(plan)
    identifier = plan.pointer.identifier
    commit = table_commit(identifier, metastore, storage)
    with commit:
        for location, data in plan.files.items():
            commit.workspace.create(location, data)
        with metastore.lease(identifier, metadata.properties) as lease:
            lease.acquire()
            if lease.load().metadata_location != plan.pointer.metadata_location:
                name = ".".join(identifier)
                raise CommitConflictError(
                    f"Cannot repair table {name}: it was changed meanwhile. Plan the repair again."
                )
            new = write_version(base, changed(metadata), commit.workspace)
            commit.swap(lease, MetadataVersion(plan.pointer.metadata_location, base.metadata), new)
    return commit.made.version.location


def _remove(plan: RepairPlan, load: Callable[[], Table]) -> list[str]:
    """Takes lost files out of the branches that have them; where the new versions are."""
    versions = []
    for branch, lost in plan.gone.items():
        data = tuple(file for file in lost.files if file.is_data)
        deletes = tuple(file for file in lost.files if not file.is_data)
        table = load()
        with table.transaction() as transaction:
            if deletes:
                transaction.add(RewriteFiles(removed=deletes, branch=branch))
            if data:
                transaction.add(DeleteFiles(files=data, branch=branch))
        versions.append(table.metadata_location)
    return versions


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


def undo_repair(catalog: Catalog, identifier: str | Identifier, *, dry_run: bool = True) -> UndoneRepair:
    """Lets the metastore name the metadata file again that it named before the table's last repair.

    A repair deletes nothing, so that all that this file names is as it was, damage included.

    Args:
        catalog: the catalog of the table.
        identifier: the table's name.
        dry_run: only tell.

    Returns:
        which repair was taken back, or would be, and the metadata file that is current again.

    Raises:
        NoSuchTableError: no such Iceberg table.
        InvalidInputError: the last change of the table is no repair, or the earlier metadata file cannot be read.
        CommitConflictError: the table was changed meanwhile; nothing was done.
    """
    identifier = table_identifier(identifier)
    name = ".".join(identifier)
    metastore, _ = _to_repair(catalog.metastore, identifier)
    pointer, storage = metastore.load(identifier), catalog.storage
    current = read_version(pointer.metadata_location, storage)
    done = repair_that_stands(current, storage)
    if done is None:
        raise InvalidInputError(
            f"Cannot take back a repair of table {name}: its last change is no repair, or others changed the table "
            f"while it was repaired. To go back further, look at `hms-iceberg history {name}` and use `hms-iceberg "
            "rollback`."
        )
    try:
        before = metadata_before(done, storage)
    except (MissingFileError, CorruptMetadataError) as error:
        raise InvalidInputError(
            f"Cannot take back the repair of table {name}: the earlier metadata file is gone or damaged. Restore it "
            f"first. {error}"
        ) from error
    undone = UndoneRepair(identifier, done.journal, done.before)
    if dry_run:
        return undone
    commit = table_commit(identifier, metastore, storage)
    with commit, metastore.lease(identifier, before.metadata.properties) as lease:
        lease.acquire()
        if lease.load().metadata_location != pointer.metadata_location:
            raise CommitConflictError(f"Cannot take back the repair of table {name}: the table was changed meanwhile.")
        if not storage.exists(before.location):  # commits may delete old versions
            commit.workspace.create(before.location, storage.read(done.copy))
        commit.swap(lease, current, before)
    return undone
