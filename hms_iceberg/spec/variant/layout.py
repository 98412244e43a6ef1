"""The layout of variants: headers, dictionaries of names, objects and arrays, as bytes.

Source: Apache Parquet, "Variant Binary Encoding".
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from itertools import pairwise

VERSION = 1

# What the two lowest bits of a value's first byte say.
PRIMITIVE, SHORT_STRING, OBJECT, ARRAY = range(4)

MOST_SHORT_STRING = 63


class Kind(IntEnum):
    """The primitive types of variants, by the numbers that stand in a value's first byte."""

    NULL = 0
    TRUE = 1
    FALSE = 2
    INT8 = 3
    INT16 = 4
    INT32 = 5
    INT64 = 6
    DOUBLE = 7
    DECIMAL4 = 8
    DECIMAL8 = 9
    DECIMAL16 = 10
    DATE = 11
    TIMESTAMPTZ = 12
    TIMESTAMP = 13
    FLOAT = 14
    BINARY = 15
    STRING = 16
    TIME = 17
    TIMESTAMPTZ_NS = 18
    TIMESTAMP_NS = 19
    UUID = 20

    @property
    def header(self) -> bytes:
        return bytes((self << 2 | PRIMITIVE,))


NULL_VALUE = Kind.NULL.header

SIZES = {
    Kind.NULL: 0,
    Kind.TRUE: 0,
    Kind.FALSE: 0,
    Kind.INT8: 1,
    Kind.INT16: 2,
    Kind.INT32: 4,
    Kind.INT64: 8,
    Kind.DOUBLE: 8,
    Kind.DECIMAL4: 5,
    Kind.DECIMAL8: 9,
    Kind.DECIMAL16: 17,
    Kind.DATE: 4,
    Kind.TIMESTAMPTZ: 8,
    Kind.TIMESTAMP: 8,
    Kind.FLOAT: 4,
    Kind.TIME: 8,
    Kind.TIMESTAMPTZ_NS: 8,
    Kind.TIMESTAMP_NS: 8,
    Kind.UUID: 16,
}
"""Bytes after the first one, of the types whose values have one length."""


_SIZES_BY_NUMBER = {int(kind): size for kind, size in SIZES.items()}


def unsigned(data: bytes, at: int, size: int) -> int:
    """An unsigned number of some bytes; raises ValueError if they are not all there."""
    if at < 0 or at + size > len(data):
        raise ValueError("a number lies beyond the end")
    return int.from_bytes(data[at : at + size], "little")


def names_of(metadata: bytes) -> list[str]:
    """The dictionary of names of a variant."""
    start, offsets = _places_of_names(metadata)
    return [metadata[start + a : start + b].decode() for a, b in pairwise(offsets)]


def split_bytes(data: bytes) -> tuple[bytes, bytes]:
    """The metadata and the value that stand one behind the other; raises ValueError if the metadata are damaged."""
    start, offsets = _places_of_names(data)
    end = start + offsets[-1]
    return data[:end], data[end:]


def _places_of_names(metadata: bytes) -> tuple[int, list[int]]:
    """The offset at which names begin, and the offsets of each from there, with the end of the last."""
    header = unsigned(metadata, 0, 1)
    if header & 0x0F != VERSION:
        raise ValueError(f"the variant's metadata have version {header & 0x0F}, known is {VERSION}")
    size = (header >> 6) + 1
    count = unsigned(metadata, 1, size)
    start = 1 + size * (count + 2)
    offsets = [unsigned(metadata, 1 + size * (place + 1), size) for place in range(count + 1)]
    if offsets[0] or start + offsets[-1] > len(metadata) or any(a > b for a, b in pairwise(offsets)):
        raise ValueError("the names of the variant's metadata lie beyond their end")
    return start, offsets


def container_of(value: bytes, at: int = 0) -> tuple[list[int], list[int], int, int]:
    """The name ids (an array has none) and offsets of the values, where values begin, and where the object or array
    ends."""
    first = unsigned(value, at, 1)
    header = first >> 2
    is_object = first & 3 == OBJECT
    offset_size = (header & 3) + 1
    id_size = (header >> 2 & 3) + 1 if is_object else 0
    count_size = 4 if header & (16 if is_object else 4) else 1
    count = unsigned(value, at + 1, count_size)
    ids_at = at + 1 + count_size
    offsets_at = ids_at + count * id_size
    start = offsets_at + (count + 1) * offset_size
    if start > len(value):
        raise ValueError("an object or array of the variant ends too soon")
    ids = _numbers(value[ids_at:offsets_at], id_size) if is_object else []
    starts = [start + offset for offset in _numbers(value[offsets_at:start], offset_size)]
    end = starts.pop()
    if end > len(value) or (starts and max(starts) >= end):
        raise ValueError("a value of the variant lies beyond the end of its object or array")
    return ids, starts, start, end


