"""Files of a migrated table that its Hive table lacks: whether Hive would read them as Iceberg does, and handing them
back.

A note beside these files is written before the first one is copied and goes with the metadata once the Hive table has
its name back. Until then, the next rollback of the same version goes on where this one stopped; any other process that
finds the note takes everything away that it names.
Source: Apache Hive, `FileUtils.escapePathName` and `makePartName`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hms_iceberg.arrow.metrics.footer_metrics import metrics_modes
from hms_iceberg.catalog import Catalog
from hms_iceberg.errors import InvalidInputError, MigrationError, UnsupportedError
from hms_iceberg.hms.hive_tables import HiveTables
from hms_iceberg.hms.rows.hive_rows import HivePartition, HiveTable
from hms_iceberg.migration.hive.footers import FooterReader
from hms_iceberg.migration.hive.format_footers import AVRO, URL, declared_schema, format_of
from hms_iceberg.migration.hive.hive_types import TypeOptions
from hms_iceberg.migration.hive.narrow_columns import misfitting, narrow_columns
from hms_iceberg.migration.hive.source import Listing, SourceFile, SourceTable, inspect_source, list_files
from hms_iceberg.migration.hive.source_columns import HIVE_NULL, stored_values
from hms_iceberg.migration.hive.source_reasons import partition_key
from hms_iceberg.migration.migration_journal import HandbackNote, MigrationRecord
from hms_iceberg.migration.migration_progress import Progress, in_threads, silent
from hms_iceberg.spec.data_types import BinaryType, FixedType, NestedField, TimestampType, TimestamptzType
from hms_iceberg.spec.manifests.manifest_values import ManifestEntry
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.snapshots_and_refs import MAIN_BRANCH
from hms_iceberg.spec.transforms.partition_transforms import IdentityTransform
from hms_iceberg.storage import Storage
from hms_iceberg.table import Table
from hms_iceberg.updates.machinery.manifest_files import entries_of, manifest_list_of

_THREADS = 16
_EXAMPLES = 10


@dataclass(frozen=True)
class FileCopy:
    """A data file of the Iceberg table, and where Hive is to find it."""

    source: str
    target: str
    size: int


@dataclass(frozen=True)
class Handback:
    """The files and partitions that a Hive table needs before it replaces the Iceberg table of version
    `metadata_location`: partitions that are `added` with their folders, or have `grown` (one without values if there
    are none)."""

    metadata_location: str
    copies: tuple[FileCopy, ...]
    added: tuple[HivePartition, ...]
    grown: tuple[tuple[str, ...], ...]

    @property
    def note(self) -> HandbackNote:
        """The note that is written before the handback starts."""
        partitions = tuple((each.values, each.storage.location) for each in self.added)
        return HandbackNote(self.metadata_location, tuple(copy.target for copy in self.copies), partitions)


def plan_handback(
    catalog: Catalog, hive: HiveTables, table: Table, backup: HiveTable, given: HandbackNote | None = None
) -> Handback:
    """Plans which files and partitions the Hive table lacks; what an earlier attempt gave it counts as lacking. An
    UnsupportedError, before anything is changed, has every reason for which Hive would not read the same rows."""
    found = _Plan(catalog, hive, table, backup, given)
    reasons = found.reasons()
    if reasons:
        text = "".join(f"\n  - {each}" for each in reasons)
        raise UnsupportedError(
            f"Table {'.'.join(table.identifier)} cannot go back as a Hive table with what was appended since its "
            f"migration:{text}\nNothing was changed. Without --as-hive, and with --discard-changes, it goes back as it "
            "was."
        )
    return found.handback()


class _Plan:
    def __init__(
        self, catalog: Catalog, hive: HiveTables, table: Table, backup: HiveTable, given: HandbackNote | None
    ) -> None:
        self._given_files = frozenset(given.files if given else ())
        self._given_partitions = frozenset(given.partitions if given else ())
        self._catalog = catalog
        self._storage = catalog.storage
        self._table = table
        self._backup = backup
        self._source = self._look_at_backup(hive)
        self._listing = self._list()
        manifests = manifest_list_of(table.current_snapshot(), self._storage)
        self._entries = [
            entry for manifest in manifests for entry in entries_of(manifest, self._storage) if entry.is_live
        ]
        known = {file.location for file in self._listing.files}
        live = {entry.data_file.file_path for entry in self._entries}
        self._gone = sorted(known - live)
        self._appended = [
            e.data_file for e in self._entries if e.data_file.is_data and e.data_file.file_path not in known
        ]
        self._places: dict[tuple[Any, ...], int] = {
            partition_key(values): number for number, values in enumerate(self._source.partition_values)
        }

    def _look_at_backup(self, hive: HiveTables) -> SourceTable:
        """Checks that the Hive table has the columns of the Iceberg table, and finds the partitions that it lacks."""
        backup = self._backup
        rows = hive.partitions(backup.database, backup.name) if backup.partition_keys else ()
        partitions = tuple(row for row in rows if (row.values, row.storage.location) not in self._given_partitions)
        url = declared_schema(backup, URL)
        avro = None if url is None else self._storage.read(url).decode()
        options = TypeOptions(TimestampType(), char_as_string=True)
        return replace(inspect_source(backup, partitions, options, avro), schema=self._table.schema())

    def _list(self) -> Listing:
        places = [row.storage.location for row in self._source.partitions]
        found = list_files(self._storage, places, _THREADS, silent)
        return replace(found, files=tuple(file for file in found.files if file.location not in self._given_files))

    # ------------------------------------------------------------------------------------------- reasons

    def reasons(self) -> list[str]:
        """Why Hive would not read the same rows; of files, a few examples."""
        reasons = [*self._of_history(self._table.metadata), *self._of_entries(self._entries)]
        if not reasons:
            reasons = [*self._of_partitions(), *self._of_formats()]
        if not reasons:
            reasons = [*self._of_footers(), *self._of_values()]
        return reasons[:_EXAMPLES]

    def _of_history(self, metadata: TableMetadata) -> Iterator[str]:
        first = min(metadata.schemas, key=lambda schema: schema.schema_id)
        if first.schema_id != 0 or any(_columns(each) != _columns(first) for each in metadata.schemas):
            yield "its columns were changed since, and Hive finds columns by the names that they had."
        if len(metadata.partition_specs) > 1:
            yield "its partition spec was changed since, and Hive has the partitions of the first."
        kept = {each.snapshot_id for each in metadata.ancestors_of(metadata.current_snapshot_id)}
        for name, ref in metadata.refs.items():
            if name != MAIN_BRANCH and ref.snapshot_id not in kept:
                yield f"its branch or tag {name!r} holds a state that is not part of the table's own history."

    def _of_entries(self, entries: Sequence[ManifestEntry]) -> Iterator[str]:
        deletes = sum(not entry.data_file.is_data for entry in entries)
        if deletes:
            yield f"rows were deleted from it ({deletes} delete files), and Hive has no deletes."
        if self._gone:
            yield (
                f"{len(self._gone)} files of the Hive table are not part of it any more (rows were deleted or changed, "
                f"files compacted, or somebody wrote to the backup), the first is {self._gone[0]}."
            )

    def _of_formats(self) -> Iterator[str]:
        for file in self._appended:
            number = self._places.get(partition_key(file.partition))
            wanted = format_of(self._backup) if number is None else self._source.formats[number]
            if str(file.file_format) != wanted:
                yield f"file {file.file_path} is {file.file_format}, and Hive's files there are {wanted}."
                return
            if wanted == AVRO:
                yield f"file {file.file_path} is Avro as Iceberg writes it, which Hive does not read in full."
                return

    def _of_partitions(self) -> Iterator[str]:
        for key, values in {partition_key(file.partition): file.partition for file in self._appended}.items():
            try:
                if key in self._places or not self._source.is_partitioned:
                    continue
                partition = self._new_partition(values)
            except (InvalidInputError, UnsupportedError) as error:
                yield str(error)
                continue
            if any(info.location not in self._given_files for info in self._storage.list(partition.storage.location)):
                yield f"the folder {partition.storage.location} of a new partition holds files already."

    def _of_footers(self) -> Iterator[str]:
        """Finds what Hive would read differently, by the columns in the files themselves."""
        schema = self._table.schema()
        every = {partition_key(file.partition): file.partition for file in self._appended}
        new = [values for key, values in every.items() if key not in self._places]
        source = replace(
            self._source,
            partition_values=(*self._source.partition_values, *new),
            formats=(*self._source.formats, *(format_of(self._backup) or "" for _ in new)),
        )
        places = {partition_key(values): number for number, values in enumerate(source.partition_values)}
        files = [
            SourceFile(f.file_path, f.file_size_in_bytes, 0, places[partition_key(f.partition)]) for f in self._appended
        ]
        if any(isinstance(schema.find_type(each), TimestampType) for each in schema.index_by_id):
            files += self._listing.files  # of which each must hold what the others hold
        reader = FooterReader(self._storage, source, metrics_modes(schema, {}))
        found = reader.read_all(source, files, _THREADS, silent)
        yield from found.problems
        for field_id, kinds in found.timestamps.items():
            if len(kinds) > 1:
                name = schema.find_column_name(field_id)
                yield f"column {name!r} holds instants in some files and times without zone in others."

    def _of_values(self) -> Iterator[str]:
        narrow, nested = narrow_columns(self._backup)
        if not self._appended:
            return
        for name in nested:
            yield f"column {name!r} has parts whose type in Hive holds less than in Iceberg."
        yield from misfitting(self._table, frozenset(file.file_path for file in self._appended), narrow)

    # ------------------------------------------------------------------------------------------ the plan

    def handback(self) -> Handback:
        added: dict[tuple[Any, ...], HivePartition] = {}
        grown: dict[tuple[str, ...], None] = {}
        copies = []
        taken = {file.location for file in self._listing.files}
        for file in self._appended:
            key = partition_key(file.partition)
            number = self._places.get(key)
            if number is None:
                folder = added.setdefault(key, self._new_partition(file.partition)).storage.location
            else:
                folder = self._source.partitions[number].storage.location
                grown[self._source.partitions[number].values] = None
            target = _free_name(f"{folder.rstrip('/')}/{file.file_path.rsplit('/', 1)[-1]}", taken)
            taken.add(target)
            copies.append(FileCopy(file.file_path, target, file.file_size_in_bytes))
        return Handback(self._table.metadata_location, tuple(copies), tuple(added.values()), tuple(grown))

    def _new_partition(self, stored: tuple[Any, ...]) -> HivePartition:
        keys = self._source.schema.fields[len(self._source.schema.fields) - len(self._backup.partition_keys) :]
        values = hive_values(keys, stored)
        location = f"{self._source.location}/{hive_folder(self._backup, values)}"
        partition = HivePartition(values, replace(self._backup.storage, location=location))
        if partition_key(stored_values(partition, keys)) != partition_key(stored):
            raise UnsupportedError(f"the partition {stored} has no name in Hive that means the same.")
        return partition


def _columns(schema: Schema) -> list[tuple[Any, ...]]:
    """The parts of a schema that readers depend on: ids, names, types and whether null is allowed; not comments."""
    return [
        (field_id, schema.find_column_name(field_id), str(field.field_type), field.required)
        for field_id, field in schema.index_by_id.items()
    ]


def _free_name(location: str, taken: set[str]) -> str:
    folder, _, name = location.rpartition("/")
    number, free = 0, location
    while free in taken:
        number += 1
        free = f"{folder}/{number}-{name}"
    return free


# ---------------------------------------------------------------------------------------- partitions of Hive

_ESCAPED = frozenset("\"#%'*/:=?\\{[]^\x7f") | {chr(code) for code in range(1, 32)}


def hive_values(keys: Sequence[NestedField], stored: Sequence[Any]) -> tuple[str, ...]:
    """The values of a partition as text in Hive's form."""
    return tuple(_text(key, value) for key, value in zip(keys, stored, strict=True))


