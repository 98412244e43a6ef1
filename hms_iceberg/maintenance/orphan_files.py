"""Files below a table's folder that nothing of the table names.

Source: Iceberg documentation, "Spark Procedures", `remove_orphan_files`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from hms_iceberg.arrow.storage.arrow_storage import is_unfinished
from hms_iceberg.arrow.storage.filesystems import parse_location
from hms_iceberg.errors import CorruptFileError, InvalidInputError, MissingFileError, UnsupportedError
from hms_iceberg.maintenance.repair.repair_journal import needed_for_undo
from hms_iceberg.metastore import TableRows
from hms_iceberg.spec.table_properties import GC_ENABLED
from hms_iceberg.storage import FileInfo, Storage, one_spelling
from hms_iceberg.table.changes.manage_snapshots import Time
from hms_iceberg.table.needed.named_files import OwnFolders, delete_files, files_of, path_of
from hms_iceberg.table.needed.neighbours import Search, fresh_rows
from hms_iceberg.table.needed.others import backup_of, is_journal, names_of, table_rows_of
from hms_iceberg.table.reading.scan import milliseconds
from hms_iceberg.table.table import Table

logger = logging.getLogger(__name__)

LEAST_AGE_MS = 24 * 60 * 60 * 1000
"""Files that were changed later are no orphans, unless nobody writes: a write that goes on may yet commit them."""
_THREE_DAYS_MS = 3 * LEAST_AGE_MS
_EQUAL_SCHEMES = {"s3n,s3a": "s3"}
_VERSION_HINT = "version-hint.text"
# A scheme and an authority.
_Prefix = tuple[str, str]


class PrefixMismatch(str, Enum):
    """How to treat a file whose path the table names with another scheme or authority."""

    ERROR = "error"
    IGNORE = "ignore"
    DELETE = "delete"


@dataclass(frozen=True)
class OrphanFiles:
    """The result of a search for orphan files.

    Attributes:
        locations: the orphans, as they were listed.
        bytes: of all of them.
        deleted: how many were deleted; none in a dry run.
        left: those that could not be deleted, by location with the reason.
        other_tables: folders of others in the one that was searched, or around it; what is in them was left alone.
    """

    locations: tuple[str, ...]
    bytes: int
    deleted: int
    left: dict[str, str]
    other_tables: tuple[str, ...]


def remove_orphan_files(
    table: Table,
    *,
    older_than: Time | None = None,
    location: str | None = None,
    dry_run: bool = False,
    nobody_writes: bool = False,
    equal_schemes: Mapping[str, str] | None = None,
    equal_authorities: Mapping[str, str] | None = None,
    prefix_mismatch_mode: str | PrefixMismatch = PrefixMismatch.ERROR,
    workers: int = 8,
    files: Iterable[FileInfo] | None = None,
    keep_backup: bool = True,
    rows: TableRows | None = None,
) -> OrphanFiles:
    """Deletes files below a table's folder that no table names.

    Named are the data files, delete files, manifests and manifest lists of every snapshot, statistics, the current
    metadata file and those of its log; journals, and what the undo of the last repair needs; and what others need: the
    folders of every table and partition that the metastore knows, of tables whose metadata files are found there, and
    each file that a copy of the table names (one registered from its metadata, or at the same place), or a table that
    was at this place before its location was moved. The folder is
    listed first and the table loaded afterwards, so that what is committed meanwhile is known. Left alone are symbolic
    links with what is behind them, and what starts with `_` or `.`, unless it is a partition of the table, a folder of
    its own, or a file that a killed process left half written.

    Args:
        table: the table, which moves to its newest version.
        older_than: only files that were last changed before; by default three days ago. A file that a running write
            has not committed yet is named by nothing either: at least 24 hours are left for it.
        location: the folder to search; the table's location by default.
        dry_run: only find them.
        nobody_writes: whoever calls is certain that nobody writes to the table meanwhile, so that files may be younger.
        equal_schemes: schemes that mean the same, such as `{"s3n,s3a": "s3"}`, which holds unless given.
        equal_authorities: authorities that mean the same, such as `{"nn1:8020,nn2:8020": "nn"}`; those of one HDFS are
            known by its settings.
        prefix_mismatch_mode: `error`, `ignore` or `delete`: what is done with files of which the table names the path
            with another scheme or authority.
        workers: files that are deleted at once.
        files: the files to look at, from an inventory of the store for example, in place of a listing; of them, only
            those in the folder to search.
        keep_backup: whether the files stay that the Hive table of before a migration needs; without them there is no
            way back.
        rows: the metastore's tables, if they are not to be asked for anew unless there are orphans to delete.

    Returns:
        the orphans with their bytes, how many were deleted, which could not be, and folders of others in which
        nothing was looked for.

    Raises:
        UnsupportedError: the table's property `gc.enabled` is false: its files may belong to others.
        InvalidInputError: `older_than` is less than 24 hours ago; the mode is none; or there are files of another
            scheme or authority. Nothing was deleted.
        StorageError, CorruptFileError: what the table names, or another one that may share files with it, cannot be
            told; nothing was deleted.
        NoSuchTableError: another table was renamed again and again while it was looked at.
    """
    name = ".".join(table.identifier)
    if not GC_ENABLED.of(table.metadata.properties):
        raise UnsupportedError(
            f"Cannot remove orphan files of table {name}: its property gc.enabled is false, for its files may belong "
            "to others. Set it to true first, if they do not."
        )
    mode = _mode(prefix_mismatch_mode, name)
    before = _checked_time(older_than, nobody_writes, name)
    folder = (location or table.location()).rstrip("/")
    listed = list(table.storage.list(folder)) if files is None else _inside(files, folder)
    hidden = None if files is not None else _Hidden(table, folder)
    metadata = table.refresh().metadata
    named = _Named(
        files_of(metadata, table.metadata_location, table.storage),
        table.storage,
        _flattened(_EQUAL_SCHEMES if equal_schemes is None else equal_schemes),
        _flattened(equal_authorities or {}),
    )
    unnamed: list[FileInfo] = []
    mismatches: list[str] = []
    for file in listed:
        match "same" if hidden is not None and hidden.has(file.location) else named.match(file.location):
            case "same":
                continue
            case "other prefix" if mode is not PrefixMismatch.DELETE:
                mismatches.append(file.location)
                continue
        if file.modified_ms < before:
            unnamed.append(file)
    if mismatches and mode is PrefixMismatch.ERROR:
        raise InvalidInputError(
            f"Cannot remove orphan files of table {name}: {len(mismatches)} files have a path that the table names "
            f"with another scheme or authority, the first is {mismatches[0]}. Say which mean the same (equal_schemes, "
            "equal_authorities), or set prefix_mismatch_mode to ignore to leave these files, or to delete."
        )
    around = rows or table_rows_of(table.metastore)
    orphans, others = _of_nobody(table, unnamed, listed, folder, around, keep_backup)
    fresh = fresh_rows(around)
    if orphans and not dry_run and fresh is not around:
        orphans, others = _of_nobody(table, orphans, listed, folder, fresh, keep_backup)
    locations = tuple(file.location for file in orphans)
    left = {} if dry_run else delete_files(table.storage, locations, name, workers)
    deleted = 0 if dry_run else len(locations) - len(left)
    logger.info("Found %d orphan files of %s, deleted %d", len(locations), name, deleted)
    return OrphanFiles(locations, sum(file.size for file in orphans), deleted, left, others)


def _of_nobody(
    table: Table,
    unnamed: Sequence[FileInfo],
    listed: Iterable[FileInfo],
    folder: str,
    rows: TableRows | None,
    keep_backup: bool,
) -> tuple[list[FileInfo], tuple[str, ...]]:
    """Of files that the table does not name, those that no other table and no undo needs; and the folders of other
    tables."""
    name, metadata, place = table.identifier, table.metadata, table.metadata_location
    backup = None if keep_backup or rows is None else backup_of(name, metadata, place, rows)
    search = Search(name, metadata, place, folder, "" if backup is None else backup.name)
    search.in_listing(listed, table.storage)
    if rows is not None and unnamed:  # to ask for all tables takes long where there are many
        search.in_own_folders(unnamed, table.storage)
        search.in_metastore(rows)
    neighbours = search.found()
    left = {
        path: file
        for file in unnamed
        if not (file.is_linked or is_journal(file.location) or neighbours.needs(path := path_of(file.location)))
    }
    for location in needed_for_undo(table) if left else ():
        left.pop(path_of(location), None)
    for row in neighbours.sharers if left else ():
        try:
            for location in names_of(row, table.storage):
                left.pop(path_of(location), None)
        except (CorruptFileError, MissingFileError) as error:
            raise type(error)(
                f"Cannot remove orphan files of table {'.'.join(table.identifier)}: table {row} may name some of them, "
                f"and cannot be read. Repair it (hms-iceberg repair {row}), or drop it. {error}"
            ) from error
    return list(left.values()), tuple(sorted(neighbours.folders.values()))


def _inside(files: Iterable[FileInfo], folder: str) -> list[FileInfo]:
    """The files that are in a folder; an inventory may list a whole store."""
    inside = f"{path_of(folder)}/"
    return [file for file in files if path_of(file.location).startswith(inside)]


class _Named:
    """The files that a table names, by folder: a folder is taken apart once, not each of its files."""

    def __init__(
        self, locations: Iterable[str], storage: Storage, schemes: Mapping[str, str], authorities: Mapping[str, str]
    ) -> None:
        self._storage = storage
        self._schemes = schemes
        self._authorities = authorities
        self._folders: dict[str, tuple[str, _Prefix]] = {}
        self._names: dict[str, dict[_Prefix, set[str]]] = {}
        for location in locations:
            path, prefix, name = self._parts(location)
            self._names.setdefault(path, {}).setdefault(prefix, set()).add(name)

    def match(self, location: str) -> str:
        """`same`, `other prefix` or `none`."""
        path, prefix, name = self._parts(location)
        named = [each for each, names in self._names.get(path, {}).items() if name in names]
        return "none" if not named else "same" if prefix in named else "other prefix"

    def _parts(self, location: str) -> tuple[str, _Prefix, str]:
        """A location split into folder path, normalized scheme and authority, and file name."""
        folder, _, name = location.rpartition("/")
        found = self._folders.get(folder)
        if found is None or "\0" in name:
            given, spelled = parse_location(location), one_spelling(self._storage, location)
            equal = self._authorities.get(given.authority)
            if equal is None:
                parsed = parse_location(spelled)
            else:
                parsed = parse_location(one_spelling(self._storage, f"{given.scheme}://{equal}/"))
            prefix = self._schemes.get(parsed.scheme, parsed.scheme), parsed.authority
            found = self._folders[folder] = path_of(spelled).rpartition("/")[0], prefix
        return *found, name


def _flattened(equal: Mapping[str, str]) -> dict[str, str]:
    return {each.strip(): value.strip() for names, value in equal.items() for each in names.split(",")}


def _checked_time(older_than: Time | None, nobody_writes: bool, name: str) -> int:
    """The time before which files have to be changed last, in milliseconds."""
    now = int(time.time() * 1000)
    if older_than is None:
        return now - _THREE_DAYS_MS
    before = milliseconds(older_than)
    if before > now - LEAST_AGE_MS and not nobody_writes:
        raise InvalidInputError(
            f"Cannot remove orphan files with an interval less than 24 hours: files that writes to table {name} make "
            "now would be deleted. If you are certain that nobody writes to it, say so: nobody_writes=True from "
            "Python, --nobody-writes for the command, maintenance.nobody-writes=true for the service."
        )
    return before


def _mode(mode: str | PrefixMismatch, name: str) -> PrefixMismatch:
    try:
        return PrefixMismatch(mode.lower() if isinstance(mode, str) else mode)
    except ValueError:
        raise InvalidInputError(
            f"Cannot remove orphan files of table {name}: prefix_mismatch_mode is {mode!r}, expected error, ignore or "
            "delete."
        ) from None


class _Hidden:
    """Finds paths that are hidden by name (`_x`, `.x`), apart from partition folders such as `_x=1` and the table's own
    folders."""

    def __init__(self, table: Table, folder: str) -> None:
        specs = table.metadata.partition_specs
        self._partitions = tuple(f"{field.name}=" for spec in specs for field in spec.fields)
        self._start = len(folder)
        root = path_of(folder).rstrip("/")
        own = OwnFolders.of(table.metadata, table.metadata_location).all()
        inside = {each[len(root) :] + "/" for each in own if each.startswith(f"{root}/")}
        self._own = tuple(sorted(inside, key=len, reverse=True))

    def has(self, location: str) -> bool:
        """Whether a part of a file's path is hidden."""
        path = location[self._start :]
        if path.endswith(_VERSION_HINT):
            return True
        if "/_" not in path and "/." not in path:
            return False
        own = next((each for each in self._own if path.startswith(each)), "/")
        folder, _, name = path[len(own) - 1 :].rpartition("/")
        parts = folder.split("/") if is_unfinished(name) else [*folder.split("/"), name]
        return any(part.startswith(("_", ".")) and not part.startswith(self._partitions) for part in parts)
