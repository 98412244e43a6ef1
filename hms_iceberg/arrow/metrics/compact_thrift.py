"""Values of Thrift's compact protocol, as far as footers of Parquet files need them.

Source: Apache Thrift, "Thrift Compact protocol encoding".
"""

from __future__ import annotations

from collections.abc import Iterator

BYTE, INT, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = 3, 5, 7, 8, 9, 10, 11, 12


def integer_of(digits: bytes) -> int:
    """An integer of all bytes of its form."""
    number = 0
    for byte in reversed(digits):
        number = number << 7 | byte & 127
    return number >> 1 ^ -(number & 1)


class CompactThrift:
    """Reads values of Thrift's compact protocol one after another."""

    def __init__(self, data: bytes | memoryview) -> None:
        self._data = data
        self.at = 0

    def fields(self) -> Iterator[tuple[int, int]]:
        """Number and type of each field of a struct; whoever iterates reads or skips its value."""
        number = 0
        while header := self._byte():
            number = number + (header >> 4) if header >> 4 else self.integer()
            yield number, header & 15

    def list_header(self) -> tuple[int, int]:
        header = self._byte()
        return header & 15, self._varint() if header >> 4 == 15 else header >> 4

    def integer(self) -> int:
        number = self._varint()
        return number >> 1 ^ -(number & 1)

    def skip(self, kind: int, in_list: bool = False) -> None:
        """Goes past a value of a type; a boolean is in its field's header, but has a byte in a list."""
        if kind in (1, 2):
            self.at += in_list
        elif kind == BYTE:
            self.at += 1
        elif kind == DOUBLE:
            self.at += 8
        elif kind == BINARY:
            length = self._varint()
            self.at += length
        elif kind in (LIST, SET):
            of, count = self.list_header()
            for _ in range(count):
                self.skip(of, True)
        elif kind == MAP:
            count = self._varint()
            kinds = self._byte() if count else 0
            for _ in range(count):
                self.skip(kinds >> 4, True)
                self.skip(kinds & 15, True)
        elif kind == STRUCT:
            for _, of in self.fields():
                self.skip(of)
        else:
            self._varint()

    def _byte(self) -> int:
        self.at += 1
        return self._data[self.at - 1]

    def _varint(self) -> int:
        number = shift = 0
        while True:
            byte = self._byte()
            number |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return number
