"""The manifest lists and manifests of a table that can be read, what is wrong with the rest, and steps of repairs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from hms_iceberg.arrow.parallel import in_parallel
from hms_iceberg.errors import CorruptFileError, CorruptManifestError, MissingFileError
from hms_iceberg.maintenance.check.digests import Listed, ManifestDigest, digest
from hms_iceberg.maintenance.check.summary_check import EntryCounts
from hms_iceberg.spec.manifests.manifest_avro import iterate_manifest
from hms_iceberg.spec.manifests.manifest_list_avro import check_entries, decode_manifest_list
from hms_iceberg.spec.manifests.manifest_values import ManifestEntry, ManifestEntryStatus, ManifestFile
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.snapshots_and_refs import Snapshot
from hms_iceberg.storage import Storage


@dataclass(frozen=True)
class RepairStep:
    """One damage and what is done about it. `str()` tells all of it in a sentence or two.

    Attributes:
        kind: what is damaged: `metadata`, `metastore row`, `manifest list`, `manifest`, `bounds`, `duplicates`,
            `summary`, `statistics` or `files`.
        damage: what was found.
        remedy: what is done; None if nothing can be.
        loses: what is lost for good; None if nothing is.
    """

    kind: str
    damage: str
    remedy: str | None
    loses: str | None = None

    @property
    def is_possible(self) -> bool:
        """Whether anything can be done."""
        return self.remedy is not None

    def __str__(self) -> str:
        lost = f" LOST: {self.loses}." if self.loses else ""
        return f"{self.damage} {self.remedy or 'Nothing can be done about it.'}{lost}"


DAMAGE = (MissingFileError, CorruptFileError)
"""Errors that are about a file itself. Others, such as a time-out, say nothing about it, and end a repair."""


@dataclass
class Examination:
    """A table's metadata files, read."""

    metadata: TableMetadata
    storage: Storage  # where its files are
    entries: ManifestEntries  # the entries of each manifest that could be read
    # the manifests of each snapshot whose manifest list could be read
    lists: dict[int, list[ManifestFile]] = field(default_factory=dict)
    damaged_lists: dict[int, str] = field(default_factory=dict)  # by snapshot id, what is wrong with its manifest list
    damaged_manifests: dict[str, str] = field(default_factory=dict)  # by location, what is wrong with the manifest
    # by location of a whole manifest, what is wrong with its row in manifest lists
    wrong_rows: dict[str, str] = field(default_factory=dict)
    remade: set[str] = field(default_factory=set)  # locations of whole manifests whose entries are made anew
    # tells which of some files belong to other tables
    of_others: Callable[[Iterable[str]], Collection[str]] = lambda _: ()

    @property
    def rows(self) -> dict[str, ManifestFile]:
        """The row of each manifest that a list names, by its location."""
        return {manifest.manifest_path: manifest for manifests in self.lists.values() for manifest in manifests}

    def listed(self, snapshot_id: int) -> list[Listed] | None:
        """The manifests of a snapshot; None if its list or one of them is damaged."""
        manifests = self.lists.get(snapshot_id)
        return None if manifests is None else self.entries.digests(manifests)

    def counts(self, snapshot_id: int) -> EntryCounts | None:
        """Totals over the entries of a snapshot; None if it is damaged."""
        listed = self.listed(snapshot_id)
        return None if listed is None else EntryCounts.sum((each.counts for _, each in listed), snapshot_id)


def examine(
    metadata: TableMetadata, storage: Storage, of_others: Callable[[Iterable[str]], Collection[str]] = lambda _: ()
) -> Examination:
    """Reads every manifest list and manifest; a StorageError is raised, as it says nothing about the file."""
    examination = Examination(metadata, storage, ManifestEntries(storage), of_others=of_others)
    listed = [snapshot for snapshot in metadata.snapshots if snapshot.manifest_list is not None]
    for snapshot, manifests in zip(
        listed, in_parallel(lambda each: read_list(each, storage), listed, metadata.location), strict=True
    ):
        if isinstance(manifests, str):
            examination.damaged_lists[snapshot.snapshot_id] = manifests
        else:
            examination.lists[snapshot.snapshot_id] = manifests
    rows = list(examination.rows.values())
    for manifest, read in zip(
        rows, in_parallel(lambda each: read_manifest(each, storage), rows, metadata.location), strict=True
    ):
        location = manifest.manifest_path
        if read.digest is None:
            examination.damaged_manifests[location] = read.wrong
        else:
            examination.entries.add(manifest, read.digest)
            if read.wrong:
                examination.wrong_rows[location] = read.wrong
    return examination


