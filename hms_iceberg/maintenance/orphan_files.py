"""Files below a table's folder that nothing of the table names.

Source: Iceberg documentation, "Spark Procedures", `remove_orphan_files`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import chain, islice

from hms_iceberg.arrow.storage.arrow_storage import is_unfinished
from hms_iceberg.errors import CorruptFileError, InvalidInputError, MissingFileError, UnsupportedError
from hms_iceberg.hms.rows.transaction_marks import Mark
from hms_iceberg.maintenance.erasure.erasure_journal import needed_by_erasures
from hms_iceberg.maintenance.named_places import Match, NamedPlaces
from hms_iceberg.maintenance.repair.repair_journal import needed_for_undo
from hms_iceberg.maintenance_policy import LEAST_AGE_MS
from hms_iceberg.metastore import TableRows
from hms_iceberg.spec.places import Place, split_location
from hms_iceberg.spec.table_properties import GC_ENABLED
from hms_iceberg.storage import FileInfo, Places, Storage
from hms_iceberg.table.changes.manage_snapshots import Time
from hms_iceberg.table.needed_files.named_files import OwnFolders, delete_files, each_file_of
from hms_iceberg.table.needed_files.nearby_tables import METADATA_FILES, Search
from hms_iceberg.table.needed_files.needed_by_others import backup_of, is_journal, names_of, table_rows_of
from hms_iceberg.table.needed_files.remembered_rows import asked_once, fresh_rows
from hms_iceberg.table.reading.scan import milliseconds
from hms_iceberg.table.table import Table
from hms_iceberg.table.version_files import version_number
from hms_iceberg.transaction.intents import FinishesTransactions, Intent, is_intent, open_among, read_intent
from hms_iceberg.transaction.workspace import read_version

logger = logging.getLogger(__name__)

_THREE_DAYS_MS = 3 * LEAST_AGE_MS
_VERSION_HINT = "version-hint.text"
_AT_ONCE = 10_000


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
    metadata file and those of its log; those of transactions on several tables that are open, of which old ones are
    finished first; journals, and what the undo of the last repair needs; and what others need: the
    folders of every table and partition that the metastore knows, of tables whose metadata files are found there, and
    each file that a copy of the table names (one registered from its metadata, or at the same place), or a table that
    was at this place before its location was moved. The table is loaded again after its folder was listed, so that what
    is committed meanwhile is known; what was named before that stays. Left alone are symbolic
    links with what is behind them, and what starts with `_` or `.`, unless it is a partition of the table, a folder of
    its own, or a file that a killed process left half written.

    Args:
        table: the table, which moves to its newest version.
        older_than: only files that were last changed before; by default three days ago. A file that a running write
            has not committed yet is named by nothing either: at least 24 hours are left for it. A file whose time is
            not known is left alone, unless nobody writes.
        location: the folder to search; the table's location by default.
        dry_run: only find them.
        nobody_writes: whoever calls is certain that nobody writes to the table meanwhile, so that files may be younger.
        equal_schemes: schemes that mean the same, such as `{"gs": "s3"}`; `s3`, `s3a` and `s3n` always do.
        equal_authorities: authorities that mean the same, such as `{"nn1:8020,nn2:8020": "nn"}`; those of one HDFS are
            known by its settings.
        prefix_mismatch_mode: `error`, `ignore` or `delete`: what is done with files of which the table names the path
            with another scheme or authority, or below another folder.
        workers: files that are deleted at once.
        files: the files to look at, from an inventory of the store for example, in place of a listing; of them, only
            those in the folder to search.
        keep_backup: whether the files stay that the original Hive table of a migration needs; without them there is no
            way back.
        rows: the metastore's tables, if they are not to be asked for anew unless there are orphans to delete.

    Returns:
        the orphans with their bytes, how many were deleted, which could not be, and folders of others in which
        nothing was looked for.

    Raises:
        UnsupportedError: the table's property `gc.enabled` is false: its files may belong to others.
        InvalidInputError: `older_than` is less than 24 hours ago; the mode is unknown; there are files that the table
            names with another scheme or authority, or below another folder; or of the files that it names in the folder
            none was found there, so that the listing tells nothing. Nothing was deleted.
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
    places = Places(table.storage, _respelled(_flattened(equal_schemes or {}), _flattened(equal_authorities or {})))
    root = places.of(folder)
    named = NamedPlaces(_files_of(table.refresh()), places, root)
    version = table.metadata_location
    listed = _Listed.of(table.storage.list(folder) if files is None else _inside(files, root, places), named)
    hidden = None if files is not None else _Hidden(table, folder, places)
    intents = _open_intents(table, listed.telling, before, dry_run)
    table.refresh()
    if intents or table.metadata_location != version:
        # What was named at first stays for now, also if it is not named any more.
        named = NamedPlaces(chain(_files_of(table), _files_of_intents(table, intents)), places, root)
    unnamed: list[FileInfo] = []
    mismatches: list[str] = []
    is_any_found = listed.is_any_named
    ageless = 0
    for file, match in zip(listed.others, named.matches(listed.others), strict=True):
        is_any_found |= match is Match.SAME
        if match is Match.SAME or (hidden is not None and hidden.has(file.location)):
            continue
        if match is Match.ELSEWHERE and mode is not PrefixMismatch.DELETE:
            mismatches.append(file.location)
        elif file.modified_ms < before if file.modified_ms else nobody_writes:
            unnamed.append(file)
        else:
            ageless += not file.modified_ms
    if ageless:
        logger.warning("%d files of %s have no time of change and were left: they may be being written", ageless, name)
    if mismatches and mode is PrefixMismatch.ERROR:
        raise InvalidInputError(
            f"Cannot remove orphan files of table {name}: {len(mismatches)} files have a path that the table names "
            f"with another scheme or authority, or below another folder, the first is {mismatches[0]}. Say which mean "
            "the same (equal_schemes, equal_authorities), search by the folder's name in the table's metadata "
            "(location), or set prefix_mismatch_mode to ignore to leave these files, or to delete."
        )
    if unnamed and files is None and named.is_in_root and not is_any_found:
        raise InvalidInputError(
            f"Cannot remove orphan files of table {name}: none of the files that it names in {folder} was found there, "
            f"such as {named.is_in_root}. Nothing was deleted. If {folder} is another name of the table's folder, "
            "search by the name that its metadata has (location); if the files are lost, repair the table first."
        )
    around = rows or table_rows_of(table.metastore)
    orphans, others = _of_nobody(table, unnamed, listed.telling, folder, around, places, keep_backup)
    fresh = fresh_rows(around)
    if orphans and not dry_run and fresh is not around:
        orphans, others = _of_nobody(table, orphans, listed.telling, folder, fresh, places, keep_backup)
    locations = tuple(file.location for file in orphans)
    left = {} if dry_run else delete_files(table.storage, locations, name, workers)
    deleted = 0 if dry_run else len(locations) - len(left)
    logger.info("Found %d orphan files of %s, deleted %d", len(locations), name, deleted)
    return OrphanFiles(locations, sum(file.size for file in orphans), deleted, left, others)


def _files_of(table: Table) -> Iterator[str]:
    return each_file_of(table.metadata, table.metadata_location, table.storage)


@dataclass(frozen=True)
class _Listed:
    """The files of a listing that may be orphans, or tell of other tables."""

    others: list[FileInfo]  # files that were not named as the listing began
    telling: list[FileInfo]  # metadata files, of whatever table, and records of transactions; named or not
    is_any_named: bool

    @classmethod
    def of(cls, files: Iterable[FileInfo], named: NamedPlaces) -> _Listed:
        """Looks at a listing while it comes."""
        others: list[FileInfo] = []
        telling: list[FileInfo] = []
        is_any_named, rest = False, iter(files)
        while block := list(islice(rest, _AT_ONCE)):
            unknown = [file for file, is_named in zip(block, named.has(block), strict=True) if not is_named]
            is_any_named |= len(unknown) < len(block)
            others += unknown
            telling += (each for each in block if each.location.endswith(METADATA_FILES) or is_intent(each.location))
        return cls(others, telling, is_any_named)


def _open_intents(table: Table, listed: Iterable[FileInfo], before: int, dry_run: bool) -> list[Intent]:
    """The open transactions on several tables whose intents are in the table's folder; old ones, of dead owners, are
    finished first."""
    records = [file for file in listed if is_intent(file.location)]
    old = [file.location for file in records if file.modified_ms < before]
    if isinstance(table.metastore, FinishesTransactions) and not dry_run:
        for intent in open_among(old, table.storage):
            table.metastore.finish(intent)
    return list(open_among((file.location for file in records), table.storage))


def _intents_of_rows(rows: TableRows, storage: Storage) -> Iterator[Intent]:
    """The open transactions that rows of a metastore were moved by; one whose row decides may be closed already."""
    marks = (Mark.of(row.properties) for row in rows.rows() if row.is_iceberg)
    for record in {mark.record for mark in marks if mark is not None}:
        intent = read_intent(record, storage)
        if intent is not None:
            yield intent


def _files_of_intents(table: Table, intents: Iterable[Intent]) -> Iterator[str]:
    """The files of the versions that open transactions are about to make the table's."""
    for intent in intents:
        for each in intent.tables:
            if each.uuid == table.metadata.table_uuid:
                yield from _files_at(each.new, table.storage)


