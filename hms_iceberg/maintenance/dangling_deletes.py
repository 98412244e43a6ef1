"""Delete files that apply to nothing any more.

Source: Iceberg documentation, "Spark Procedures", `remove-dangling-deletes`.
"""

from __future__ import annotations

from hms_iceberg.scan.planner import plan_scan
from hms_iceberg.scan.tasks import ScanRequest
from hms_iceberg.spec.manifests.manifest_values import DataFile, ManifestContent
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.snapshots_and_refs import MAIN_BRANCH
from hms_iceberg.storage import Storage
from hms_iceberg.table.table import Table
from hms_iceberg.updates.machinery.content import parent_on
from hms_iceberg.updates.machinery.manifest_files import entries_of, manifest_list_of
from hms_iceberg.updates.rows.rewrite_files import RewriteFiles


def dangling_deletes(metadata: TableMetadata, storage: Storage, branch: str = MAIN_BRANCH) -> tuple[DataFile, ...]:
    """The delete files and deletion vectors of a branch that apply to no data file.

    Which delete applies to which file is what a scan is planned with, so that none is named that any row needs: by
    sequence numbers and partitions as in Apache Iceberg, and by the bounds of keys and paths besides.

    Args:
        metadata: the table.
        storage: where manifests are.
        branch: the branch.
    """
    snapshot = parent_on(metadata, branch)
    if snapshot is None:
        return ()
    live = [
        entry.data_file
        for manifest in manifest_list_of(snapshot, storage)
        if manifest.content is ManifestContent.DELETES and manifest.has_live_files()
        for entry in entries_of(manifest, storage)
        if entry.is_live
    ]
    if not live:
        return ()
    request = ScanRequest(metadata, snapshot.snapshot_id, schema=metadata.schema())
    plan = plan_scan(request, storage)
    # A Puffin file holds the vectors of several data files: a vector is known by both.
    applied = {
        (path, about if file_format.upper() == "PUFFIN" else None)
        for path, about, file_format in plan.delete_files.select(
            "file_path", "referenced_data_file", "file_format"
        ).iter_rows()
    }
    return tuple(
        file
        for file in live
        if (file.file_path, file.referenced_data_file if file.is_deletion_vector else None) not in applied
    )


def remove_dangling_deletes(table: Table, *, branch: str = MAIN_BRANCH) -> tuple[DataFile, ...]:
    """Removes delete files that apply to nothing from a table, in a commit of its own if there are any.

    Args:
        table: the table, which moves to its newest version.
        branch: the branch.

    Returns:
        The files that were removed from the table; expiry of snapshots deletes them.

    Raises:
        CommitConflictError: somebody else removed one of them.
        CommitFailedError, CommitStateUnknownError: see `TableTransaction.commit_transaction`.
    """
    metadata = table.refresh().metadata
    found = dangling_deletes(metadata, table.storage, branch)
    if found:
        with table.transaction() as transaction:
            transaction.add(RewriteFiles(removed=found, branch=branch))
    return found
