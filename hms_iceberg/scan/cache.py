"""A bounded cache of decoded manifests.

Manifests never change, so that a decoded one is good for as long as it is kept. The bound is on bytes. What does not
fit beside the manifests of the same plan is not kept at all: a table larger than the cache would otherwise push its own
first manifests out while it reads the last ones, and find none of them the next time.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hms_iceberg.scan.metric_columns import MetricColumns

if TYPE_CHECKING:
    import polars as pl

DEFAULT_CACHE_BYTES = 512 * 1024 * 1024


class ManifestFrame:
    """A decoded manifest: its live files as a frame, and their metrics by column.

    Args:
        frame: what :func:`hms_iceberg.scan.manifest_frames.read_manifest_frame` returns.
    """

    __slots__ = ("frame", "metrics", "size")

    def __init__(self, frame: pl.DataFrame) -> None:
        self.frame = frame
        self.metrics = MetricColumns(frame)
        self.size = int(frame.estimated_size())


@dataclass
class _Slot:
    manifest: ManifestFrame
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
        """Keep a manifest, where it fits."""
        with self._lock:
            if key in self._slots or not self._make_room(manifest.size, plan):
                return
            self._slots[key] = _Slot(manifest, plan)
            self._size += manifest.size

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
            _, slot = self._slots.popitem(last=False)
            self._size -= slot.manifest.size
        return True


_shared = ManifestCache()


def shared_cache() -> ManifestCache:
    """The cache that all scans of this process use unless they are given one of their own."""
    return _shared
