"""The history of a table without some rows: the same snapshots, with new manifest lists where rows have gone.

Source: Iceberg specification, "Snapshots", "Manifests", "Sequence Number Inheritance", "First Row ID Inheritance".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce

from hms_iceberg.arrow.parallel import in_parallel
from hms_iceberg.encryption.encrypted_tables import encrypted, encrypted_list, list_bytes, manifest_bytes
from hms_iceberg.expressions.tree import BooleanExpression
from hms_iceberg.maintenance.check.summary_check import EntryCounts
from hms_iceberg.maintenance.erasure.forgotten_rows import FoundRows, Reading, RowFinder, readings_of
from hms_iceberg.maintenance.erasure.metadata_mentions import Mentions, texts_of
from hms_iceberg.maintenance.erasure.rewritten_files import (
    DataFileWriter,
    DeleteFileWriter,
    RewrittenData,
    is_positions,
)
from hms_iceberg.spec.manifests.avro_container import read_container
from hms_iceberg.spec.manifests.manifest_avro import decode_manifest, encode_manifest
from hms_iceberg.spec.manifests.manifest_list_avro import encode_manifest_list
from hms_iceberg.spec.manifests.manifest_values import DataFile, ManifestEntry, ManifestFile
from hms_iceberg.spec.metadata.metadata_snapshots import add_encryption_key, remove_encryption_key
from hms_iceberg.spec.metadata.table_metadata import TableMetadata, changed
from hms_iceberg.spec.snapshots_and_refs import Snapshot, Summary
from hms_iceberg.storage import Storage
from hms_iceberg.updates.machinery.manifest_files import entries_of, manifest_list_of, metadata_file
from hms_iceberg.updates.machinery.update import FileReader, Update, Workspace

OPEN_ERASURE = "hms_iceberg.erasure"
"""The property of a table with an erasure whose old files are not all gone; its value is the erasure's id."""

# A manifest as a manifest list reads it: the ids that its rows get are those of the list's row.
_Key = tuple[str, int | None]


@dataclass(frozen=True)
class LiveFile:
    """A file that a version of the table names: with the data sequence number and the row ids that it is read with."""

    file: DataFile
    sequence_number: int


@dataclass(frozen=True)
class NamedByHistory:
    """All that the snapshots of a table name."""

    lists: Mapping[int, tuple[ManifestFile, ...]]  # by snapshot id
    data: Mapping[str, tuple[LiveFile, ...]]  # by location, one for each first row id
    deletes: Mapping[tuple[str, int | None], LiveFile]  # by location, and the offset of deletion vectors
    gone: tuple[DataFile, ...]  # files that entries only tell the removal of, and that storage has no more

    @classmethod
    def of(cls, metadata: TableMetadata, storage: Storage) -> NamedByHistory:
        """Reads every manifest of a table once."""
        lists = {each.snapshot_id: tuple(manifest_list_of(each, storage)) for each in metadata.snapshots}
        manifests = {_key(each): each for rows in lists.values() for each in rows}
        data: dict[str, dict[int | None, LiveFile]] = {}
        deletes: dict[tuple[str, int | None], LiveFile] = {}
        removed: dict[tuple[str, int | None], LiveFile] = {}
        for entries in in_parallel(lambda each: entries_of(each, storage), manifests.values(), metadata.location):
            for entry in entries:
                file, live = entry.data_file, LiveFile(entry.data_file, entry.sequence_number or 0)
                if not entry.is_live:
                    removed.setdefault((file.file_path, file.content_offset), live)
                elif file.is_data:
                    data.setdefault(file.file_path, {}).setdefault(file.first_row_id, live)
                else:
                    deletes.setdefault((file.file_path, file.content_offset), live)
        gone = []
        for (path, offset), each in removed.items():
            if path in data or (path, offset) in deletes:
                continue
            if not storage.exists(path):
                gone.append(each.file)
            elif each.file.is_data:
                data[path] = {None: each}
            else:
                deletes[path, offset] = each
        return cls(lists, {path: tuple(each.values()) for path, each in data.items()}, deletes, tuple(gone))

    @property
    def manifests(self) -> dict[_Key, ManifestFile]:
        """Every manifest once."""
        return {_key(each): each for rows in self.lists.values() for each in rows}