def _text(key: NestedField, value: Any) -> str:
    if value is None:
        return HIVE_NULL
    if value == "" or isinstance(key.field_type, (BinaryType, FixedType)):
        raise UnsupportedError(f"Hive has no partition {key.name}={value!r}.")
    text = IdentityTransform().to_human_string(key.field_type, value)
    return text.replace("T", " ") if isinstance(key.field_type, (TimestampType, TimestamptzType)) else text


def hive_folder(table: HiveTable, values: Sequence[str]) -> str:
    """The folder of a partition below its table's: `month=1/day=2`."""
    names = (key.name for key in table.partition_keys)
    return "/".join(f"{_escaped(name)}={_escaped(value)}" for name, value in zip(names, values, strict=True))


def _escaped(text: str) -> str:
    return "".join(f"%{ord(char):02X}" if char in _ESCAPED else char for char in text)


# ------------------------------------------------------------------------------------- files that are given back


logger = logging.getLogger(__name__)

COPYING = "Copying files"
_COPIES = 8
_CHUNK = 8 * 1024 * 1024


def hand_back(
    hive: HiveTables, record: MigrationRecord, backup: HiveTable, handback: Handback, progress: Progress
) -> None:
    """Copies the files and adds the partitions; continues an earlier attempt at the same version where it stopped."""
    if record.handback != handback.note:
        undo_handback(hive, record, backup)
        record.note_handback(handback.note)
    copied = in_threads(lambda copy: _copy(record.storage, copy), handback.copies, _COPIES)
    for done, _ in enumerate(copied, start=1):
        progress(COPYING, done, len(handback.copies))
    if handback.added:
        there = {each.values for each in hive.partitions(backup.database, backup.name)}
        missing = [each for each in handback.added if each.values not in there]
        hive.add_partitions(backup.database, backup.name, missing)
    hive.forget_statistics(backup.database, backup.name, handback.grown)


def undo_handback(hive: HiveTables, record: MigrationRecord, backup: HiveTable | None) -> None:
    note = record.handback
    if note is None:
        return
    if backup is not None:
        for values, place in note.partitions:
            hive.drop_partition(backup.database, backup.name, values, place)
    for _ in in_threads(record.storage.delete, note.files, _COPIES):
        pass
    record.forget_handback()
    logger.info("Took %d copied files away from %s", len(note.files), backup)


def _copy(storage: Storage, copy: FileCopy) -> None:
    if storage.exists(copy.target):
        if storage.length(copy.target) == copy.size:
            return
        storage.delete(copy.target)
    with storage.open_input(copy.source) as source, storage.open_output(copy.target) as target:
        while chunk := source.read(_CHUNK):
            target.write(chunk)
    if storage.length(copy.target) != copy.size:
        raise MigrationError(f"File {copy.source} was not copied whole to {copy.target}.")
