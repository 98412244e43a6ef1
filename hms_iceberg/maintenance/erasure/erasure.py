"""One erasure of a table: what it finds, how the table moves, what goes in the end, and the proof."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hms_iceberg.arrow.deletes.deleted_rows import read_position_deletes
from hms_iceberg.arrow.parallel import in_parallel
from hms_iceberg.errors import CommitConflictError, CorruptDataFileError, MissingFileError, UnsupportedError
from hms_iceberg.expressions.text.parser import parse
from hms_iceberg.maintenance.erasure.erasure_journal import ErasureIntent, ErasureJournal
from hms_iceberg.maintenance.erasure.erasure_plan import ErasurePlan
from hms_iceberg.maintenance.erasure.erasure_report import FORMAT
from hms_iceberg.maintenance.erasure.forgotten_rows import Reading, RowFinder, readings_of, refuse_unreadable
from hms_iceberg.maintenance.erasure.metadata_mentions import Mentions, texts_of
from hms_iceberg.maintenance.erasure.rewritten_history import OPEN_ERASURE, FileRewriting, ForgetRows, NamedByHistory
from hms_iceberg.metastore import MetadataVersion
from hms_iceberg.spec.manifests.manifest_values import DataFile, DataFileContent
from hms_iceberg.spec.metadata.table_metadata import TableMetadata, changed, now_ms
from hms_iceberg.spec.metadata_columns import DELETE_FILE_PATH
from hms_iceberg.spec.values.datetimes import format_milliseconds
from hms_iceberg.storage import HasFolders, Places, Storage
from hms_iceberg.table.needed_files.named_files import OwnFolders, delete_files, files_of, is_in_any
from hms_iceberg.table.needed_files.needed_by_others import (
    MIGRATION_JOURNALS,
    REPAIR_JOURNALS,
    backup_of,
    is_journal,
    names_of,
    needed_by_others,
    table_rows_of,
)
from hms_iceberg.table.needed_files.remembered_rows import asked_once
from hms_iceberg.table.table import Table
from hms_iceberg.transaction.workspace import read_version
from hms_iceberg.updates.machinery.manifest_files import entries_of
from hms_iceberg.updates.machinery.update import FileReader, Update, Workspace

logger = logging.getLogger(__name__)

_CHUNK = 1 << 22


@dataclass(frozen=True)
class EndErasure(Update):
    """Takes the metadata files from before an erasure out of the table's log, and its mark off the table."""

    locations: frozenset[str]

    def validate(self, start: TableMetadata, base: TableMetadata, reader: FileReader) -> None:
        """Accepts every history."""

    def apply(self, base: TableMetadata, workspace: Workspace) -> TableMetadata:
        """The metadata without these entries of its log and the mark; the same object if there are none."""
        kept = tuple(each for each in base.metadata_log if each.metadata_file not in self.locations)
        properties = {key: value for key, value in base.properties.items() if key != OPEN_ERASURE}
        if len(kept) == len(base.metadata_log) and len(properties) == len(base.properties):
            return base
        return changed(base, workspace.now_ms(), metadata_log=kept, properties=properties)


