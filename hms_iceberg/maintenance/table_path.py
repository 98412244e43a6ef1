"""A table made ready to be copied elsewhere: its metadata with other paths, and a list of what to copy where.

Source: Iceberg documentation, "Spark Procedures", `rewrite_table_path`.
"""

from __future__ import annotations

import csv
import io
import logging
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace

from hms_iceberg.cached_properties import cached_property
from hms_iceberg.encryption.encrypted_tables import refuse_encrypted
from hms_iceberg.errors import IcebergError, InvalidInputError
from hms_iceberg.maintenance.metadata_paths import PositionDeleteMover, PrefixChange, noted, with_new_paths
from hms_iceberg.metastore import MetadataVersion
from hms_iceberg.spec.manifests.avro_container import read_container
from hms_iceberg.spec.manifests.manifest_avro import decode_manifest, encode_manifest
from hms_iceberg.spec.manifests.manifest_list_avro import encode_manifest_list
from hms_iceberg.spec.manifests.manifest_values import (
    DataFileContent,
    ManifestEntry,
    ManifestFile,
)
from hms_iceberg.spec.metadata.metadata_json import compress, metadata_to_json
from hms_iceberg.spec.snapshots_and_refs import Snapshot
from hms_iceberg.storage import Storage
from hms_iceberg.table.table import Table
from hms_iceberg.transaction.workspace import read_version
from hms_iceberg.updates.machinery.manifest_files import entries_of, manifest_list_of

logger = logging.getLogger(__name__)

_FILE_LIST = "file-list"
_NO_FILE_LIST = "N/A"


@dataclass(frozen=True)
class TablePathResult:
    """The result of rewriting a table's paths.

    Attributes:
        latest_version: name of the newest metadata file that was rewritten: the one to register at the target.
        staging_location: the folder with the files that were written anew.
        file_list_location: a CSV file of two columns without header: a file to copy, and where to; `N/A` without.
        rewritten_manifest_file_paths_count: manifests that were written anew.
        rewritten_delete_file_paths_count: position delete files and deletion vectors in them.
        copies: what the CSV file holds: from each file to copy to its place at the target.
    """

    latest_version: str
    staging_location: str
    file_list_location: str
    rewritten_manifest_file_paths_count: int
    rewritten_delete_file_paths_count: int
    copies: dict[str, str]


def rewrite_table_path(
    table: Table,
    source_prefix: str,
    target_prefix: str,
    *,
    start_version: str | None = None,
    end_version: str | None = None,
    staging_location: str | None = None,
    create_file_list: bool = True,
) -> TablePathResult:
    """Writes a table's metadata with another prefix of all paths, so that a copy of the table is a table.

    The table stays as it is. Metadata files, manifest lists, manifests, position delete files and deletion vectors are
    written anew into a staging folder; copy what the file list names, and register the table there by its newest
    metadata file. Summaries of snapshots keep the sizes that delete files have in the table itself.

    Args:
        table: the table.
        source_prefix: what the table's paths begin with.
        target_prefix: what takes its place.
        start_version: name of a metadata file of the table's log: only what came after that version, which was copied
            already; by default everything.
        end_version: name of the newest metadata file to copy; the table's current one by default.
        staging_location: an empty folder; by default a new one beside the metadata.
        create_file_list: whether the file list is written.

    Returns:
        the staging folder, the file list (pairs of what is to be copied where), and counts of what was written anew.

    Raises:
        InvalidInputError: a path of the table is not under the prefix, a version is not in the log, the staging folder
            is not empty, or both prefixes are the same. Nothing is left behind.
        MissingFileError, CorruptManifestError, CorruptDataFileError, StorageError: something of the table cannot be
            read, or the staging folder not be written.
    """
    name = ".".join(table.identifier)
    table.refresh()
    remedy = "Copy its files as they are to a storage with the same locations, or copy its rows to another table."
    refuse_encrypted(table.properties, name, "Cannot rewrite the paths of table", remedy)
    if not source_prefix or not target_prefix or source_prefix.rstrip("/") == target_prefix.rstrip("/"):
        raise InvalidInputError(
            f"Cannot rewrite the paths of table {name}: source prefix {source_prefix!r} and target prefix "
            f"{target_prefix!r} must be two different, non-empty prefixes."
        )
    end = _version(table, end_version)
    start = None if start_version is None else _version(table, start_version)
    versions = _versions_between(name, start, end)
    if staging_location is None:
        staging_location = f"{table.metadata_location.rsplit('/', 1)[0]}/copy-table-staging-{uuid.uuid4()}"
    elif next(iter(table.storage.list(staging_location)), None) is not None:
        raise InvalidInputError(
            f"Cannot rewrite the paths of table {name}: the staging folder {staging_location} is not empty. Empty it, "
            "or choose another one."
        )
    change = PrefixChange(source_prefix, target_prefix, staging_location.rstrip("/") + "/")
    relocation = _Relocation(table.storage, change, start, end)
    try:
        relocation.write(versions)
        file_list = relocation.write_list() if create_file_list else _NO_FILE_LIST
    except BaseException:
        relocation.discard()
        raise
    logger.info("Rewrote the paths of %s for %d files to copy", name, len(relocation.copies))
    return TablePathResult(
        latest_version=end.location.rsplit("/", 1)[-1],
        staging_location=change.staging,
        file_list_location=file_list,
        rewritten_manifest_file_paths_count=relocation.manifests,
        rewritten_delete_file_paths_count=len(relocation.position_deletes),
        copies=relocation.copies,
    )


