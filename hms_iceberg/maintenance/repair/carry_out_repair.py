"""Carrying out the plan of a repair."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hms_iceberg.errors import CommitConflictError
from hms_iceberg.maintenance.repair.repair_journal import DoneRepair, state_of, write_done, write_journal
from hms_iceberg.maintenance.repair.repair_plan import RepairPlan, checked_base, plan_repair
from hms_iceberg.metastore import CatalogMetastore, Identifier, MetadataVersion
from hms_iceberg.spec.metadata.metadata_changes import changed
from hms_iceberg.storage import Storage
from hms_iceberg.table import Table
from hms_iceberg.transaction.transaction import table_commit
from hms_iceberg.transaction.workspace import read_version, write_version
from hms_iceberg.updates.rows.delete import DeleteFiles
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
    identifier: Identifier,
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

    Raises:
        NoSuchTableError: no such Iceberg table.
        CommitConflictError: the table was changed meanwhile; nothing was done.
        StorageError: the storage does not let a file be read, which says nothing about the file.
    """
    pointer = catalog.metastore.load(identifier)
    plan = plan_repair(pointer, catalog.storage, accept_loss=accept_loss, record_counts=record_counts)
    if dry_run or not plan.steps:
        return RepairResult(plan)
    base, metadata = checked_base(plan)
    journal, copy = write_journal(plan, metadata, catalog.storage)
    versions = []
    if plan.swaps:
        versions.append(_swap(plan, catalog.metastore, catalog.storage))
    if plan.gone:
        versions += _remove(plan, lambda: catalog.load_table(identifier))
    state = _state_after([base.location, *versions], catalog.storage)
    write_done(DoneRepair(journal, pointer.metadata_location, copy, state), catalog.storage)
    return RepairResult(plan, journal)


def _state_after(versions: list[str], storage: Storage) -> str:
    """The state of the table after the last of its versions; empty if others made some in between."""
    metadata = read_version(versions[-1], storage).metadata
    log = [each.metadata_file for each in metadata.metadata_log]
    expected = versions[:-1]
    return state_of(metadata) if log[-len(expected) :] == expected[-len(log) :] else ""


def _swap(plan: RepairPlan, metastore: CatalogMetastore, storage: Storage) -> str:
    """Makes the repaired metadata the table's, if nobody changed the table meanwhile; where it is."""
    base, metadata = checked_base(plan)
    identifier = plan.pointer.identifier
    commit = table_commit(identifier, metastore, storage)

    def repair() -> None:
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

    return commit.run(repair).version.location


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
