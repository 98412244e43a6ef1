"""The files of one transaction, its metadata file among them: recorded when created, deleted if they stay unused.

Columns are found in files by field id, partitions by spec id. Both are drawn when an update is applied, and again when
it is replayed; files stay what they were written as. So a replay must not give the ids to something else.
"""

from __future__ import annotations

import logging
import re
import time
import uuid
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar, cast

from hms_iceberg.encryption.encrypted_tables import check_encryption, check_integrity
from hms_iceberg.encryption.key_services import KeyService
from hms_iceberg.errors import CommitConflictError, CorruptMetadataError, FileAlreadyExistsError, UnsupportedError
from hms_iceberg.metastore import MetadataVersion, TablePointer
from hms_iceberg.spec.metadata.metadata_json import compress, metadata_from_json, metadata_to_json
from hms_iceberg.spec.metadata.metadata_snapshots import append_metadata_log, suppress_intermediate_snapshots
from hms_iceberg.spec.metadata.table_metadata import PREVIEWED_FORMAT_VERSION, TableMetadata
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.table_properties import (
    METADATA_COMPRESSION,
    METADATA_DELETE_AFTER_COMMIT,
    metadata_folder,
)
from hms_iceberg.storage import Places, PreviewsVersions, Storage, is_previewing, read_limit_of, same_place

T = TypeVar("T")
logger = logging.getLogger(__name__)


