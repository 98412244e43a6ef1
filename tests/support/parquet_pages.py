"""How much of a Parquet file a filter leaves to be read: the pages whose bounds match, as the file's page index tells.

Source: Apache Parquet format, `parquet.thrift` and "Page Index"; Thrift's compact protocol.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_FOOTER_END = 8  # its length, and "PAR1"
# Fields of parquet.thrift.
_ROW_GROUPS, _COLUMNS, _GROUP_ROWS = 4, 1, 3
_METADATA, _DATA_AT, _DICTIONARY_AT = 3, 9, 11
_OFFSETS_AT, _OFFSETS_LENGTH, _BOUNDS_AT, _BOUNDS_LENGTH = 4, 5, 6, 7
_NULL_PAGES, _LEAST, _GREATEST = 1, 2, 3
_PAGE_BYTES, _FIRST_ROW = 2, 3
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 12


def bytes_to_read(path: str, column: int, low: int, high: int) -> int:
    """Bytes of the pages, of all columns, that hold rows of pages of one column in which its values may be.

    Args:
        path: the file, whose columns are plain.
        column: which of them is filtered, of 64 bits.
        low, high: the wanted values, both among them.
    """
    data = Path(path).read_bytes()
    end = len(data) - _FOOTER_END
    footer = _Reader(data, end - int.from_bytes(data[end : end + 4], "little")).struct()
    return sum(_of_group(data, group, column, low, high) for group in footer[_ROW_GROUPS])


def _of_group(data: bytes, group: dict[int, Any], column: int, low: int, high: int) -> int:
    chunk, rows = group[_COLUMNS][column], group[_GROUP_ROWS]
    bounds = _Reader(data, chunk[_BOUNDS_AT]).struct()
    values = zip(bounds[_NULL_PAGES], map(_number, bounds[_LEAST]), map(_number, bounds[_GREATEST]), strict=True)
    wanted = [
        (page.first, page.end)
        for page, (null, least, greatest) in zip(_pages(data, chunk, rows), values, strict=True)
        if not null and least <= high and greatest >= low
    ]
    if not wanted:
        return 0
    pages = sum(
        page.size
        for each in group[_COLUMNS]
        for page in _pages(data, each, rows)
        if any(page.first < end and page.end > first for first, end in wanted)
    )
    return pages + sum(_of_dictionary(each[_METADATA]) for each in group[_COLUMNS])


def _of_dictionary(chunk: dict[int, Any]) -> int:
    return int(chunk[_DATA_AT] - chunk[_DICTIONARY_AT]) if _DICTIONARY_AT in chunk else 0


@dataclass(frozen=True)
class _Page:
    size: int
    first: int
    end: int


def _pages(data: bytes, chunk: dict[int, Any], rows: int) -> Iterator[_Page]:
    found = _Reader(data, chunk[_OFFSETS_AT]).struct()[1]
    ends = [*(page[_FIRST_ROW] for page in found[1:]), rows]
    for page, end in zip(found, ends, strict=True):
        yield _Page(page[_PAGE_BYTES], page[_FIRST_ROW], end)


def _number(value: bytes) -> int:
    return int.from_bytes(value, "little", signed=True)


class _Reader:
    """Values of Thrift's compact protocol; structs as dictionaries by field number."""

    def __init__(self, data: bytes, at: int) -> None:
        self._data = data
        self._at = at

    def _byte(self) -> int:
        self._at += 1
        return self._data[self._at - 1]

    def _varint(self) -> int:
        value, shift = 0, 0
        while (byte := self._byte()) & 0x80:
            value |= (byte & 0x7F) << shift
            shift += 7
        return value | byte << shift

    def _zigzag(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)

    def struct(self) -> dict[int, Any]:
        """A struct."""
        fields: dict[int, Any] = {}
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._zigzag()
            kind = head & 0x0F
            fields[number] = kind == _TRUE if kind in (_TRUE, _FALSE) else self._value(kind)
        return fields

    def _value(self, kind: int) -> Any:
        if kind in (_TRUE, _FALSE, _BYTE):
            return self._byte() == 1 if kind != _BYTE else self._byte()
        if kind == _BINARY:
            length = self._varint()
            self._at += length
            return self._data[self._at - length : self._at]
        if kind in (_LIST, _SET):
            head = self._byte()
            count = self._varint() if head >> 4 == 15 else head >> 4
            return [self._value(head & 0x0F) for _ in range(count)]
        if kind == _STRUCT:
            return self.struct()
        if kind == _DOUBLE:
            self._at += 8
            return None
        return self._zigzag()