def _key(manifest: ManifestFile) -> _Key:
    return manifest.manifest_path, manifest.first_row_id


@dataclass
class FileRewriting:
    """Finds and rewrites the files of a table for one erasure; what was done once is remembered for later versions."""

    storage: Storage
    on_create: Callable[[str], None]
    # by data file, the rows that match; those without any are there too
    found: dict[str, FoundRows] = field(default_factory=dict)
    data: dict[str, RewrittenData] = field(default_factory=dict)  # the data files that were written anew
    # the delete files that were, by location and offset
    deletes: dict[tuple[str, int | None], tuple[DataFile, ...] | None] = field(default_factory=dict)

    def look(self, finder: RowFinder, named: NamedByHistory) -> dict[str, FoundRows]:
        """The rows that match in each data file that has some."""
        new = [path for path in named.data if path not in self.found]

        def find(path: str) -> FoundRows:
            live = named.data[path][0]
            return finder.found(live.file, live.sequence_number)

        self.found.update(zip(new, in_parallel(find, new, finder.metadata.location), strict=True))
        return {path: found for path in named.data if len(found := self.found[path])}

    def look_at_deletes(self, finder: RowFinder, named: NamedByHistory) -> list[str]:
        """The delete files that hold keys, or copies of rows, that are to be forgotten."""
        writer = DeleteFileWriter(
            DataFileWriter(finder.metadata, self.storage, self.on_create), finder, {}, frozenset()
        )
        every = [each for each in named.deletes.values() if not each.file.is_deletion_vector]

        def holds(each: LiveFile) -> bool:
            return (
                writer.has_rows(each.file)
                if is_positions(each.file)
                else writer.has_keys(each.file, each.sequence_number)
            )

        held = in_parallel(holds, every, finder.metadata.location)
        return [each.file.file_path for each, is_held in zip(every, held, strict=True) if is_held]

    def rewrite(self, finder: RowFinder, named: NamedByHistory) -> None:
        """Writes what has to be written anew."""
        writer = DataFileWriter(finder.metadata, self.storage, self.on_create)
        found = {path: gone for path, gone in self.look(finder, named).items() if path not in self.data}

        def rewritten(path: str) -> RewrittenData:
            gone = found[path]
            if gone.is_whole:
                return RewrittenData(gone, {})
            variants = {each.file.first_row_id: each for each in named.data[path]}
            if len(variants) > 1:
                variants.pop(None, None)  # whoever gives no ids to rows reads none
            files = {first: writer.without(each.file, gone, each.sequence_number) for first, each in variants.items()}
            return RewrittenData(gone, files)

        self.data.update(zip(found, in_parallel(rewritten, found, finder.metadata.location), strict=True))
        deletes = DeleteFileWriter(writer, finder, self.data, frozenset(named.data))
        self._rewrite_deletes(deletes, named)

    def _rewrite_deletes(self, writer: DeleteFileWriter, named: NamedByHistory) -> None:
        vectors: dict[str, list[DataFile]] = {}
        for key, live in named.deletes.items():
            if key in self.deletes:
                continue
            if live.file.is_deletion_vector:
                vectors.setdefault(live.file.file_path, []).append(live.file)
            elif is_positions(live.file):
                self.deletes[key] = writer.positions(live.file)
            else:
                self.deletes[key] = writer.keys(live.file, live.sequence_number)
        for path, files in vectors.items():
            made = writer.vectors(files)
            for file in files:
                self.deletes[path, file.content_offset] = None if made is None else made[file.content_offset]

    def replaced(self) -> dict[str, list[str]]:
        """By file that was written anew or goes whole, the files that took its place."""
        found = {path: list(each.paths) for path, each in self.data.items()}
        for (path, _), made in self.deletes.items():
            if made is not None:
                names = found.setdefault(path, [])
                names += [each.file_path for each in made if each.file_path not in names]
        return found

    def entries(self, entry: ManifestEntry, finder: RowFinder) -> Iterator[ManifestEntry]:
        """The entries that take the place of a manifest entry; the entry itself if it stays as it is."""
        file = entry.data_file
        if file.is_data and (rewritten := self.data.get(file.file_path)) is not None:
            new = rewritten.file(file.first_row_id)
            if new is not None:
                yield replace(entry, data_file=new)
            return
        made = None if file.is_data else self.deletes.get((file.file_path, file.content_offset))
        if made is not None:
            yield from (replace(entry, data_file=each) for each in made)
        elif entry.is_live or self._is_known(file) or not finder.may_hold(file):
            yield entry  # of a file that is gone and may have held such a row, not even its removal is told

    def _is_known(self, file: DataFile) -> bool:
        return file.file_path in self.found or (file.file_path, file.content_offset) in self.deletes


