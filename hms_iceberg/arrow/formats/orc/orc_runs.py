"""Run-length encodings of ORC: bits and integers, versions 1 and 2.

Source: Apache ORC specification v1, "Run Length Encoding".
"""

from __future__ import annotations

from typing import Any

import numpy as np

_WIDTHS = (*range(1, 25), 26, 28, 30, 32, 40, 48, 56, 64)
# A patch list stores values in the next width that the encoding knows.
_U64 = np.uint64
_LONGEST_RUN = 512


def decode_bits(data: bytes, count: int) -> Any:
    """A boolean stream: runs of bytes, most significant bit first."""
    parts = []
    needed = (count + 7) // 8
    found = at = 0
    while found < needed:
        head = data[at]
        at += 1
        if head < 128:
            parts.append(np.full(head + 3, data[at], np.uint8))
            at += 1
        else:
            length = 256 - head
            parts.append(np.frombuffer(data, np.uint8, length, at))
            at += length
        found += len(parts[-1])
    return np.unpackbits(np.concatenate(parts))[:count].astype(np.bool_) if parts else np.empty(0, np.bool_)


def decode_integers(data: bytes, count: int, signed: bool, version: int) -> Any:
    """An integer stream of version 1 or 2 as int64; signed values are zigzag encoded."""
    decoder = _Version2(data, signed) if version == 2 else _Version1(data, signed)
    parts: list[Any] = []
    found = 0
    while found < count:
        part = decoder.run()
        parts.append(part)
        found += len(part)
    return np.concatenate(parts)[:count] if parts else np.empty(0, np.int64)


def decode_all(data: bytes, signed: bool) -> Any:
    """All values of an integer stream of version 2, as an array of int64 that may be changed."""
    decoder = _Version2(data, signed)
    parts = []
    while decoder.has_more:
        parts.append(decoder.run())
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def encode_unsigned(values: Any) -> bytes:
    """Values that are not negative as an integer stream of version 2, in direct runs of whole bytes."""
    parts = []
    for first in range(0, len(values), _LONGEST_RUN):
        run = values[first : first + _LONGEST_RUN]
        size = max((int(run.max()).bit_length() + 7) // 8, 1)
        length = len(run) - 1
        head = 1 << 6 | _WIDTHS.index(8 * size) << 1 | length >> 8
        packed = run.astype(">u8").view(np.uint8).reshape(-1, 8)[:, 8 - size :]
        parts += [bytes([head, length & 0xFF]), packed.tobytes()]
    return b"".join(parts)


class _Decoder:
    def __init__(self, data: bytes, signed: bool) -> None:
        self._data = data
        self._at = 0
        self._signed = signed

    @property
    def has_more(self) -> bool:
        return self._at < len(self._data)

    def _byte(self) -> int:
        value = self._data[self._at]
        self._at += 1
        return value

    def _varint(self, signed: bool) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
        return (value >> 1) ^ -(value & 1) if signed else value

    def _big_endian(self, size: int) -> int:
        value = int.from_bytes(self._data[self._at : self._at + size], "big")
        self._at += size
        return value

    def _packed(self, width: int, count: int) -> Any:
        """Unsigned values of ``width`` bits, most significant first, in whole bytes."""
        size = (width * count + 7) // 8
        raw = np.frombuffer(self._data, np.uint8, size, self._at)
        self._at += size
        bits = np.unpackbits(raw)[: width * count].reshape(count, width).astype(_U64)
        weights = _U64(1) << np.arange(width - 1, -1, -1, dtype=_U64)
        return (bits * weights).sum(axis=1, dtype=_U64)

    def _zigzag(self, values: Any) -> Any:
        if not self._signed:
            return values.astype(np.int64)
        return ((values >> _U64(1)) ^ (_U64(0) - (values & _U64(1)))).astype(np.int64)


class _Version1(_Decoder):
    def run(self) -> Any:
        head = self._byte()
        if head < 128:
            delta = self._byte()
            delta = delta - 256 if delta > 127 else delta
            base = self._varint(self._signed)
            return base + delta * np.arange(head + 3, dtype=np.int64)
        return np.array([self._varint(self._signed) for _ in range(256 - head)], np.int64)


class _Version2(_Decoder):
    def run(self) -> Any:
        head = self._byte()
        kind = head >> 6
        if kind == 0:
            return self._short_repeat(head)
        width_code = (head >> 1) & 0x1F
        count = (((head & 1) << 8) | self._byte()) + 1
        if kind == 1:
            return self._zigzag(self._packed(_WIDTHS[width_code], count))
        if kind == 2:
            return self._patched(_WIDTHS[width_code], count)
        return self._delta(width_code, count)

    def _short_repeat(self, head: int) -> Any:
        value = self._big_endian(((head >> 3) & 7) + 1)
        return np.repeat(self._zigzag(np.array([value], _U64)), (head & 7) + 3)

    def _delta(self, width_code: int, count: int) -> Any:
        base = self._varint(self._signed)
        step = self._varint(True)
        if width_code == 0:
            return base + step * np.arange(count, dtype=np.int64)
        deltas = self._packed(_WIDTHS[width_code], count - 2).astype(np.int64)
        steps = np.concatenate([np.array([0, step], np.int64), deltas if step >= 0 else -deltas])
        return base + np.cumsum(steps)[:count]

    def _patched(self, width: int, count: int) -> Any:
        third, fourth = self._byte(), self._byte()
        base_bytes = (third >> 5) + 1
        patch_width = _WIDTHS[third & 0x1F]
        gap_width = (fourth >> 5) + 1
        patches = fourth & 0x1F
        base = self._big_endian(base_bytes)
        sign = 1 << (base_bytes * 8 - 1)
        base = -(base & (sign - 1)) if base & sign else base
        values = self._packed(width, count)
        combined_width = next(each for each in _WIDTHS if each >= gap_width + patch_width)
        at = 0
        for entry in self._packed(combined_width, patches).tolist():
            at += entry >> patch_width
            patch = entry & ((1 << patch_width) - 1)
            if patch:
                values[at] |= _U64(patch) << _U64(width)
        return values.astype(np.int64) + base
