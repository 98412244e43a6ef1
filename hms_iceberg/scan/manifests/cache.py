"""A bounded cache of decoded manifests.

Manifests never change, so that a decoded one is good for as long as it is kept. The bound is on bytes. What does not
fit beside the manifests of the same plan is not kept at all: a table larger than the cache would otherwise push its own
first manifests out while it reads the last ones, and find none of them the next time.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from weakref import WeakValueDictionary

from hms_iceberg.bounded_cache import BoundedCache
from hms_iceberg.lazy import import_polars, pl
from hms_iceberg.scan.manifests.manifest_frames import MANIFEST, ManifestDecoder, columnar_schema
from hms_iceberg.scan.manifests.metric_columns import Metric, MetricColumns, metric_name
from hms_iceberg.scan.partition_columns import PartitionColumns
from hms_iceberg.spec.manifests.manifest_values import ManifestFile
from hms_iceberg.storage import DEFAULT_CACHE_BYTES


class ManifestFrame:
    """Decoded manifests: their live files as a frame of `ManifestDecoder`'s columns, and metrics column by column, made
    of `source` when they are asked for."""

    __slots__ = ("frame", "metrics", "source")

    def __init__(self, frame: pl.DataFrame, source: FrameMetrics, metrics: MetricColumns | None = None) -> None:
        self.frame = frame
        self.source = source
        self.metrics = metrics or MetricColumns(source)

    @property
    def size(self) -> int:
        """Bytes that the decoded columns take, and the files that are kept."""
        return int(self.frame.estimated_size()) + self.metrics.size + self.source.size

    def without_file(self) -> ManifestFrame:
        """A frame that keeps its columns and drops what is large: the manifest's bytes, and whole maps of metrics. What
        it lacks is read from storage again."""
        source = self.source.without_file()
        return ManifestFrame(self.frame, source, self.metrics.on(source))


class FrameMetrics:
    """Files of a frame of which no metrics are known; what others that have some begin with."""

    def __init__(self, files: pl.DataFrame) -> None:
        self._files = files

    @property
    def record_counts(self) -> pl.Series:
        return self._files["record_count"]

    @property
    def row_groups(self) -> pl.Series:
        """In how many parts each file may be split; 0 if unknown."""
        return self._files["split_offsets"].list.len().fill_null(0)

    @property
    def size(self) -> int:
        """Bytes that are kept beside the files."""
        return 0

    def load(self, metrics: Sequence[Metric]) -> Mapping[Metric, pl.Series]:
        return {}

    def without_file(self) -> FrameMetrics:
        """Metrics that no longer hold the bytes of a manifest."""
        return self


class EncodedMetrics(FrameMetrics):
    """The metrics of a manifest, of which only those are decoded that are asked for."""

    def __init__(
        self,
        files: pl.DataFrame,
        manifest: ManifestFile,
        partitions: PartitionColumns,
        read: Callable[[ManifestFile], bytes],
        data: bytes | None,
    ) -> None:
        super().__init__(files)
        self.manifest = manifest
        self.partitions = partitions
        self._read = read
        self._data = data

    @property
    def size(self) -> int:
        """Bytes of the manifest, if they are kept."""
        return 0 if self._data is None else len(self._data)

    def bytes(self) -> bytes:
        return self._read(self.manifest) if self._data is None else self._data

    def load(self, metrics: Sequence[Metric]) -> Mapping[Metric, pl.Series]:
        return _load([self], metrics)[0]

    def without_file(self) -> EncodedMetrics:
        """Metrics that no longer hold the bytes of the manifest."""
        return EncodedMetrics(self._files, self.manifest, self.partitions, self._read, None)


class _JoinedMetrics(FrameMetrics):
    """The metrics of several manifests, below one another."""

    def __init__(self, files: pl.DataFrame, parts: Sequence[ManifestFrame]) -> None:
        super().__init__(files)
        self._parts = parts

    def load(self, metrics: Sequence[Metric]) -> Mapping[Metric, pl.Series]:
        lacking = [each for each in self._parts if not each.metrics.has(metrics)]
        for part, loaded in zip(lacking, _load([each.source for each in lacking], metrics), strict=True):
            part.metrics.keep(loaded)
        return {each: pl.concat([part.metrics.loaded[each] for part in self._parts]) for each in metrics}


def _load(sources: Sequence[FrameMetrics], metrics: Sequence[Metric]) -> list[Mapping[Metric, pl.Series]]:
    """Metrics of some manifests; those of one schema are decoded together."""
    encoded = [each for each in sources if isinstance(each, EncodedMetrics)]
    loaded: dict[int, Mapping[Metric, pl.Series]] = {}
    files = [(each.bytes(), each.manifest) for each in encoded]
    for numbers in alike(files, encoded[0].partitions) if encoded else ():
        decoder = ManifestDecoder([files[number] for number in numbers], encoded[0].partitions)
        found = decoder.metrics(metrics)
        start = 0
        for number in numbers:
            rows = len(encoded[number].record_counts)
            loaded[number] = {metric: values.slice(start, rows) for metric, values in found.items()}
            start += rows
    return [loaded[number] for number in range(len(encoded))]


def alike(files: Sequence[tuple[bytes, ManifestFile]], partitions: PartitionColumns) -> list[list[int]]:
    """Groups manifests that can be decoded together: numbers of `files`, a list for each group."""
    if len(files) == 1:
        return [[0]]
    groups: dict[bytes, list[int]] = {}
    for number, (data, manifest) in enumerate(files):
        groups.setdefault(columnar_schema(data, manifest, partitions), []).append(number)
    return list(groups.values())


def decode_manifests(
    files: Sequence[tuple[bytes, ManifestFile]],
    partitions: PartitionColumns,
    metrics: Sequence[Metric],
    read: Callable[[ManifestFile], bytes],
) -> list[ManifestFrame]:
    """Decodes manifests of one spec with some metrics; other metrics are decoded when they are looked at."""
    frames: dict[int, ManifestFrame] = {}
    for numbers in alike(files, partitions) if files else ():
        decoded = ManifestDecoder([files[number] for number in numbers], partitions).files(metrics)
        counts = {0: decoded.height} if len(numbers) == 1 else dict(decoded.group_by(MANIFEST).len().iter_rows())
        start = 0
        for place, number in enumerate(numbers):
            data, manifest = files[number]
            part = decoded.slice(start, counts.get(place, 0))
            start += part.height
            frame = part.drop(MANIFEST, *map(metric_name, metrics))
            source = EncodedMetrics(frame, manifest, partitions, read, data)
            loaded = {metric: part[metric_name(metric)] for metric in metrics}
            frames[number] = ManifestFrame(frame, source, MetricColumns(source, loaded))
    return [frames[number] for number in range(len(files))]


def join_frames(frames: Sequence[ManifestFrame]) -> ManifestFrame:
    """Manifests of one spec as one."""
    if len(frames) == 1:
        return frames[0]
    files = pl.concat([each.frame for each in frames], rechunk=True)
    return ManifestFrame(files, _JoinedMetrics(files, frames))


@dataclass
class _Slot:
    manifest: ManifestFrame
    size: int
    plan: int


class ManifestCache:
    """Decoded manifests by location, least recently used first out; safe for threads. A bound of 0 keeps nothing."""

    def __init__(self, max_bytes: int = DEFAULT_CACHE_BYTES) -> None:
        self.max_bytes = max_bytes
        self._slots = _Slots(max_bytes, lambda slot: slot.size, largest=max_bytes)
        self._plans = count(1)

    def __len__(self) -> int:
        return len(self._slots)

    @property
    def size(self) -> int:
        return self._slots.size

    def begin_plan(self) -> int:
        """A number for a plan; manifests of the same plan do not push each other out."""
        return next(self._plans)

    def get(self, key: Hashable, plan: int) -> ManifestFrame | None:
        """The manifest of a key, which counts as used by a plan; None if it is not kept."""
        slot = self._slots.get(key)
        if slot is None:
            return None
        slot.plan = plan
        return slot.manifest

    def put(self, key: Hashable, manifest: ManifestFrame, plan: int) -> None:
        """Keeps a manifest of a plan as it is now, if it fits; in the second half of the room without what is large."""
        self._slots.pop(key)
        is_roomy = self.size + manifest.size <= self.max_bytes // 2
        kept = manifest if is_roomy else manifest.without_file()
        self._slots.put(key, _Slot(kept, kept.size, plan))

    def clear(self) -> None:
        self._slots.clear()


class _Slots(BoundedCache[_Slot]):
    def _gives_way(self, kept: _Slot, other: _Slot) -> bool:
        return kept.plan != other.plan


_shared = ManifestCache()
# Catalogs of one bound share the room, so that many of them take no more of it than one; it goes with the last of them.
_of_bound: WeakValueDictionary[int, ManifestCache] = WeakValueDictionary({DEFAULT_CACHE_BYTES: _shared})


def cache_of_bound(bound: int) -> ManifestCache:
    """The cache for the tables of catalogs whose ``CACHE_BYTES`` is so much; of the default, the shared one."""
    return _of_bound.setdefault(bound, ManifestCache(bound))


def cache_of(storage: object) -> ManifestCache:
    """The cache for manifests of a storage, which belongs to a catalog: the shared one if it has none of its own."""
    own = getattr(storage, "manifest_cache", None)
    return own if isinstance(own, ManifestCache) else _shared


_LIBRARY = "polars"


@contextmanager
def planning_ready() -> Iterator[None]:
    """Imports the libraries that planning needs in a thread, while the block runs; once in a process. The thread ends
    with the block, so that it never meets a fork or the end of the interpreter."""
    if _LIBRARY in sys.modules:
        yield
        return
    thread = threading.Thread(target=_import, name="iceberg-import")
    thread.start()
    try:
        yield
    finally:
        thread.join()


def _import() -> None:
    with suppress(ImportError):  # whoever needs it raises it again
        import_polars()