@dataclass(frozen=True)
class ForgetRows(Update):
    """Lets every snapshot read the files without the rows that match; ids, times, order and refs of snapshots stay. On
    a newer version of the table it does the same for what came meanwhile."""

    predicate: BooleanExpression
    name: str
    mark: str  # what the table's property says of the open erasure
    case_sensitive: bool
    files: FileRewriting
    on_apply: Callable[[TableMetadata, TableMetadata], None]  # gets the metadata before and after

    def validate(self, start: TableMetadata, base: TableMetadata, reader: FileReader) -> None:
        """Accepts every history: rows that came meanwhile are looked at as well."""

    def readings(self, base: TableMetadata) -> tuple[Reading, ...]:
        """The readings of the predicate in a version of the table."""
        return readings_of(base, self.predicate, self.name, self.case_sensitive)

    def apply(self, base: TableMetadata, workspace: Workspace) -> TableMetadata:
        """The metadata whose snapshots have no such rows; the same object if there are none."""
        finder = RowFinder(base, self.files.storage, self.readings(base), trusts_statistics=False)
        named = NamedByHistory.of(base, self.files.storage)
        self.files.rewrite(finder, named)
        history = _History(base, workspace, self.files, finder, named)
        metadata = history.rewritten()
        if metadata is base:
            return base
        marked = {**metadata.properties, OPEN_ERASURE: self.mark}
        metadata = changed(metadata, workspace.now_ms(), properties=marked)
        self.on_apply(base, metadata)
        return metadata


@dataclass(frozen=True)
class _NewManifest:
    """A manifest that was looked at: its row in lists, None if nothing of it is left, and what it counts."""

    row: ManifestFile | None
    before: EntryCounts
    after: EntryCounts