class FileWorkspace:
    """Creates files for updates and remembers which attempt uses which: files made within `once` belong to every
    attempt that asks for the key, `track`ed ones (data files) to all until they are released, others to one."""

    def __init__(self, storage: Storage, clock_ms: Callable[[], int] | None = None) -> None:
        self.storage = storage
        self.commit_id = str(uuid.uuid4())
        self._clock_ms = clock_ms or (lambda: time.time_ns() // 1_000_000)
        self._created: dict[str, None] = {}
        self._tracked: dict[str, None] = {}
        self._used: set[str] = set()
        self._once: dict[Hashable, tuple[Any, frozenset[str]]] = {}
        self._numbers: Counter[str] = Counter()
        self.last_version: tuple[str, bytes] | None = None  # location and JSON of the last metadata file

    @property
    def created(self) -> tuple[str, ...]:
        """Locations of all files created so far, in order; tracked ones are not among them."""
        return tuple(self._created)

    @property
    def key_service(self) -> KeyService | None:
        """The key service of the storage's catalog; None if it has none."""
        return getattr(self.storage, "key_service", None)

    def read(self, location: str) -> bytes:
        return self.storage.read(location)

    def now_ms(self) -> int:
        return self._clock_ms()

    def next_number(self, kind: str) -> int:
        """0, 1, 2 … for each `kind` of file name."""
        self._numbers[kind] += 1
        return self._numbers[kind] - 1

    def create(self, location: str, data: bytes) -> None:
        """Writes a new file; it is recorded first, so that a write that fails half-way is cleaned up as well. A file
        that is there already is not touched."""
        self._created[location] = None
        self._used.add(location)
        try:
            self.storage.create(location, data)
        except FileAlreadyExistsError:  # somebody else's file: never ours to delete
            del self._created[location]
            raise

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """Does some work once for all attempts of a commit; its files count as used by each attempt that asks for
        `key`."""
        if key not in self._once:
            before = set(self._created)
            result = make()
            self._once[key] = (result, frozenset(self._created.keys() - before))
        result, files = self._once[key]
        self._used |= files
        return cast(T, result)

    def release(self, location: str) -> None:
        """Notes that the current attempt does not use a file."""
        self._used.discard(location)

    def track(self, location: str) -> None:
        """Notes a file that was written for this transaction, so that a certain failure deletes it."""
        self._tracked[location] = None
        self._used.add(location)

    @contextmanager
    def all_or_nothing(self) -> Iterator[None]:
        """Deletes what a failed block has created and tracked, and forgets it."""
        created, tracked, used, once = dict(self._created), dict(self._tracked), set(self._used), dict(self._once)
        try:
            yield
        except BaseException:
            for location in (self._created.keys() - created.keys()) | (self._tracked.keys() - tracked.keys()):
                self.delete_quietly(location)
            self._created, self._tracked, self._used, self._once = created, tracked, used, once
            raise

    def begin_attempt(self) -> None:
        """Begins an attempt, which uses none of the files yet; nothing is deleted."""
        self._used = set(self._tracked)

    def used(self) -> frozenset[str]:
        """The files that the current attempt uses."""
        return frozenset(self._used)

    def clean_up(self, committed: frozenset[str] | None) -> list[str]:
        """Deletes the files that the committed attempt (None after a failure) does not use, once the outcome is
        certain, and returns them. A file that cannot be deleted is logged and left: the outcome stands."""
        doomed = [each for each in (*self._created, *self._tracked) if each not in (committed or ())]
        deleted = []
        for location in doomed:
            try:
                self.storage.delete(location)
                deleted.append(location)
            except Exception as error:
                logger.warning("Could not delete the unused file %s: %s", location, error)
        self._created.clear()
        self._tracked.clear()
        self._once.clear()
        return deleted

    def delete_quietly(self, location: str) -> None:
        """Deletes a file that nobody needs any more; a failure does not matter."""
        with suppress(Exception):
            self.storage.delete(location)


def read_current(pointer: TablePointer, storage: Storage) -> MetadataVersion:
    """Reads the metadata file that a metastore names, and checks that of an encrypted table, and of a folder."""
    location = pointer.metadata_location
    data = storage.read(location)
    version = MetadataVersion(location, _metadata(data, location, storage))
    check_integrity(pointer.properties, data, version.metadata, location)
    if pointer.is_folder and not same_place(pointer.location, version.metadata.location, storage):
        raise CorruptMetadataError(
            f"The metadata file {location} is not of the table at {pointer.location}: its table is at "
            f"{version.metadata.location}. See what `hms-iceberg repair` would do; if the table was copied here, "
            "rewrite its paths (rewrite_table_path), or read it by this file."
        )
    return version


def _metadata(data: bytes, location: str, storage: Storage) -> TableMetadata:
    return metadata_from_json(data, location, preview=is_previewing(storage), limit=read_limit_of(storage))


_VERSION = re.compile(r"(\d+)-[^/]*$")


def read_version(location: str, storage: Storage) -> MetadataVersion:
    data = storage.read(location)
    return MetadataVersion(location, _metadata(data, location, storage))


def storage_of(metadata: TableMetadata, storage: Storage) -> Storage:
    """The storage that the files of a table are read from, which may show a draft's metadata in today's form."""
    if metadata.format_version == PREVIEWED_FORMAT_VERSION and isinstance(storage, PreviewsVersions):
        return storage.of_table(metadata.location)
    return storage


def refuse_previewed(metadata: TableMetadata, name: str) -> None:
    """Refuses to change a table of a format version of which only a preview is read."""
    if metadata.format_version == PREVIEWED_FORMAT_VERSION:
        raise UnsupportedError(
            f"Cannot change table {name}: it has format version {PREVIEWED_FORMAT_VERSION}, of which only a preview "
            "is read. Change it by the engine that wrote it."
        )


def next_location(base_location: str | None, metadata: TableMetadata) -> str:
    """A fresh location for the version that follows the one at `base_location`: `<V>-<uuid>.metadata.json`."""
    version = 0
    if base_location is not None:
        match = _VERSION.search(base_location)
        version = int(match.group(1)) + 1 if match else 0
    extension = ".gz.metadata.json" if METADATA_COMPRESSION.of(metadata.properties) == "gzip" else ".metadata.json"
    folder = metadata_folder(metadata.location, metadata.properties)
    return f"{folder}/{version:05d}-{uuid.uuid4()}{extension}"


def write_version(base: MetadataVersion | None, metadata: TableMetadata, workspace: FileWorkspace) -> MetadataVersion:
    """Writes the metadata JSON that follows `base`, with `base` added to its metadata log; the metastore does not know
    the new version yet."""
    check_encryption(base.metadata if base else None, metadata)
    if base is not None:
        metadata = suppress_intermediate_snapshots(metadata, base.metadata)
        metadata = append_metadata_log(metadata, base.location, base.metadata.last_updated_ms)
    location = next_location(base.location if base else None, metadata)
    data = metadata_to_json(metadata)
    is_compressed = METADATA_COMPRESSION.of(metadata.properties) == "gzip"
    workspace.create(location, compress(data) if is_compressed else data)
    workspace.last_version = location, data
    return MetadataVersion(location, metadata)


def delete_dropped_versions(base: MetadataVersion, new: MetadataVersion, workspace: FileWorkspace) -> None:
    """Deletes metadata files that fell off the log, if `write.metadata.delete-after-commit.enabled`; as in Apache
    Iceberg, a table that was registered from one of them loses it, as asking for all tables would cost too much."""
    if not METADATA_DELETE_AFTER_COMMIT.of(new.metadata.properties):
        return
    places = Places(workspace.storage)
    locations = (new.location, *(entry.metadata_file for entry in new.metadata.metadata_log))
    kept = {places.anywhere(each) for each in locations}
    for entry in base.metadata.metadata_log:
        if places.anywhere(entry.metadata_file) not in kept:
            workspace.delete_quietly(entry.metadata_file)


def check_new_ids(start: TableMetadata, written: TableMetadata, replayed: TableMetadata, table: str) -> None:
    """Refuses a replay that gives columns or specs other ids than a transaction's files were written with: added
    columns draw ids anew, and so do those that a concurrent commit dropped or renamed."""
    old, mine, new = start.schema(), written.schema(), replayed.schema()
    if not mine.same_as(old):
        _check_names(old, mine, new, table)
    for field_id, field in mine.index_by_id.items():
        if old.has_field(field_id):
            continue
        now = new.index_by_id.get(field_id)
        if now != field or new.find_column_name(field_id) != mine.find_column_name(field_id):
            raise _taken(table, f"column {field}", now)
    for spec_id, spec in written.specs_by_id.items():
        if spec_id not in start.specs_by_id and replayed.specs_by_id.get(spec_id) != spec:
            raise _taken(table, f"partition spec {spec_id} {spec}", replayed.specs_by_id.get(spec_id))


def _check_names(old: Schema, mine: Schema, new: Schema, table: str) -> None:
    """Refuses another column in the place of one that was there. Some sessions match names without regard to case."""
    ids: dict[str, set[int]] = {}
    for name, field_id in new.index_by_name.items():
        ids.setdefault(name.lower(), set()).add(field_id)
    for field_id in old.index_by_id:
        column = mine.find_column_name(field_id)
        if column is None or new.find_column_name(field_id) == column:
            continue
        others = ids.get(column.lower(), set()) - {field_id}
        if others:
            now = ", ".join(str(new.find_field(each)) for each in sorted(others))
            raise CommitConflictError(
                f"Cannot commit to table {table}: its files were written with column {column!r} as id {field_id}, and "
                f"a concurrent commit dropped or renamed that column. The column of this name would be {now}, without "
                "the values of the files. Repeat the transaction on the newer version."
            )


def _taken(table: str, what: str, now: object) -> CommitConflictError:
    return CommitConflictError(
        f"Cannot commit to table {table}: the transaction adds {what} and files that were written with it, and a "
        f"concurrent commit took the id: it is now {now}. Repeat the transaction on the newer version."
    )


def check_same_ids(planned: TableMetadata, now: TableMetadata, table: str) -> None:
    """Refuses to replace or create a table if its files have other ids than the table would have."""
    if now.schema().same_as(planned.schema()) and now.spec().fields == planned.spec().fields:
        return
    raise CommitConflictError(
        f"Cannot replace table {table}: it was created, dropped or evolved by a concurrent commit, so that its columns "
        f"have other ids than those that data was written with. They were {planned.schema()} when the change was "
        f"begun, and would be {now.schema()}. Repeat the change."
    )
