"""The manifests of a snapshot: which there are, which may matter, and their decoded frames, several at a time."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from hms_iceberg.encryption.encrypted_tables import list_bytes, manifest_bytes
from hms_iceberg.errors import (
    CorruptFileError,
    CorruptManifestError,
    KeyUnavailableError,
    MissingFileError,
    TypeMismatchError,
    UnknownColumnError,
)
from hms_iceberg.scan.manifests.cache import ManifestCache, ManifestFrame, decode_manifests, join_frames
from hms_iceberg.scan.manifests.metric_columns import Metric
from hms_iceberg.scan.partition_columns import PartitionColumns
from hms_iceberg.spec.manifests.avro_container import read_container
from hms_iceberg.spec.manifests.manifest_list_avro import decode_manifest_list, with_few_repeats
from hms_iceberg.spec.manifests.manifest_values import FileSource, ManifestFile
from hms_iceberg.spec.snapshots_and_refs import MANIFESTS_OF, Snapshot

T = TypeVar("T")

# While some threads wait for files, others decode: as many at once as there are cores, since more hold up each other.
_CORES = os.cpu_count() or 1
_THREADS = max(4, 2 * _CORES)
_READERS = 16
# Manifests are decoded together up to so many of them and of their entries, of large tables up to the greater number.
_GROUP_MANIFESTS = 200
_GROUP_ENTRIES = (2_000, 8_000)


@contextmanager
def named_snapshot(snapshot_id: int | None, location: str) -> Iterator[None]:
    """Has errors of files that are gone, damaged or locked also name the snapshot and the table that need them."""
    try:
        yield
    except (MissingFileError, CorruptFileError, KeyUnavailableError) as error:
        owner = "" if snapshot_id is None else f"snapshot {snapshot_id} of "
        if owner and owner in str(error):
            raise
        raise error.with_message(f"{error} It belongs to {owner}the table at {location}.") from error


@contextmanager
def named_table(location: str, name: str | None = None) -> Iterator[None]:
    """Has errors of unknown columns and wrong types name the table, or its location if it has no name."""
    try:
        yield
    except (UnknownColumnError, TypeMismatchError) as error:
        table = f"table {name}" if name else f"the table at {location}"
        raise error.with_message(f"{error}. This is about {table}.") from error


def manifests_of(snapshot: Snapshot, storage: FileSource, *, checked: bool = True) -> list[ManifestFile]:
    """The manifests of a snapshot, in order; `checked`, rows that contradict themselves are refused."""
    if snapshot.manifest_list is not None:
        return decode_manifest_list(
            list_bytes(snapshot, storage), snapshot.manifest_list, snapshot.snapshot_id, checked=checked
        )
    unlisted = (_unlisted(location, snapshot, storage) for location in snapshot.manifest_locations or ())
    return list(with_few_repeats(unlisted, f"snapshot {snapshot.snapshot_id}"))


def _unlisted(location: str, snapshot: Snapshot, storage: FileSource) -> ManifestFile:
    """A manifest that an old v1 snapshot names itself; only the manifest knows its partition spec."""
    data = storage.read(location)
    try:
        spec_id = read_container(data, f"manifest {location}").text("partition-spec-id")
    except CorruptFileError as error:
        raise CorruptManifestError(str(error)) from error
    return ManifestFile(
        manifest_path=location,
        manifest_length=len(data),
        partition_spec_id=int(spec_id or 0),
        added_snapshot_id=snapshot.snapshot_id,
    )


class ManifestSource:
    """Reads manifests through the cache, several at a time."""

    def __init__(self, storage: FileSource, partitions: PartitionColumns, cache: ManifestCache) -> None:
        self._storage = storage
        self.partitions = partitions
        self._cache = cache
        self._plan = cache.begin_plan()
        self._cached = 0
        self._lock = threading.Lock()

    @property
    def cached(self) -> int:
        """How many manifests were found in the cache."""
        return self._cached

    def map(
        self,
        manifests: Sequence[ManifestFile],
        function: Callable[[int, ManifestFrame], T],
        metrics: Callable[[int], Sequence[Metric]] = lambda spec_id: (),
    ) -> list[T]:
        """Applies a function to the manifests (or to several small ones of a spec together), in order; decoding and
        function run in threads. `metrics` are those that the function is certain to look at, by spec id."""
        groups = _groups(manifests)
        decoding = threading.BoundedSemaphore(_CORES)

        def work(group: Sequence[ManifestFile]) -> T:
            spec_id = group[0].partition_spec_id
            needed = metrics(spec_id)
            found = [self._find(self._key(each)) for each in group]
            made = [-1 if each is None else each.metrics.columns_made for each in found]
            files = self._read_missing(group, found, pool)
            with decoding:
                decoded = iter(decode_manifests(files, self.partitions, needed, self._read))
                frames = [next(decoded) if frame is None else frame for frame in found]
                joined = join_frames(frames)
                joined.metrics.prepare(needed)
                result = function(spec_id, joined)
            for manifest, frame, before in zip(group, frames, made, strict=True):
                if frame.metrics.columns_made != before:
                    self._cache.put(self._key(manifest), frame, self._plan)
            return result

        with ThreadPoolExecutor(_READERS, thread_name_prefix="iceberg-read") as pool:
            if len(groups) <= 1:
                return [work(each) for each in groups]
            with ThreadPoolExecutor(_THREADS, thread_name_prefix="iceberg-plan") as workers:
                return list(workers.map(work, groups))

    def _read_missing(
        self, group: Sequence[ManifestFile], found: Sequence[ManifestFrame | None], pool: ThreadPoolExecutor
    ) -> list[tuple[bytes, ManifestFile]]:
        """The bytes of those manifests of a group that were not found in the cache."""
        missing = [manifest for manifest, frame in zip(group, found, strict=True) if frame is None]
        # A pool is no use to a manifest that is alone, and its thread takes a while to start.
        read = pool.map(self._read, missing) if len(missing) > 1 else map(self._read, missing)
        return list(zip(read, missing, strict=True))

    def _find(self, key: Hashable) -> ManifestFrame | None:
        found = self._cache.get(key, self._plan)
        if found is not None:
            with self._lock:
                self._cached += 1
        return found

    def _key(self, manifest: ManifestFile) -> Hashable:
        names = self.partitions.columns(manifest.partition_spec_id)
        dtypes = tuple(self.partitions.dtypes[name] for name in names)
        return manifest.manifest_path, manifest.sequence_number, manifest.first_row_id, names, dtypes

    def _read(self, manifest: ManifestFile) -> bytes:
        return manifest_bytes(manifest, self._storage)


def _groups(manifests: Sequence[ManifestFile]) -> list[list[ManifestFile]]:
    """Small manifests of one spec together, every other one alone; in the order of the first of each group."""
    least, most = _GROUP_ENTRIES
    every_thread = sum(each.entries_count or 0 for each in manifests) // (4 * _THREADS)
    full = min(max(least, every_thread), most)
    groups: list[list[ManifestFile]] = []
    open_groups: dict[int, tuple[list[ManifestFile], int]] = {}
    for manifest in manifests:
        rows = manifest.entries_count
        if rows is None or rows > full // 2:
            groups.append([manifest])
            continue
        group, size = open_groups.get(manifest.partition_spec_id, ([], 0))
        if not group:
            groups.append(group)
        group.append(manifest)
        size += rows
        is_full = size >= full or len(group) >= _GROUP_MANIFESTS
        open_groups[manifest.partition_spec_id] = ([], 0) if is_full else (group, size)
    return groups


MANIFESTS_OF.set(manifests_of)
