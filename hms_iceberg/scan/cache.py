"""A bounded cache of decoded manifests.

Manifests never change, so that a decoded one is good for as long as it is kept. The bound is on bytes. What does not
fit beside the manifests of the same plan is not kept at all: a table larger than the cache would otherwise push its own
first manifests out while it reads the last ones, and find none of them the next time.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from hms_iceberg.lazy import pl
from hms_iceberg.scan.manifest_frames import MANIFEST, METRIC_COLUMNS, ManifestDecoder
from hms_iceberg.scan.metric_columns import MapMetrics, MetricColumns

DEFAULT_CACHE_BYTES = 512 * 1024 * 1024


class ManifestFrame:
    """Decoded manifests: their live files as a frame, and their metrics column by column.

    Args:
        frame: the files, in the columns of :class:`hms_iceberg.scan.manifest_frames.ManifestDecoder`.
        load: decodes map columns of metrics.
        maps: map columns of metrics that are decoded already.
        raw_size: bytes of the files that ``load`` keeps.
    """

    __slots__ = ("_load", "_maps", "_raw_size", "frame", "metrics")

    def __init__(
        self,
        frame: pl.DataFrame,
        load: Callable[[Sequence[str]], pl.DataFrame],
        maps: dict[str, pl.Series],
        raw_size: int = 0,
    ) -> None:
        self.frame = frame
        self._maps = MapMetrics(frame, load, maps)
        self.metrics = MetricColumns(self._maps)
        self._load = load
        self._raw_size = raw_size

    @property
    def size(self) -> int:
        """Bytes that the decoded columns and the files take."""
        maps = sum(int(each.estimated_size()) for each in self._maps.decoded.values())
        return int(self.frame.estimated_size()) + maps + self.metrics.size + self._raw_size

    @property
    def columns_made(self) -> int:
        """How many columns of metrics are decoded."""
        return len(self._maps.decoded) + self.metrics.columns_made

    def all_columns(self) -> pl.DataFrame:
        """Files and metrics in one frame."""
        return self.frame.hstack([self._maps.maps(name) for name in METRIC_COLUMNS])

    def without_metrics(self) -> ManifestFrame:
        """The same manifests with all metrics yet to be decoded."""
        return ManifestFrame(self.frame, self._load, {}, self._raw_size)


def decode_one(decoder: ManifestDecoder, metrics: Sequence[str]) -> ManifestFrame:
    """A manifest with some metrics; the others are decoded when they are looked at.

    Args:
        decoder: of one manifest.
        metrics: map columns that are certain to be looked at: one pass decodes them with the rest.
    """
    decoded = decoder.files(metrics)
    maps = {name: decoded[name] for name in metrics}
    return ManifestFrame(decoded.drop(*metrics, MANIFEST), decoder.metrics, maps, decoder.size)


def decode_small(decoder: ManifestDecoder) -> list[ManifestFrame]:
    """Several small manifests, with all their metrics."""
    decoded = decoder.files(METRIC_COLUMNS)
    counts = dict(decoded.group_by(MANIFEST).len().iter_rows())
    decoded = decoded.drop(MANIFEST)
    frames = []
    start = 0
    for number in range(len(decoder.manifests)):
        part = decoded.slice(start, counts.get(number, 0))
        start += part.height
        frames.append(_with_all_metrics(part))
    return frames


def join_frames(frames: Sequence[ManifestFrame]) -> ManifestFrame:
    """Small manifests of one spec as one; all have all their metrics decoded."""
    if len(frames) == 1:
        return frames[0]
    return _with_all_metrics(pl.concat([each.all_columns() for each in frames], rechunk=True))


def _with_all_metrics(decoded: pl.DataFrame) -> ManifestFrame:
    maps = {name: decoded[name] for name in METRIC_COLUMNS}
    return ManifestFrame(decoded.drop(METRIC_COLUMNS), lambda names: decoded.select(names), maps)


@dataclass
class _Slot:
    manifest: ManifestFrame
    size: int
    plan: int


class ManifestCache:
    """Decoded manifests by location, least recently used first out. Safe for use by several threads.

    Args:
        max_bytes: bound of what is kept; 0 keeps nothing.
    """

    def __init__(self, max_bytes: int = DEFAULT_CACHE_BYTES) -> None:
        self.max_bytes = max_bytes
        self._slots: OrderedDict[Hashable, _Slot] = OrderedDict()
        self._size = 0
        self._plans = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._slots)

    @property
    def size(self) -> int:
        """Bytes kept now."""
        return self._size

    def begin_plan(self) -> int:
        """A number for a plan; manifests of the same plan do not push each other out."""
        with self._lock:
            self._plans += 1
            return self._plans

    def get(self, key: Hashable, plan: int) -> ManifestFrame | None:
        """The manifest kept under a key, or None."""
        with self._lock:
            slot = self._slots.get(key)
            if slot is None:
                return None
            slot.plan = plan
            self._slots.move_to_end(key)
            return slot.manifest

    def put(self, key: Hashable, manifest: ManifestFrame, plan: int) -> None:
        """Keep a manifest as it is now, where it fits; without its metrics where only that fits."""
        with self._lock:
            self._forget(key)
            for candidate in (manifest, manifest.without_metrics()):
                size = candidate.size
                if self._make_room(size, plan):
                    self._slots[key] = _Slot(candidate, size, plan)
                    self._size += size
                    return

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._slots.clear()
            self._size = 0

    def _make_room(self, needed: int, plan: int) -> bool:
        if needed > self.max_bytes:
            return False
        while self._size + needed > self.max_bytes:
            oldest = next(iter(self._slots.values()))
            if oldest.plan == plan:
                return False
            self._forget(next(iter(self._slots)))
        return True

    def _forget(self, key: Hashable) -> None:
        slot = self._slots.pop(key, None)
        if slot is not None:
            self._size -= slot.size


_shared = ManifestCache()


def shared_cache() -> ManifestCache:
    """The cache that all scans of this process use unless they are given one of their own."""
    return _shared
