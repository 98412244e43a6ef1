"""Footers of Parquet files as other programs write them: any number of one, and its statistics, changed by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

BOOL, NOT, BYTE, SHORT, INT, LONG, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)
# A struct is a dictionary of field number to type and value; a list is its type and its values.
Struct = dict[int, tuple[int, Any]]
SCHEMA, ROWS, GROUPS, CREATED_BY, ORDERS = 2, 3, 4, 6, 7
COLUMNS, GROUP_BYTES, GROUP_ROWS = 1, 2, 3
CHUNK, CHUNK_VALUES, CHUNK_BYTES, CHUNK_STATISTICS = 3, 5, 7, 12
OLD_MAX, OLD_MIN, NULLS, MAX, MIN = 1, 2, 3, 5, 6


def changed(path: Path | str, change: Callable[[Struct], None]) -> str:
    """Changes the footer of a file.

    Args:
        path: the file.
        change: changes the footer.
    """
    place = Path(path)
    data = place.read_bytes()
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    footer = _Reader(data[start:-8]).struct()
    change(footer)
    written = _struct(footer)
    place.write_bytes(data[:start] + written + len(written).to_bytes(4, "little") + b"PAR1")
    return str(place)


def groups(footer: Struct) -> list[Struct]:
    """The row groups of a footer."""
    return list(footer[GROUPS][1][1])


def chunks(group: Struct) -> list[Struct]:
    """The metadata of the columns of a row group."""
    return [column[CHUNK][1] for column in group[COLUMNS][1][1]]


def set_statistics(chunk: Struct, least: bytes, greatest: bytes, *, old: bool, nulls: int | None = 0) -> None:
    """Gives a column the least and the greatest value.

    Args:
        chunk: the column in a row group.
        least: the least value as the file stores it.
        greatest: the greatest one.
        old: into the old pair of fields.
        nulls: the number of nulls; None leaves it out.
    """
    most, low = (OLD_MAX, OLD_MIN) if old else (MAX, MIN)
    found: Struct = {most: (BINARY, greatest), low: (BINARY, least)}
    if nulls is not None:
        found[NULLS] = (LONG, nulls)
    chunk[CHUNK_STATISTICS] = (STRUCT, found)


def set_writer(footer: Struct, created_by: str | None, *, ordered: bool) -> None:
    """Makes a footer that of a program.

    Args:
        footer: the footer.
        created_by: the program, as it names itself; None if it does not.
        ordered: whether it says that columns are in the order of their type.
    """
    footer.pop(CREATED_BY, None)
    if created_by is not None:
        footer[CREATED_BY] = (BINARY, created_by.encode())
    if not ordered:
        footer.pop(ORDERS, None)


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def struct(self) -> Struct:
        fields: Struct = {}
        number = 0
        while header := self._byte():
            number = number + (header >> 4) if header >> 4 else self._signed()
            kind = header & 15
            fields[number] = (kind, kind == BOOL if kind in (BOOL, NOT) else self._value(kind))
        return fields

    def _value(self, kind: int) -> Any:
        if kind == STRUCT:
            return self.struct()
        if kind in (LIST, SET):
            header = self._byte()
            count = self._varint() if header >> 4 == 15 else header >> 4
            return header & 15, [self._value(header & 15) for _ in range(count)]
        if kind == BINARY:
            return self._bytes(self._varint())
        if kind == DOUBLE:
            return self._bytes(8)
        return self._byte() if kind in (BOOL, NOT, BYTE) else self._signed()

    def _byte(self) -> int:
        self._at += 1
        return self._data[self._at - 1]

    def _bytes(self, count: int) -> bytes:
        self._at += count
        return self._data[self._at - count : self._at]

    def _varint(self) -> int:
        number = shift = 0
        while True:
            byte = self._byte()
            number |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return number

    def _signed(self) -> int:
        number = self._varint()
        return number >> 1 ^ -(number & 1)


def _struct(fields: Struct) -> bytes:
    parts, last = [], 0
    for number, (kind, value) in sorted(fields.items()):
        kind = (BOOL if value else NOT) if kind in (BOOL, NOT) else kind
        near = 0 < number - last < 16
        parts.append(bytes((number - last << 4 | kind,)) if near else bytes((kind,)) + _signed(number))
        parts.append(b"" if kind in (BOOL, NOT) else _value(kind, value))
        last = number
    return b"".join((*parts, b"\0"))


def _value(kind: int, value: Any) -> bytes:
    if kind == STRUCT:
        return _struct(value)
    if kind in (LIST, SET):
        of, items = value
        head = bytes((len(items) << 4 | of,)) if len(items) < 15 else bytes((0xF0 | of,)) + _varint(len(items))
        return head + b"".join(_value(of, each) for each in items)
    if kind == BINARY:
        return _varint(len(value)) + bytes(value)
    if kind == DOUBLE:
        return bytes(value)
    return bytes((value,)) if kind in (BOOL, NOT, BYTE) else _signed(value)


def _varint(number: int) -> bytes:
    parts = []
    while number > 127:
        parts.append(number & 127 | 128)
        number >>= 7
    return bytes((*parts, number))


def _signed(number: int) -> bytes:
    return _varint((number << 1) ^ (number >> 63))


# ----------------------------------------------------------------------------------------- orders of bytes


def extremes(stored: Iterable[bytes], order: str) -> tuple[bytes, bytes]:
    """The least and the greatest of some values in an order that programs have used.

    Args:
        stored: the values as files store them.
        order: `unsigned` or `signed` bytes, one after another.
    """
    values = list(stored)
    if order == "unsigned":
        return min(values), max(values)

    def signed(value: bytes) -> list[int]:
        return [byte - 256 if byte > 127 else byte for byte in value]

    return min(values, key=signed), max(values, key=signed)