def _numbers(data: bytes, size: int) -> list[int]:
    if size == 1:
        return list(data)
    return [int.from_bytes(data[at : at + size], "little") for at in range(0, len(data), size)]


def end_of(value: bytes, at: int = 0) -> int:
    """The offset at which the value that begins at `at` ends."""
    first = unsigned(value, at, 1)
    basic = first & 3
    if basic == SHORT_STRING:
        end = at + 1 + (first >> 2)
    elif basic == PRIMITIVE:
        size = _SIZES_BY_NUMBER.get(first >> 2)
        if size is None:
            kind_of(first)
            size = 4 + unsigned(value, at + 1, 4)
        end = at + 1 + size
    else:
        return container_of(value, at)[3]
    if end > len(value):
        raise ValueError("a value of the variant ends too soon")
    return end


def kind_of(first: int) -> Kind:
    """The primitive type that a value's first byte names; raises ValueError for one that is not known."""
    try:
        return Kind(first >> 2)
    except ValueError:
        raise ValueError(f"the variant holds a value of type {first >> 2}, which is not known") from None


def fields_of(value: bytes, names: Sequence[str]) -> dict[str, bytes]:
    """The fields of an object, each as the bytes of a value; raises ValueError if it is none, or damaged."""
    if unsigned(value, 0, 1) & 3 != OBJECT:
        raise ValueError("a value beside shredded fields is no object")
    ids, starts, _, _ = container_of(value)
    return {name_at(names, each): value[at : end_of(value, at)] for each, at in zip(ids, starts, strict=True)}


def name_at(names: Sequence[str], number: int) -> str:
    """The name of a number; raises ValueError if the variant's metadata have none."""
    if number >= len(names):
        raise ValueError(f"the variant's metadata have {len(names)} names, asked for number {number}")
    return names[number]


def metadata_bytes(names: Sequence[str]) -> bytes:
    """The metadata of variants whose names are these, which are all different."""
    texts = [name.encode() for name in names]
    offsets = _offsets(texts)
    size = number_size(max(offsets[-1], len(texts)))
    is_sorted = all(a < b for a, b in pairwise(texts))
    header = VERSION | is_sorted << 4 | (size - 1) << 6
    numbers = b"".join(each.to_bytes(size, "little") for each in (len(texts), *offsets))
    return bytes((header,)) + numbers + b"".join(texts)


def string_bytes(text: bytes) -> bytes:
    if len(text) <= MOST_SHORT_STRING:
        return bytes((len(text) << 2 | SHORT_STRING,)) + text
    return Kind.STRING.header + len(text).to_bytes(4, "little") + text


def binary_bytes(data: bytes) -> bytes:
    return Kind.BINARY.header + len(data).to_bytes(4, "little") + data


def object_bytes(ids: Sequence[int], values: Sequence[bytes]) -> bytes:
    """The value of an object; ids stand in the order of the names' UTF-8 bytes."""
    offsets = _offsets(values)
    size = number_size(offsets[-1])
    numbers = bytes(offsets) if size == 1 else b"".join(each.to_bytes(size, "little") for each in offsets)
    return object_head(ids, size) + numbers + b"".join(values)


def object_head(ids: Sequence[int], offset_size: int) -> bytes:
    """The bytes before the offsets of an object: its header, how many fields it has, and their numbers."""
    id_size = number_size(max(ids, default=0))
    is_large = len(ids) > 255
    header = is_large << 6 | (id_size - 1) << 4 | (offset_size - 1) << 2 | OBJECT
    numbers = bytes(ids) if id_size == 1 else b"".join(each.to_bytes(id_size, "little") for each in ids)
    return bytes((header,)) + len(ids).to_bytes(4 if is_large else 1, "little") + numbers


def array_bytes(values: Sequence[bytes]) -> bytes:
    offsets = _offsets(values)
    size = number_size(offsets[-1])
    is_large = len(values) > 255
    parts = [bytes((is_large << 4 | (size - 1) << 2 | ARRAY,)), len(values).to_bytes(4 if is_large else 1, "little")]
    parts += [each.to_bytes(size, "little") for each in offsets]
    return b"".join([*parts, *values])


def _offsets(parts: Sequence[bytes]) -> list[int]:
    offsets = [0]
    for part in parts:
        offsets.append(offsets[-1] + len(part))
    return offsets


def number_size(number: int) -> int:
    size = max((number.bit_length() + 7) // 8, 1)
    if size > 4:
        raise ValueError("a variant has more than 4 GiB")
    return size