def _of_nobody(
    table: Table,
    unnamed: Sequence[FileInfo],
    listed: Iterable[FileInfo],
    folder: str,
    rows: TableRows | None,
    places: Places,
    keep_backup: bool,
) -> tuple[list[FileInfo], tuple[str, ...]]:
    """The unnamed files that no other table and no undo needs; and the folders of other tables."""
    name, metadata, file, storage = table.identifier, table.metadata, table.metadata_location, table.storage
    rows = None if rows is None else asked_once(rows)
    backup = None if keep_backup or rows is None else backup_of(name, metadata, file, rows, places)
    search = Search(name, metadata, file, folder, places, "" if backup is None else backup.name)
    search.in_listing(listed, storage)
    if rows is not None and unnamed:  # to ask for all tables takes long where there are many
        search.in_own_folders(unnamed, storage)
        search.in_metastore(rows)
    neighbours = search.found()
    left = {
        place: file
        for file in unnamed
        if not (
            file.is_linked or is_journal(file.location) or neighbours.needs(place := places.anywhere(file.location))
        )
    }
    for location in chain(needed_for_undo(table), needed_by_erasures(metadata, file, storage)) if left else ():
        left.pop(places.anywhere(location), None)
    for location in _files_of_intents(table, _intents_of_rows(rows, storage)) if left and rows is not None else ():
        left.pop(places.anywhere(location), None)
    sharers = [(f"table {row}", f"hms-iceberg repair {row}", names_of(row, storage)) for row in neighbours.sharers]
    for version in _versions_by_path(table, left, places):
        sharers.append((f"the table by path with {version}", "its folder", _files_at(version, storage)))
    for what, remedy, names in sharers if left else ():
        try:
            for location in names:
                left.pop(places.anywhere(location), None)
        except (CorruptFileError, MissingFileError) as error:
            raise error.with_message(
                f"Cannot remove orphan files of table {'.'.join(table.identifier)}: {what} may name some of them, "
                f"and cannot be read. Repair it ({remedy}), or drop it. {error}"
            ) from error
    return list(left.values()), tuple(sorted(neighbours.folders.values()))


