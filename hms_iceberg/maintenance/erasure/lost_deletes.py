"""Deletes that another engine committed across an erasure: they name data files that the erasure replaced, so that they
delete nothing, and the rows that they meant are there again."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from hms_iceberg.arrow.deletes.deleted_rows import read_position_deletes
from hms_iceberg.maintenance.erasure.rewritten_history import NamedByHistory
from hms_iceberg.spec.manifests.manifest_values import DataFile, DataFileContent
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.metadata_columns import DELETE_FILE_PATH
from hms_iceberg.storage import Storage
from hms_iceberg.updates.machinery.manifest_files import entries_of


def lost_deletes(
    metadata: TableMetadata, named: NamedByHistory, storage: Storage, replaced: Collection[str]
) -> Mapping[str, str]:
    """By delete file that a branch or tag reads, a replaced data file that it names and that no version names now."""
    gone = sorted(path for path in replaced if path not in named.data)
    heads = {ref.snapshot_id for ref in metadata.refs.values()}
    manifests = {row.manifest_path: row for head in heads for row in named.lists[head]}
    files = {
        (entry.data_file.file_path, entry.data_file.content_offset): entry.data_file
        for row in manifests.values()
        for entry in entries_of(row, storage)
        if entry.is_live and entry.data_file.content is DataFileContent.POSITION_DELETES
    }
    found: dict[str, str] = {}
    for file in files.values():
        lost = _named_of(gone, file, storage)
        if lost is not None:
            found[file.file_path] = lost
    return found


def _named_of(paths: list[str], file: DataFile, storage: Storage) -> str | None:
    """One of these paths that a file of position deletes, or a deletion vector, names; None if it names none."""
    if file.referenced_data_file is not None:
        return file.referenced_data_file if file.referenced_data_file in paths else None
    low = file.lower_bounds.get(DELETE_FILE_PATH.field_id) if file.lower_bounds else None
    high = file.upper_bounds.get(DELETE_FILE_PATH.field_id) if file.upper_bounds else None
    within = [each for each in paths if (low or b"") <= each.encode() and (high is None or each.encode() <= high)]
    names = read_position_deletes(storage, file) if within else {}
    return next((each for each in within if each in names), None)