class _History:
    """One version of a table whose manifests and manifest lists are written anew."""

    def __init__(
        self,
        base: TableMetadata,
        workspace: Workspace,
        files: FileRewriting,
        finder: RowFinder,
        named: NamedByHistory,
    ) -> None:
        self._base = base
        self._workspace = workspace
        self._files = files
        self._finder = finder
        self._named = named

    def rewritten(self) -> TableMetadata:
        manifests = {key: self._manifest(row) for key, row in self._named.manifests.items()}
        mentions = Mentions(texts_of(self._finder.readings))
        metadata, snapshots = self._base, []
        changed_ids = set()
        for snapshot in self._base.snapshots:
            new = [(row, manifests[_key(row)]) for row in self._named.lists[snapshot.snapshot_id]]
            summary = mentions.without(snapshot.summary)
            if summary is not snapshot.summary:
                snapshot = replace(snapshot, summary=summary)
            if all(each.row is row for row, each in new):
                snapshots.append(snapshot)
                continue
            changed_ids.add(snapshot.snapshot_id)
            metadata, replaced = self._snapshot(metadata, snapshot, [each for _, each in new])
            snapshots.append(replaced)
        if all(new is old for new, old in zip(snapshots, self._base.snapshots, strict=True)):
            return self._base
        kept = [each.snapshot_id for each in self._base.snapshots if each.snapshot_id not in changed_ids]
        return changed(
            metadata,
            self._workspace.now_ms(),
            snapshots=tuple(snapshots),
            statistics=tuple(each for each in metadata.statistics if each.snapshot_id in kept),
            partition_statistics=tuple(each for each in metadata.partition_statistics if each.snapshot_id in kept),
        )

    # ------------------------------------------------------------------------------------------- manifests

    def _manifest(self, row: ManifestFile) -> _NewManifest:
        data = manifest_bytes(row, self._workspace)
        old = decode_manifest(data, row)
        new = [made for entry in old for made in self._files.entries(entry, self._finder)]
        before = EntryCounts.of(old)
        if len(new) == len(old) and all(one is other for one, other in zip(old, new, strict=True)):
            return _NewManifest(row, before, before)
        if not new:
            return _NewManifest(None, before, EntryCounts.of(()))
        header = read_container(data, f"manifest {row.manifest_path}")
        version = int(header.text("format-version") or 1)
        return _NewManifest(self._written(row, new, version), before, EntryCounts.of(new))

    def _written(self, row: ManifestFile, entries: Iterable[ManifestEntry], version: int) -> ManifestFile:
        """A manifest of these entries; ids of rows are told by entries, as files have fewer rows than they had."""
        spec = self._base.spec_by_id(row.partition_spec_id)
        encoded, made = encode_manifest(
            entries,
            schema=self._base.schema_for_spec(spec),
            spec=spec,
            content=row.content,
            format_version=version if row.first_row_id is None else max(version, 3),
            snapshot_id=row.added_snapshot_id,
        )
        name = f"{self._workspace.commit_id}-m{self._workspace.next_number('manifest')}.avro"
        location = metadata_file(self._base, name)
        stored, key = encrypted(encoded, self._base.properties)
        self._workspace.create(location, stored)
        return replace(
            made,
            manifest_path=location,
            manifest_length=len(stored),
            key_metadata=key,
            sequence_number=row.sequence_number,
            min_sequence_number=row.min_sequence_number
            if made.min_sequence_number is None
            else made.min_sequence_number,
            first_row_id=row.first_row_id,
        )

    # ------------------------------------------------------------------------------------------- snapshots

    def _snapshot(
        self, metadata: TableMetadata, snapshot: Snapshot, manifests: list[_NewManifest]
    ) -> tuple[TableMetadata, Snapshot]:
        """A snapshot with the manifests that are left, and the metadata with the keys that it needs."""
        before = EntryCounts.sum([each.before for each in manifests], snapshot.snapshot_id)
        after = EntryCounts.sum([each.after for each in manifests], snapshot.snapshot_id)
        rows = [each.row for each in manifests if each.row is not None]
        snapshot = replace(snapshot, summary=_summary(snapshot, before, after))
        if snapshot.manifest_list is None:
            return metadata, replace(snapshot, manifest_locations=tuple(each.manifest_path for each in rows))
        header = read_container(list_bytes(snapshot, self._workspace), f"manifest list {snapshot.manifest_list}")
        usual = 3 if snapshot.first_row_id is not None else min(metadata.format_version, 2)
        version = int(header.text("format-version") or usual)
        data, _ = encode_manifest_list(
            rows,
            format_version=version,
            snapshot_id=snapshot.snapshot_id,
            parent_snapshot_id=snapshot.parent_snapshot_id,
            sequence_number=snapshot.sequence_number,
            next_row_id=(snapshot.first_row_id or 0) if version >= 3 else None,
        )
        attempt = self._workspace.next_number("manifest list") + 1
        name = f"snap-{snapshot.snapshot_id}-{attempt}-{self._workspace.commit_id}.avro"
        location, now = metadata_file(self._base, name), self._workspace.now_ms()
        stored, keys = encrypted_list(data, metadata.encryption_keys, metadata.properties, self._workspace, now)
        self._workspace.create(location, stored)
        if snapshot.key_id is not None:
            metadata = remove_encryption_key(metadata, snapshot.key_id, now)
        metadata = reduce(add_encryption_key, reversed(keys), metadata)
        return metadata, replace(
            snapshot, manifest_list=location, key_id=keys[0].key_id if keys else None, keys=tuple(keys)
        )


def _summary(snapshot: Snapshot, before: EntryCounts, after: EntryCounts) -> Summary:
    """The summary with counts less by what went, and without those of single partitions."""
    old, new = _counts(before, snapshot.snapshot_id), _counts(after, snapshot.snapshot_id)
    kept: dict[str, str] = {}
    for key, value in snapshot.summary.items():
        if key == "partition-summaries-included" or key.startswith("partitions."):
            continue
        if key in old and value.isdigit():
            left = max(0, int(value) + new[key] - old[key])
            if left or key.startswith("total-"):
                kept[key] = str(left)
        else:
            kept[key] = value
    return Summary.of(kept)


def _counts(counts: EntryCounts, snapshot_id: int) -> dict[str, int]:
    return {**counts.live, **counts.added[snapshot_id], **counts.removed[snapshot_id]}