def _version(table: Table, name: str | None) -> MetadataVersion:
    """The version of the table whose metadata file has a name; the current one for None."""
    if name is None:
        return MetadataVersion(table.metadata_location, table.metadata)
    known = [each.metadata_file for each in table.metadata.metadata_log] + [table.metadata_location]
    for location in reversed(known):
        if location.rsplit("/", 1)[-1] == name:
            return read_version(location, table.storage)
    raise InvalidInputError(
        f"Cannot rewrite the paths of table {'.'.join(table.identifier)}: no version {name!r} is in its metadata log. "
        f"Versions are names of metadata files, such as {table.metadata_location.rsplit('/', 1)[-1]}."
    )


def _versions_between(name: str, start: MetadataVersion | None, end: MetadataVersion) -> list[str]:
    """Locations of the metadata files after one version, up to and without another one."""
    log = [each.metadata_file for each in end.metadata.metadata_log]
    if start is None:
        return log
    if start.location not in log:
        raise InvalidInputError(
            f"Cannot rewrite the paths of table {name}: the start version {start.location} is not before the end "
            f"version {end.location}."
        )
    return log[log.index(start.location) + 1 :]


class _Relocation:
    """Writes a table's metadata files with the new paths, and lists `copies`: which file is to be copied where."""

    def __init__(
        self, storage: Storage, change: PrefixChange, start: MetadataVersion | None, end: MetadataVersion
    ) -> None:
        self.copies: dict[str, str] = {}
        self.manifests = 0
        self.position_deletes: set[tuple[str, int | None]] = set()
        self._storage = storage
        self._change = change
        self._end = end
        self._start_ids = frozenset() if start is None else frozenset(start.metadata.snapshots_by_id)
        self._created: list[str] = []
        self._deletes = PositionDeleteMover(storage, end.metadata.properties, change, self._created)
        self._lengths: dict[str, int] = {}

    def write(self, versions: Sequence[str]) -> None:
        """Writes the rewritten files to the staging folder, all but the list of files."""
        for location in versions:
            self._write_version(read_version(location, self._storage))
        self._write_version(self._end)
        for snapshot in self._end.metadata.snapshots:
            if snapshot.snapshot_id not in self._start_ids:
                self._write_snapshot(snapshot)

    def write_list(self) -> str:
        """Writes the file list; its location."""
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(self.copies.items())
        location = f"{self._change.staging}{_FILE_LIST}"
        self._create(location, text.getvalue().encode("utf-8"))
        return location

    def discard(self) -> None:
        for location in self._created:
            try:
                self._storage.delete(location)
            except IcebergError as error:
                logger.warning("Could not delete the unused file %s: %s", location, error)

    # ------------------------------------------------------------------------------------------ metadata

    def _write_version(self, version: MetadataVersion) -> None:
        data = metadata_to_json(with_new_paths(version.metadata, self._change))
        is_compressed = version.location.endswith((".gz.metadata.json", ".metadata.json.gz"))
        self._stage(version.location, compress(data) if is_compressed else data)
        statistics = [each.statistics_path for each in version.metadata.statistics]
        for location in (*statistics, *(each.statistics_path for each in version.metadata.partition_statistics)):
            self._copy(location)

    def _write_snapshot(self, snapshot: Snapshot) -> None:
        rows = []
        for manifest in manifest_list_of(snapshot, self._storage):
            if manifest.manifest_path not in self._lengths:
                self._lengths[manifest.manifest_path] = self._write_manifest(manifest)
            path = self._change.new_path(manifest.manifest_path)
            rows.append(replace(manifest, manifest_path=path, manifest_length=self._lengths[manifest.manifest_path]))
        if snapshot.manifest_list is None:
            return
        header = read_container(self._storage.read(snapshot.manifest_list), f"manifest list {snapshot.manifest_list}")
        data, _ = encode_manifest_list(
            rows,
            format_version=int(header.text("format-version") or 1),
            snapshot_id=snapshot.snapshot_id,
            parent_snapshot_id=snapshot.parent_snapshot_id,
            sequence_number=snapshot.sequence_number,
            next_row_id=snapshot.first_row_id or 0,
        )
        self._stage(snapshot.manifest_list, data)

    # ------------------------------------------------------------------------------------------ manifests

    # What was copied already: what a snapshot of the start version wrote, and what is in one that is still there. Of
    # the others nothing may be left to look at; a file that only they name is copied once more, which harms nobody.

    @cached_property
    def _start_manifests(self) -> dict[str, ManifestFile]:
        return {
            manifest.manifest_path: manifest
            for snapshot in self._end.metadata.snapshots
            if snapshot.snapshot_id in self._start_ids
            for manifest in manifest_list_of(snapshot, self._storage)
        }

    @cached_property
    def _start_files(self) -> set[str]:
        return {
            entry.data_file.file_path
            for manifest in self._start_manifests.values()
            for entry in entries_of(manifest, self._storage)
            if entry.is_live
        }

    def _write_manifest(self, manifest: ManifestFile) -> int:
        """Writes a manifest, or finds out how long it is where it was copied already; its length in bytes."""
        is_known = manifest.added_snapshot_id in self._start_ids or manifest.manifest_path in self._start_manifests
        data = self._storage.read(manifest.manifest_path)
        header = read_container(data, f"manifest {manifest.manifest_path}")
        metadata = self._end.metadata
        spec = metadata.spec_by_id(manifest.partition_spec_id)
        encoded, _ = encode_manifest(
            [self._entry(entry, is_known) for entry in decode_manifest(data, manifest)],
            schema=metadata.schema_for_spec(spec),
            spec=spec,
            content=manifest.content,
            format_version=int(header.text("format-version") or 1),
            snapshot_id=manifest.added_snapshot_id,
        )
        if not is_known:
            self.manifests += 1
            self._stage(manifest.manifest_path, encoded)
        return len(encoded)

    def _entry(self, entry: ManifestEntry, is_known: bool) -> ManifestEntry:
        file = entry.data_file
        is_position_deletes = file.content is DataFileContent.POSITION_DELETES
        if entry.is_live and not is_known:
            if is_position_deletes:
                self.position_deletes.add((file.file_path, file.content_offset))
            if entry.snapshot_id not in self._start_ids and file.file_path not in self._start_files:
                self._copy(file.file_path, staged=is_position_deletes)
        if entry.is_live and is_position_deletes:
            file = self._deletes.rewritten(file)
        about = file.referenced_data_file
        new = self._change.new_path
        moved = replace(file, file_path=new(file.file_path), referenced_data_file=None if about is None else new(about))
        return replace(entry, data_file=moved)

    # ------------------------------------------------------------------------------------------ files

    def _copy(self, location: str, staged: bool = False) -> None:
        self.copies[self._change.staged_path(location) if staged else location] = self._change.new_path(location)

    def _stage(self, location: str, data: bytes) -> None:
        self._create(self._change.staged_path(location), data)
        self._copy(location, staged=True)

    def _create(self, location: str, data: bytes) -> None:
        with noted(self._created, location):
            self._storage.create(location, data)