def read_list(snapshot: Snapshot, storage: Storage) -> list[ManifestFile] | str:
    """The manifests of a snapshot, or text that says what is wrong with its list; StorageErrors are raised."""
    location = str(snapshot.manifest_list)
    what = f"The manifest list {location} of snapshot {snapshot.snapshot_id}"
    try:
        return decode_manifest_list(storage.read(location), location, snapshot.snapshot_id)
    except MissingFileError:
        return f"{what} is not there."
    except CorruptFileError as error:
        return f"{what} is damaged: {error}"


@dataclass(frozen=True)
class ReadManifest:
    """A manifest that was read: its digest (None if damaged), and what is wrong with it or its row in the list."""

    digest: ManifestDigest | None
    wrong: str = ""


def read_manifest(manifest: ManifestFile, storage: Storage) -> ReadManifest:
    """A digest of a manifest's entries and what is wrong with it; no digest if it is gone or damaged."""
    location = manifest.manifest_path
    try:
        data = storage.read(location)
        if manifest.manifest_length and len(data) != manifest.manifest_length:
            said = f"its manifest list says {manifest.manifest_length:,}"
            return ReadManifest(None, f"The manifest {location} has {len(data):,} bytes, {said}.")
        entries = list(iterate_manifest(data, manifest, metrics=False))
        check_owner(manifest, entries)
    except MissingFileError:
        return ReadManifest(None, f"The manifest {location} is not there.")
    except CorruptFileError as error:
        return ReadManifest(None, f"The manifest {location} is damaged: {error}")
    try:
        check_entries(manifest, entries)
    except CorruptManifestError as error:
        return ReadManifest(digest(entries), f"A manifest list says of {location} what it is not: {error}")
    return ReadManifest(digest(entries))


def check_owner(manifest: ManifestFile, entries: Sequence[ManifestEntry]) -> None:
    """Refuses a manifest that another snapshot than its list says has added: it may be another table's."""
    for entry in entries:
        if entry.status is ManifestEntryStatus.ADDED and entry.snapshot_id != manifest.added_snapshot_id:
            raise CorruptManifestError(
                f"it adds {entry.data_file.file_path} for snapshot {entry.snapshot_id}; its manifest list says that "
                f"snapshot {manifest.added_snapshot_id} added it"
            )


# ------------------------------------------------------------------------------------------ entries of manifests


class ManifestEntries:
    """The entries of each whole manifest, by its location. Of a manifest only a digest is kept; its entries are read
    again when they are asked for. Manifests that a repair makes count as whole ones."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._rows: dict[str, ManifestFile] = {}
        self._digests: dict[str, ManifestDigest] = {}
        self._data: dict[str, bytes] = {}
        self._made: dict[str, Sequence[ManifestEntry]] = {}

    def add(self, manifest: ManifestFile, found: ManifestDigest) -> None:
        """Takes the digest of a manifest that was read."""
        self._digests[manifest.manifest_path] = found
        self.describe(manifest)

    def describe(self, manifest: ManifestFile) -> None:
        """Entries inherit from this row from now on."""
        self._rows[manifest.manifest_path] = manifest

    def make(self, location: str, entries: Sequence[ManifestEntry]) -> None:
        """Takes the rebuilt entries of a damaged manifest."""
        self._made[location] = entries
        self._digests[location] = digest(entries)

    def write(self, manifest: ManifestFile, data: bytes, entries: Sequence[ManifestEntry]) -> None:
        """Takes the bytes and entries of a manifest that is to be written."""
        self._data[manifest.manifest_path] = data
        self.add(manifest, digest(entries))

    def __contains__(self, location: object) -> bool:
        return location in self._digests

    def __getitem__(self, location: str) -> list[ManifestEntry]:
        """All entries of a whole manifest, with the metrics of their files."""
        return list(self.each(location, metrics=True))

    def each(self, location: str, *, metrics: bool = False) -> Iterator[ManifestEntry]:
        """The entries of a whole manifest, one by one; with column metrics only if asked for."""
        if location in self._made:
            yield from self._made[location]
            return
        data = self._data.get(location) or self._storage.read(location)
        yield from iterate_manifest(data, self._rows[location], metrics=metrics)

    def everywhere(self, *, metrics: bool = False) -> Iterator[ManifestEntry]:
        """The entries of all whole manifests, one by one."""
        for location in list(self._digests):
            yield from self.each(location, metrics=metrics)

    def digest(self, location: str) -> ManifestDigest:
        return self._digests[location]

    def digests(self, manifests: Iterable[ManifestFile]) -> list[tuple[ManifestFile, ManifestDigest]] | None:
        """Manifests with their digests; None if one of them is damaged."""
        found = [(each, self._digests.get(each.manifest_path)) for each in manifests]
        whole = [(each, kept) for each, kept in found if kept is not None]
        return whole if len(whole) == len(found) else None