class Erasure:
    """One erasure of a table, from its plan to its end."""

    def __init__(self, table: Table, where: str, case_sensitive: bool, give_up_backup: bool) -> None:
        self._table = table
        self._name = ".".join(table.identifier)
        self._where = where
        self._predicate = parse(where)
        self._case_sensitive = case_sensitive
        self._give_up_backup = give_up_backup
        rows = table_rows_of(table.metastore)
        self._rows = None if rows is None else asked_once(rows)

    def _readings(self) -> tuple[Reading, ...]:
        return readings_of(self._table.metadata, self._predicate, self._name, self._case_sensitive)

    def _finder(self, trusts_statistics: bool) -> RowFinder:
        return RowFinder(self._table.metadata, self._table.storage, self._readings(), trusts_statistics)

    # -------------------------------------------------------------------------------------------- the plan

    def plan(self, trusts_statistics: bool) -> ErasurePlan:
        """Plans the erasure; if it trusts statistics, files that they rule out are not opened."""
        table, metadata, storage = self._table, self._table.metadata, self._table.storage
        finder = self._finder(trusts_statistics)
        refuse_unreadable(finder.readings[0], self._name)
        named = NamedByHistory.of(metadata, storage)
        looking = FileRewriting(storage, _nothing)
        found = looking.look(finder, named)
        readers = _readers(named, found, storage)
        mentions = Mentions(texts_of(finder.readings))
        noted = sum(mentions.without(each.summary) is not each.summary for each in metadata.snapshots)
        files = {path: (len(gone), gone.of) for path, gone in found.items()}
        written = [path for path, gone in found.items() if not gone.is_whole]
        read = {field_id for reading in finder.readings for field_id in reading.field_ids}
        return ErasurePlan(
            table=self._name,
            where=self._where,
            rows=sum(len(gone) for gone in found.values()),
            files=files,
            whole_files=len(found) - len(written),
            bytes=sum(named.data[path][0].file.file_size_in_bytes for path in written),
            snapshots=tuple(each.snapshot_id for each in metadata.snapshots if each.snapshot_id in readers),
            refs=tuple(sorted(name for name, ref in table.refs().items() if ref.snapshot_id in readers)),
            deletes=tuple(looking.look_at_deletes(finder, named)),
            traces=sum(map(finder.may_hold, named.gone)) + noted,
            mentions=tuple(mentions.left_in(metadata)),
            statistics=tuple(path for path, snapshot_id in _statistics(metadata) if snapshot_id in readers),
            dropped_columns=not all(metadata.schema().has_field(each) for each in read),
        )

    def needed_by(self, files: Iterable[str]) -> tuple[str, ...]:
        """Who else needs files with such rows, or the metadata that names them, as parts of a sentence."""
        version = MetadataVersion(self._table.metadata_location, self._table.metadata)
        described = files_of(version.metadata, version.location, self._table.storage).metadata
        return self._needed([*files, *described])

    def _needed(self, files: Iterable[str]) -> tuple[str, ...]:
        table, rows = self._table, self._rows
        if rows is None:
            return ()
        asked = list(files)
        version = MetadataVersion(table.metadata_location, table.metadata)
        keep = not self._give_up_backup
        needed = needed_by_others(table.identifier, version, asked, table.storage, rows, keep_backup=keep)
        return tuple(sorted(set(needed.values()) | self._named_elsewhere(asked)))

    def refuse(self, needed_by: Iterable[str]) -> None:
        """Refuses if anybody else needs files that would go."""
        who = "; ".join(needed_by)
        if who:
            raise UnsupportedError(
                f"Cannot forget rows of table {self._name}: files that hold or describe them are needed by {who}. "
                "Drop what shares them first, or forget the rows there; a Hive table that is only kept as the way back "
                "from a migration is given up with --give-up-backup (give_up_backup=True)."
            )

    def _named_elsewhere(self, files: Iterable[str]) -> set[str]:
        """Other tables, wherever their folders are, that name some of the files."""
        assert self._rows is not None
        places = Places(self._table.storage)
        asked = {places.anywhere(each) for each in files}
        found = set()
        for row in self._rows.rows():
            if row.is_iceberg and row.identifier != self._table.identifier:
                for location in names_of(row, self._table.storage):
                    if places.anywhere(location) in asked:
                        found.add(f"table {row}")
                        break
        return found

    # ------------------------------------------------------------------------------------------- the swap

    def move(self, journal: ErasureJournal) -> None:
        """Moves the table to the history without the rows."""
        table, storage = self._table, self._table.storage
        transaction = table.begin_transaction()
        rewriting = FileRewriting(storage, transaction.track)

        def note(base: TableMetadata, new: TableMetadata) -> None:
            kept = set(files_of(new, "", storage))
            gone = {each for each in (*files_of(base, "", storage), *rewriting.data) if each not in kept}
            journal.will_delete(gone, rewriting.replaced())

        update = ForgetRows(
            self._predicate, self._name, journal.intent.erasure_id, self._case_sensitive, rewriting, note
        )
        try:
            transaction.add(update)
        except BaseException:
            transaction.abandon()
            raise
        table.moved(transaction.commit())

    # -------------------------------------------------------------------------------------------- the end

    def clean(self, journal: ErasureJournal) -> tuple[dict[str, Any], dict[str, str]]:
        """Deletes the old files; the report, and what could not be deleted."""
        table, storage = self._table, self._table.storage
        proof = self.proof()
        self._refuse_lost_deletes(journal)
        old = frozenset(self._old_versions(journal.intent.erasure_id))
        doomed = [*journal.files(), *old, *self._ways_back(journal)]
        self.refuse(self._needed(self._unnamed_of(doomed, old)))
        journal.will_delete(old, {})  # once they are out of the log, nothing else tells of them
        transaction = table.begin_transaction()
        transaction.add(EndErasure(old))
        table.moved(transaction.commit())
        files = self._unnamed_of(doomed)
        if journal.deleted is None:
            replaced = sorted(journal.replaced().items())
            rewritten = {before: {new: _facts(new, storage) for new in made} for before, made in replaced}
            journal.deletes({"deleted": {each: _facts(each, storage) for each in files}, "rewritten": rewritten})
        left = delete_files(storage, files, self._name)
        self._delete_empty_folders(files)
        logger.info("Deleted %d old files of the erasure of %s", len(files) - len(left), self._name)
        return self.report(journal.intent, journal.deleted or {}, proof), left

    def _refuse_lost_deletes(self, journal: ErasureJournal) -> None:
        """Refuses to go on while deletes name files that were replaced: only as long as these are there can people see
        which rows were meant."""
        metadata, storage = self._table.metadata, self._table.storage
        lost = _lost_deletes(metadata, NamedByHistory.of(metadata, storage), storage, journal.replaced())
        if lost:
            file, data_file = next(iter(lost.items()))
            raise CommitConflictError(
                f"Cannot finish the erasure of table {self._name}: {len(lost)} delete files name data files that it "
                f"had replaced, such as {file} of {data_file}. Another engine committed them while the table moved, so "
                "that the rows that they meant to delete are there still. Nothing was deleted. Delete these rows "
                f"again, take the delete files out (hms-iceberg remove-dangling-deletes {self._name}), and go on with: "
                f"hms-iceberg forget {self._name} --resume"
            )

    def _unnamed_of(self, files: Iterable[str], old: frozenset[str] = frozenset()) -> list[str]:
        """The given files that the table does not name, or names only as its `old` versions."""
        table, places = self._table, Places(self._table.storage)
        current = files_of(table.metadata, table.metadata_location, table.storage)
        named = {places.anywhere(each) for each in current if each not in old}
        return [each for each in files if places.anywhere(each) not in named]

    def _ways_back(self, journal: ErasureJournal) -> list[str]:
        """The journals of repairs, which lead back to the rows, and of a migration that cannot be taken back."""
        table, storage = self._table, self._table.storage
        prefixes = [REPAIR_JOURNALS]
        places, version = Places(storage), (table.metadata, table.metadata_location)
        backup = None if self._rows is None else backup_of(table.identifier, *version, self._rows, places)
        if backup is None or journal.intent.give_up_backup:
            prefixes.append(MIGRATION_JOURNALS)
        listed = (each.location for each in storage.list(journal.folder))
        return [each for each in listed if each.rpartition("/")[2].startswith(tuple(prefixes))]

    def _delete_empty_folders(self, files: Iterable[str]) -> None:
        """Deletes the folders below the table's own that were left empty: their names may tell a partition's value."""
        storage, metadata = self._table.storage, self._table.metadata
        if not isinstance(storage, HasFolders):
            return
        places = Places(storage)
        own = frozenset(OwnFolders.of(metadata, self._table.metadata_location, places).all())
        folders = {each.rpartition("/")[0] for each in files}
        while folders:
            below = {each for each in folders if (place := places.anywhere(each)) not in own and is_in_any(place, own)}
            gone = {each for each in below if storage.delete_empty_folder(each)}
            folders = {each.rpartition("/")[0] for each in gone}

    def _old_versions(self, erasure_id: str) -> list[str]:
        """The metadata files in the log from before the table moved: those without the mark of the erasure."""
        old = []
        for entry in self._table.metadata.metadata_log:
            try:
                properties = read_version(entry.metadata_file, self._table.storage).metadata.properties
            except MissingFileError:
                properties = {}
            if properties.get(OPEN_ERASURE) != erasure_id:
                old.append(entry.metadata_file)
        return old

    def proof(self) -> list[dict[str, Any]]:
        """Reads every live data file; CorruptDataFileError if a row matches."""
        finder, storage = self._finder(trusts_statistics=False), self._table.storage
        named = NamedByHistory.of(self._table.metadata, storage)

        def look(path: str) -> dict[str, Any]:
            live = named.data[path][0]
            matches = len(finder.read(live.file, live.sequence_number))
            return {"file": path, "rows": live.file.record_count, "matches": matches}

        looked = list(in_parallel(look, named.data, self._table.location()))
        keys = FileRewriting(storage, _nothing).look_at_deletes(finder, named)
        looked += [{"file": path, "rows": None, "matches": path in keys} for path, _ in named.deletes]
        wrong = [each for each in looked if each["matches"]]
        if wrong:
            raise CorruptDataFileError(
                f"Cannot prove that the rows of table {self._name} are forgotten: {len(wrong)} files hold such "
                f"rows, the first is {wrong[0]['file']}. They were added since. "
                f"Nothing was deleted. Go on with: hms-iceberg forget {self._name} --resume"
            )
        return looked

    def report(self, intent: ErasureIntent, done: Mapping[str, Any], proof: list[dict[str, Any]]) -> dict[str, Any]:
        """The report, which is not signed yet."""
        return {
            "format": FORMAT,
            "table": self._name,
            "table-uuid": intent.table_uuid,
            "where": intent.digest,
            "begun": format_milliseconds(intent.begun_ms),
            "finished": format_milliseconds(now_ms()),
            "metadata-file": self._table.metadata_location,
            "snapshots": len(self._table.metadata.snapshots),
            "rows": intent.rows,
            **done,
            "proof": {
                "says": "Every file that a snapshot names was read: all values of the predicate's columns in data "
                "files, the keys and further columns of delete files. Statistics were not believed.",
                "files": [{**each, "matches": 0} for each in proof],
                "matches": 0,
            },
            "not-proven": {
                "says": "Files below the table that nothing names were not read; mentions of a text of the predicate "
                "in properties, names and comments stay.",
                "unnamed-files": self._unnamed(),
                "mentions": list(Mentions(texts_of(self._readings())).left_in(self._table.metadata)),
            },
        }

    def _unnamed(self) -> list[str]:
        """Files below the table's folder that the table does not name, such as remains of failed writes."""
        table, places = self._table, Places(self._table.storage)
        named = {places.anywhere(each) for each in files_of(table.metadata, table.metadata_location, table.storage)}
        listed = (each.location for each in table.storage.list(table.location()))
        own = (each for each in listed if not (is_journal(each) or each.endswith("/version-hint.text")))
        return sorted(each for each in own if places.anywhere(each) not in named)