def _versions_by_path(table: Table, unnamed: Mapping[Place, FileInfo], places: Places) -> list[str]:
    """The newest versions, among some files, of tables by path that have one of the table's metadata folders. No
    metastore knows these tables, and their next version is named by nothing but its number."""
    own = OwnFolders.of(table.metadata, table.metadata_location, places).metadata
    versions = (table.metadata_location, *(entry.metadata_file for entry in table.metadata.metadata_log))
    known = max((number for each in versions if (number := version_number(each)) is not None), default=-1)
    newest: dict[Place, tuple[int, str]] = {}
    for place, file in unnamed.items():
        number = version_number(place.name)
        if number is not None and number > known and place.parent in own:
            newest[place.parent] = max((number, file.location), newest.get(place.parent, (-1, "")))
    return [location for _, location in newest.values()]


def _files_at(version: str, storage: Storage) -> Iterator[str]:
    yield from each_file_of(read_version(version, storage).metadata, version, storage)


def _inside(files: Iterable[FileInfo], root: Place, places: Places) -> Iterator[FileInfo]:
    """The files that are in a folder; an inventory may list a whole store."""
    folder = root.anywhere()
    return (file for file in files if (place := places.anywhere(file.location)).is_in(folder) and place != folder)


def _respelled(schemes: Mapping[str, str], authorities: Mapping[str, str]) -> Callable[[str], str]:
    """Locations by the scheme and the authority that their user calls equal."""
    if not (schemes or authorities):
        return str

    def respelled(location: str) -> str:
        scheme, authority, path = split_location(location)
        if scheme not in schemes and authority not in authorities:
            return location
        return f"{schemes.get(scheme, scheme)}://{authorities.get(authority, authority)}{path}"

    return respelled


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
    """Finds paths hidden by name (`_x`, `.x`), apart from partition folders such as `_x=1` and the table's own."""

    def __init__(self, table: Table, folder: str, places: Places) -> None:
        specs = table.metadata.partition_specs
        self._partitions = tuple(f"{field.name}=" for spec in specs for field in spec.fields)
        self._start = len(folder)
        root = places.anywhere(folder)
        own = OwnFolders.of(table.metadata, table.metadata_location, places).all()
        inside = {f"/{each.below(root)}/" for each in own if each.is_in(root) and each != root}
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
