"""Theta sketches: how many distinct values a column has, in bounded space and mergeable.

The `datasketches` library takes only numbers and text, and Iceberg's sketches are of bytes; so values are hashed here,
with the library's hash and seed, and what comes of it is the library's own serialized form.

Source: Puffin specification, blob type `apache-datasketches-theta-v1`; Apache DataSketches, "Theta Sketch" (compact
form, serial version 3).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

import mmh3
import numpy as np

_SEED = 9001
_SEED_HASH = mmh3.hash64(struct.pack("<q", _SEED), 0, signed=False)[0] & 0xFFFF
_NOMINAL_ENTRIES = 4096  # as Apache Iceberg's
_MAX_THETA = (1 << 63) - 1
_READ_ONLY, _EMPTY, _COMPACT, _ORDERED = 2, 4, 8, 16
_COMPACT_FAMILY, _SERIAL_VERSION = 3, 3


class ThetaSketch:
    """The smallest hashes of distinct values: so many that their spread tells how many values there are."""

    def __init__(self) -> None:
        self._hashes = np.empty(0, np.uint64)
        self._theta = _MAX_THETA

    def update(self, values: Iterable[bytes]) -> None:
        """Counts values in their single-value serialization; equal ones count once."""
        hashes = np.fromiter((mmh3.hash64(value, _SEED, signed=False)[0] >> 1 for value in values), np.uint64)
        merged = np.union1d(self._hashes, hashes[(hashes < self._theta) & (hashes > 0)])
        if len(merged) > _NOMINAL_ENTRIES:
            self._theta = int(merged[_NOMINAL_ENTRIES])
            merged = merged[:_NOMINAL_ENTRIES]
        self._hashes = merged

    @property
    def estimate(self) -> float:
        """About how many distinct values there were; exact up to 4096."""
        return len(self._hashes) / (self._theta / _MAX_THETA)

    def serialized(self) -> bytes:
        """The sketch in its compact, ordered form."""
        count = len(self._hashes)
        flags = _READ_ONLY | _COMPACT | _ORDERED
        if count == 0:
            return struct.pack("<BBBBBBH", 1, _SERIAL_VERSION, _COMPACT_FAMILY, 0, 0, flags | _EMPTY, _SEED_HASH)
        estimates = self._theta < _MAX_THETA
        if count == 1 and not estimates:
            head = struct.pack("<BBBBBBH", 1, _SERIAL_VERSION, _COMPACT_FAMILY, 0, 0, flags, _SEED_HASH)
            return head + self._hashes.tobytes()
        longs = 3 if estimates else 2
        head = struct.pack("<BBBBBBH", longs, _SERIAL_VERSION, _COMPACT_FAMILY, 0, 0, flags, _SEED_HASH)
        head += struct.pack("<If", count, 1.0)
        if estimates:
            head += struct.pack("<Q", self._theta)
        return head + self._hashes.tobytes()