def _nothing(location: str) -> None:
    """Takes no note: nothing is written."""


def _statistics(metadata: TableMetadata) -> Iterator[tuple[str, int]]:
    """Statistics files of both kinds, each with its snapshot."""
    yield from ((each.statistics_path, each.snapshot_id) for each in metadata.statistics)
    yield from ((each.statistics_path, each.snapshot_id) for each in metadata.partition_statistics)


def _readers(named: NamedByHistory, found: Mapping[str, Any], storage: Storage) -> set[int]:
    """The snapshots that read some files."""
    of_manifest: dict[tuple[str, int | None], bool] = {}
    for key, manifest in named.manifests.items():
        entries = entries_of(manifest, storage)
        of_manifest[key] = any(entry.is_live and entry.data_file.file_path in found for entry in entries)
    return {
        snapshot_id
        for snapshot_id, rows in named.lists.items()
        if any(of_manifest[row.manifest_path, row.first_row_id] for row in rows)
    }


def _facts(location: str, storage: Storage) -> dict[str, Any] | None:
    """The size and the checksum of a file; None if it is gone."""
    digest, size = hashlib.sha256(), 0
    try:
        with storage.open_input(location) as opened:
            while chunk := opened.read(_CHUNK):
                digest.update(chunk)
                size += len(chunk)
    except MissingFileError:
        return None
    return {"bytes": size, "sha256": digest.hexdigest()}


def _lost_deletes(
    metadata: TableMetadata, named: NamedByHistory, storage: Storage, replaced: Collection[str]
) -> Mapping[str, str]:
    """By delete file that a branch or tag reads, a replaced data file that it names and that no version names now:
    another engine committed it across the erasure, it deletes nothing, and the rows that it meant are there again."""
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
