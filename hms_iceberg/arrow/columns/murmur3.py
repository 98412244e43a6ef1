"""The 32-bit Murmur3 hash (x86, seed 0) over whole Arrow columns.

Source: Iceberg specification, "Appendix B: 32-bit Hash Requirements".
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

_C1 = np.uint32(0xCC9E2D51)
_C2 = np.uint32(0x1B873593)
_ADD = np.uint32(0xE6546B64)


def _rotate(values: Any, bits: int) -> Any:
    return (values << np.uint32(bits)) | (values >> np.uint32(32 - bits))


def _mix_block(block: Any) -> Any:
    return _rotate(block * _C1, 15) * _C2


def _mix(state: Any, block: Any) -> Any:
    return _rotate(state ^ _mix_block(block), 13) * np.uint32(5) + _ADD


def _finish(state: Any, lengths: Any) -> Any:
    state = state ^ lengths
    state ^= state >> np.uint32(16)
    state *= np.uint32(0x85EBCA6B)
    state ^= state >> np.uint32(13)
    state *= np.uint32(0xC2B2AE35)
    state ^= state >> np.uint32(16)
    return state


def hash_longs(values: Any) -> Any:
    """Hashes of 64-bit integers as eight little-endian bytes."""
    bits = values.view(np.uint64)
    low = bits.astype(np.uint32)
    high = (bits >> np.uint64(32)).astype(np.uint32)
    state = _mix(np.zeros(len(values), np.uint32), low)
    return _finish(_mix(state, high), np.uint32(8))


def hash_bytes(data: Any, starts: Any, lengths: Any) -> Any:
    """Hashes of byte strings in one buffer, together: a step takes four bytes of each string that is long enough."""
    state = np.zeros(len(starts), np.uint32)
    order = np.argsort(lengths, kind="stable")
    sorted_lengths = lengths[order]
    sorted_starts = starts[order]
    blocks = int(sorted_lengths[-1]) // 4 if len(order) else 0
    for step in range(blocks):
        first = int(np.searchsorted(sorted_lengths, 4 * (step + 1)))
        at = sorted_starts[first:] + 4 * step
        state[first:] = _mix(state[first:], _little_endian(data, at, 4))
    tails = sorted_lengths % 4
    for size in (1, 2, 3):
        rows = np.flatnonzero(tails == size)
        if len(rows):
            at = sorted_starts[rows] + sorted_lengths[rows] - size
            state[rows] ^= _mix_block(_little_endian(data, at, size))
    result = np.empty_like(state)
    result[order] = _finish(state, sorted_lengths.astype(np.uint32))
    return result


def _little_endian(data: Any, at: Any, size: int) -> Any:
    word = data[at].astype(np.uint32)
    for index in range(1, size):
        word |= data[at + index].astype(np.uint32) << np.uint32(8 * index)
    return word


def hash_binary_array(array: pa.Array) -> Any:
    """Hashes of a binary, string or fixed-size binary array; at nulls the hash is arbitrary."""
    if pa.types.is_fixed_size_binary(array.type):
        width = array.type.byte_width
        starts = (np.arange(len(array), dtype=np.int64) + array.offset) * width
        lengths = np.full(len(array), width, np.int64)
        buffer = array.buffers()[1]
    else:
        wide = pa.types.is_large_binary(array.type) or pa.types.is_large_string(array.type)
        _, offsets_buffer, buffer = array.buffers()
        raw = np.frombuffer(offsets_buffer, np.int64 if wide else np.int32)
        offsets = raw[array.offset : array.offset + len(array) + 1].astype(np.int64)
        starts, lengths = offsets[:-1], np.diff(offsets)
    data = np.frombuffer(buffer, np.uint8) if buffer is not None and buffer.size else np.zeros(1, np.uint8)
    return hash_bytes(data, starts, lengths)
