"""The entries of a manifest as the bytes that they are, so that most of a manifest can be copied and not encoded anew.

A decoded manifest tells how long each of its values is in Avro, and so where each field of each entry begins: nothing
but the few fields that change is written again.

Source: Avro specification, "Binary Encoding".
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import chain, groupby, pairwise, repeat
from operator import add
from typing import Any

import numpy as np

from hms_iceberg.errors import CorruptManifestError
from hms_iceberg.lazy import pl
from hms_iceberg.scan.manifests.manifest_frames import ManifestDecoder, WholeEntries
from hms_iceberg.spec.manifests.avro_container import BLOCK_BYTES, encode_long

_SIZES = {"boolean": 1, "float": 4, "double": 8}


class EntryBytes:
    """The entries of some manifests: their inflated bytes one after the other, and one row for each, removed ones
    included, in the columns of `ManifestDecoder.entries` without metrics."""

    def __init__(self, body: bytes, files: pl.DataFrame, types: Mapping[str, Any], sizes: np.ndarray) -> None:
        self.body = body
        self.files = files
        self._types = types
        self._ends = np.cumsum(sizes).reshape(sizes.shape)  # of each field of each entry

    @classmethod
    def of(cls, decoder: ManifestDecoder, whole: WholeEntries | None = None) -> EntryBytes | None:
        """The entries of a decoder's manifests, which may be decoded already; None if their bytes are not laid out as
        most writers do."""
        whole = decoder.whole() if whole is None else whole
        body, columns, files = whole.body, whole.columns, whole.files
        types = {field["name"]: field["type"] for field in json.loads(decoder.flat_schema)["fields"]}
        if not types.keys() <= set(columns.columns):
            return None
        try:
            sizes = columns.select(_size_in(columns, name, avro_type).alias(name) for name, avro_type in types.items())
        except (KeyError, TypeError, ValueError, pl.exceptions.PolarsError):
            return None
        entries = cls(body, files, types, sizes.to_numpy())
        return entries if entries._is_right() else None

    def _is_right(self) -> bool:
        """Whether the fields are as long as it seems: all of them together, and each entry up to its status."""
        if len(self._ends) == 0 or self._ends[-1, -1] != len(self.body):
            return False
        told = np.frombuffer(self.body, np.uint8)[self._starts_of(list(self._types).index("status"))]
        return np.array_equal(told, self.files["status"].to_numpy().astype(np.uint8) * 2)

    def _starts_of(self, field: int) -> np.ndarray:
        """Where a field begins in each entry; where the entry ends if there are no more fields."""
        return self._ends[:, field - 1] if field else np.concatenate(([0], self._ends[:-1, -1]))

    def has(self, names: Sequence[str]) -> bool:
        """Whether the manifest has all of these fields."""
        return self._types.keys() >= set(names)

    def with_values(self, rows: np.ndarray, values: Mapping[str, Sequence[Any]]) -> Iterator[tuple[int, bytes]]:
        """Some entries with other values (integers or null, for each of the rows) for some fields: in blocks that are
        not compressed yet, each with its number of entries."""
        order = list(self._types)
        numbers = sorted(map(order.index, values))
        # Fields that follow each other change together.
        runs = [
            [order[number] for _, number in run]
            for _, run in groupby(enumerate(numbers), lambda each: each[1] - each[0])
        ]
        changing = [_Together([_Integers(self._types[name]) for name in run]) for run in runs]
        inner = (edge for run in runs for edge in (order.index(run[0]), order.index(run[-1]) + 1))
        edges = [self._starts_of(field)[rows] for field in (0, *inner, len(order))]
        lengths = edges[-1] - edges[0]
        blocks = np.diff((np.cumsum(lengths) - lengths) // BLOCK_BYTES, prepend=-1)
        for first, end in pairwise([*np.flatnonzero(blocks).tolist(), len(rows)]):
            places = [each[first:end].tolist() for each in edges]
            pieces: list[Iterable[bytes]] = [self._between(*places[:2])]
            for number, (run, encode) in enumerate(zip(runs, changing, strict=True)):
                pieces.append(encode.rows([values[name][first:end] for name in run]))
                pieces.append(self._between(*places[2 * number + 2 : 2 * number + 4]))
            yield end - first, b"".join(chain.from_iterable(zip(*filter(None, pieces), strict=True)))

    def _between(self, begins: list[int], ends: list[int]) -> list[bytes]:
        """The bytes from one place of each entry to another; empty if that is the same in all of them."""
        body = self.body
        return [] if begins == ends else [body[begin:end] for begin, end in zip(begins, ends, strict=True)]


class _Together(dict[tuple[Any, ...], bytes]):
    """The values of fields that follow each other in Avro, each combination encoded once."""

    def __init__(self, encoders: Sequence[_Integers]) -> None:
        super().__init__()
        self._encoders = encoders

    def rows(self, columns: Sequence[Sequence[Any]]) -> Iterable[bytes]:
        """The bytes of each row of some columns, which often are all alike."""
        if all(each.count(each[0]) == len(each) for each in columns):
            return repeat(self[tuple(each[0] for each in columns)], len(columns[0]))
        return map(self.__getitem__, zip(*columns, strict=True))

    def __missing__(self, row: tuple[Any, ...]) -> bytes:
        encoded = b"".join(encoder[value] for encoder, value in zip(self._encoders, row, strict=True))
        self[row] = encoded
        return encoded


class _Integers(dict[Any, bytes]):
    """Integers of a field in Avro, each encoded once."""

    def __init__(self, avro_type: Any) -> None:
        super().__init__()
        self._branches = avro_type if isinstance(avro_type, list) else None

    def __missing__(self, value: int | None) -> bytes:
        if self._branches is None:
            if value is None:
                raise CorruptManifestError("Cannot write a manifest entry: a required field has no value.")
            encoded = encode_long(value)
        elif value is None:
            encoded = encode_long(self._branches.index("null"))
        else:
            branch = next(number for number, each in enumerate(self._branches) if each != "null")
            encoded = encode_long(branch) + encode_long(value)
        self[value] = encoded
        return encoded


def _size_in(columns: pl.DataFrame, name: str, avro_type: Any) -> pl.Expr:
    """How many bytes each value of a column takes; of most fields that may be null all are, in a byte each."""
    if isinstance(avro_type, list) and columns[name].null_count() == columns.height:
        return pl.repeat(1, pl.len(), dtype=pl.Int64)
    return _size(avro_type, pl.col(name))


def _size(avro_type: Any, value: pl.Expr) -> pl.Expr:
    """How many bytes a value takes. KeyError, TypeError or ValueError for a type that is not known."""
    if isinstance(avro_type, list):
        (inner,) = (each for each in avro_type if each != "null") if len(avro_type) == 2 else (None,)
        return 1 + pl.when(value.is_null()).then(0).otherwise(_size(inner, value))
    if isinstance(avro_type, dict) and avro_type["type"] == "array":
        # One block of all items, and an empty one at the end.
        items = value.list.eval(_size(avro_type["items"], pl.element())).list.sum()
        count = value.list.len().cast(pl.Int64)
        return 1 + pl.when(count == 0).then(0).otherwise(items + _long_size(count))
    if isinstance(avro_type, dict) and avro_type["type"] == "record":
        fields = (_size(field["type"], value.struct.field(field["name"])) for field in avro_type["fields"])
        return reduce(add, fields)
    name = avro_type["type"] if isinstance(avro_type, dict) else avro_type
    if name in ("int", "long"):
        return _long_size(value.cast(pl.Int64))
    if name in ("string", "bytes"):
        length = (value.str.len_bytes() if name == "string" else value.bin.size()).cast(pl.Int64)
        return length + _long_size(length)
    size = avro_type["size"] if name == "fixed" else _SIZES[name]
    return value.is_null().cast(pl.Int64) * 0 + size  # a literal alone would be one value, whatever the rows


def _long_size(value: pl.Expr) -> pl.Expr:
    """Seven bits to a byte, one of which is the sign's."""
    bits = 64 - pl.when(value < 0).then(-1 - value).otherwise(value).bitwise_leading_zeros().cast(pl.Int64)
    return (bits + 7) // 7
