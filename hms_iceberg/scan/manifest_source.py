"""The manifests of a snapshot: which there are, which may matter, and their decoded frames, several at a time."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from hms_iceberg.errors import CorruptFileError, CorruptManifestError, UnsupportedError
from hms_iceberg.expressions.manifest_evaluator import partition_summary_evaluator
from hms_iceberg.expressions.tree import AlwaysTrue, BooleanExpression
from hms_iceberg.scan.cache import ManifestCache, ManifestFrame
from hms_iceberg.scan.manifest_frames import ManifestDecoder
from hms_iceberg.scan.partition_columns import PartitionColumns
from hms_iceberg.spec.avro_container import read_container
from hms_iceberg.spec.manifest_avro import decode_manifest_list
from hms_iceberg.spec.manifests import FieldSummary, ManifestFile
from hms_iceberg.spec.snapshots import Snapshot
from hms_iceberg.spec.types import StructType, UnknownType, UUIDType
from hms_iceberg.storage import Storage

T = TypeVar("T")

# Some of the time of a read is waiting, so that a few more threads than cores do not hurt.
_THREADS = max(4, 2 * (os.cpu_count() or 1))


def manifests_of(snapshot: Snapshot, storage: Storage) -> list[ManifestFile]:
    """The manifests of a snapshot, in order.

    Raises:
        MissingFileError: the manifest list is gone.
        CorruptManifestError: it cannot be read.
    """
    if snapshot.manifest_list is not None:
        return decode_manifest_list(storage.read(snapshot.manifest_list), snapshot.manifest_list)
    return [_unlisted(location, snapshot, storage) for location in snapshot.manifests or ()]


def _unlisted(location: str, snapshot: Snapshot, storage: Storage) -> ManifestFile:
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


def keep_manifests(
    manifests: Iterable[ManifestFile], projection: Callable[[int], BooleanExpression], partitions: PartitionColumns
) -> list[ManifestFile]:
    """The manifests that may hold a live file whose partition matches.

    Args:
        manifests: rows of a manifest list.
        projection: spec id to the predicate over the spec's partition tuples.
        partitions: the table's partition columns.
    """
    tests: dict[int, Callable[[_Summaries], bool]] = {}
    kept = []
    for manifest in manifests:
        if not manifest.has_live_files:
            continue
        spec_id = manifest.partition_spec_id
        if spec_id not in tests:
            partitions.columns(spec_id)
            tests[spec_id] = _summary_test(projection(spec_id), partitions.structs[spec_id])
        if tests[spec_id](_Summaries(_trusted(manifest, partitions.structs[spec_id]))):
            kept.append(manifest)
    return kept


@dataclass(frozen=True, slots=True)
class _Summaries:
    partitions: Sequence[FieldSummary] | None


def _summary_test(predicate: BooleanExpression, partition_type: StructType) -> Callable[[_Summaries], bool]:
    if isinstance(predicate, AlwaysTrue):
        return lambda manifest: True
    return partition_summary_evaluator(partition_type, predicate)


def _trusted(manifest: ManifestFile, partition_type: StructType) -> Sequence[FieldSummary] | None:
    """The summaries that can be relied on; None stands for one that cannot.

    Java orders UUIDs as two signed numbers, so that its bounds exclude values that are there; and of a column that was
    dropped its summary says that there are no nulls.
    """
    summaries = manifest.partitions
    if summaries is None or len(summaries) != len(partition_type.fields):
        return None
    return [
        None if isinstance(each.field_type, UUIDType | UnknownType) else summary  # type: ignore[misc]
        for each, summary in zip(partition_type.fields, summaries, strict=True)
    ]


class ManifestSource:
    """Reads manifests through the cache, several at a time.

    Args:
        storage: where manifests are.
        partitions: the table's partition columns.
        cache: decoded manifests.
    """

    def __init__(self, storage: Storage, partitions: PartitionColumns, cache: ManifestCache) -> None:
        self._storage = storage
        self._partitions = partitions
        self._cache = cache
        self._plan = cache.begin_plan()
        self.cached = 0

    def map(
        self,
        manifests: Sequence[ManifestFile],
        function: Callable[[ManifestFile, ManifestFrame], T],
        metrics: Callable[[ManifestFile], Sequence[str]] = lambda manifest: (),
    ) -> list[T]:
        """What a function makes of each manifest, in order; decoding and function run in threads.

        Args:
            manifests: the manifests.
            function: gets a manifest and its columns.
            metrics: which map columns of metrics the function is certain to look at.

        Raises:
            MissingFileError: a manifest is gone; names it.
            CorruptManifestError: a manifest cannot be read.
        """

        def work(manifest: ManifestFile) -> T:
            key = self._key(manifest)
            decoded = self._cache.get(key, self._plan)
            if decoded is None:
                decoded = self._load(manifest, metrics(manifest))
            else:
                self.cached += 1
            result = function(manifest, decoded)
            self._cache.put(key, decoded, self._plan)
            return result

        if len(manifests) <= 1:
            return [work(manifest) for manifest in manifests]
        with ThreadPoolExecutor(min(_THREADS, len(manifests)), thread_name_prefix="iceberg-plan") as pool:
            return list(pool.map(work, manifests))

    def _key(self, manifest: ManifestFile) -> Hashable:
        names = self._partitions.columns(manifest.partition_spec_id)
        dtypes = tuple(self._partitions.dtypes[name] for name in names)
        return manifest.manifest_path, manifest.sequence_number, manifest.first_row_id, names, dtypes

    def _load(self, manifest: ManifestFile, metrics: Sequence[str]) -> ManifestFrame:
        if manifest.key_metadata is not None:
            raise UnsupportedError(
                f"Cannot read manifest {manifest.manifest_path}: it is encrypted, which is not supported"
            )
        data = self._storage.read(manifest.manifest_path)
        return ManifestFrame(ManifestDecoder(data, manifest, self._partitions), metrics)
