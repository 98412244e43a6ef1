"""How Avro lays out the maps of metrics, which are arrays of pairs of a key and a value.

Source: Avro specification, "Binary Encoding".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hms_iceberg.errors import IcebergError
from hms_iceberg.spec.manifests.avro_container import decode_long

_WORD = 8


class IrregularError(IcebergError):
    """Records cannot be read through at once."""


class MapShape:
    """How some maps are laid out: two are alike if their bytes are equal wherever the mask has bits.

    Attributes:
        text: the bytes of the maps, filled up to whole words.
        mask: all bits of keys, counts and lengths, of other numbers those that tell where they end.
        values: for each map, where the value of each key begins and ends.
        size: the length of all.
    """

    def __init__(self, body: bytes, start: int, types: Sequence[Any]) -> None:
        self._body = body
        self._start = start
        self._mask = bytearray()
        at = start
        self.values: list[dict[int, tuple[int, int]]] = []
        for avro_type in types:
            self.values.append({})
            number = 0
            if isinstance(avro_type, list):
                number, at = decode_long(body, at)
            if not isinstance(avro_type, list) or branch_of(avro_type, number) != "null":
                at = self._add(map_value_type(avro_type) == "long", at)
        self._compare_up_to(at)
        self.size = at - start
        filled = -(-self.size // _WORD) * _WORD
        self.mask = np.frombuffer(bytes(self._mask).ljust(filled, b"\0"), np.uint8)
        self.text = np.frombuffer(body[start:at].ljust(filled, b"\0"), np.uint8)

    def _add(self, is_number: bool, at: int) -> int:
        body = self._body
        count = -1
        while count:
            count, at = decode_long(body, at)
            if count < 0:
                _, at = decode_long(body, at)
            for _ in range(abs(count)):
                key, value = decode_long(body, at)
                number, at = decode_long(body, value)
                if is_number:
                    self._compare_up_to(value)
                    self._mask += b"\x80" * (at - value)
                elif 0 <= number <= len(body) - at:
                    self._compare_up_to(at)
                    self._mask += bytes(number)
                    at += number
                else:
                    raise IrregularError
                self.values[-1][key] = value - self._start, at - self._start
        return at

    def _compare_up_to(self, position: int) -> None:
        self._mask += b"\xff" * (position - self._start - len(self._mask))


def map_value_type(avro_type: Any) -> str:
    """The type of the values of an array of pairs of a key and a value, or of a union of it and null.

    Raises:
        IrregularError: it is no such type.
    """
    branches = avro_type if isinstance(avro_type, list) else [avro_type]
    arrays = [each for each in branches if each != "null"]
    items = arrays[0].get("items") if len(arrays) == 1 and isinstance(arrays[0], dict) else None
    fields = items.get("fields", []) if isinstance(items, dict) else []
    types = [fields[1]["type"]] if [field["name"] for field in fields] == ["key", "value"] else []
    if fields[:1] and fields[0]["type"] == "int" and types in (["long"], ["bytes"]):
        return str(types[0])
    raise IrregularError


def branch_of(branches: list[Any], number: int) -> Any:
    """The branch of a union that a number stands for.

    Raises:
        IrregularError: there is no such branch.
    """
    if not 0 <= number < len(branches):
        raise IrregularError
    return branches[number]
