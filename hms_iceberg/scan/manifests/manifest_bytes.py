"""The entries of a manifest as the bytes that they are, so that most of a manifest can be copied and not encoded anew.

The bytes of an entry hold its path, which is looked for. From there and from the end of the entry the lengths of a few
values tell where the fields begin that change: nothing else is written again, and metrics are not even decoded.

Source: Avro specification, "Binary Encoding".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby, pairwise, repeat
from typing import Any

import numpy as np

from hms_iceberg.errors import CorruptManifestError
from hms_iceberg.lazy import pl
from hms_iceberg.scan.manifests.manifest_frames import InflatedEntries
from hms_iceberg.spec.manifests.avro_container import BLOCK_BYTES, encode_long

_PATH = "file_path"


class EntryBytes:
    """The entries of some manifests: their inflated bytes one after the other, and one row for each, removed ones
    included, in the columns of `ManifestDecoder.entries` without metrics."""

    def __init__(self, body: bytes, files: pl.DataFrame, types: Mapping[str, Any], begins: Mapping[int, np.ndarray]):
        self.body = body
        self.files = files
        self._types = types
        self._begins = begins  # by a field's number, where it begins in each entry; by their count, where entries end

    @classmethod
    def of(cls, entries: InflatedEntries, changing: Sequence[str]) -> EntryBytes | None:
        """Entries of which some fields, that they have, are to change; None if their bytes are not laid out as most
        writers do."""
        columns, types, body = entries.columns, entries.types, entries.body
        order = list(types)
        if not columns.height or types[_PATH] != "string":
            return None
        path = order.index(_PATH)
        tail = min((number for number in map(order.index, changing) if number > path), default=len(order))
        sized = [*order[: path + 1], *order[tail:]]
        try:
            sizes = columns.select(_size_in(columns, name, types[name]).alias(name) for name in sized)
        except (KeyError, TypeError, ValueError, pl.exceptions.PolarsError):
            return None
        size = {order.index(name): sizes[name].to_numpy() for name in sized}
        paths = columns[_PATH].cast(pl.Binary).to_list()
        begin = _ends(body, paths)
        if begin is None:
            return None
        begins: dict[int, np.ndarray] = {}
        for number in range(path, -1, -1):
            begin = begins[number] = begin - size[number]
        end = begins[len(order)] = np.append(begin[1:], len(body))
        for number in range(len(order) - 1, tail - 1, -1):
            end = begins[number] = end - size[number]
        told = np.frombuffer(body, np.uint8)
        is_right = begin[0] == 0 and all(
            np.array_equal(told[begins[number]] & 0x7F, _first_bits(types[name], columns[name], size[number]))
            for name, number in zip(changing, map(order.index, changing), strict=True)
        )
        return cls(body, entries.files, types, begins) if is_right else None

    def with_values(self, rows: np.ndarray, values: Mapping[str, Sequence[Any]]) -> Iterator[tuple[int, bytes]]:
        """Some entries with other values (integers or null, for each of the rows) for fields that were to change, or
        none: in blocks that are not compressed yet, each with its number of entries."""
        order = list(self._types)
        numbers = sorted(map(order.index, values))
        # Fields that follow each other change together; those between are copied.
        runs = [[number for _, number in run] for _, run in groupby(enumerate(numbers), lambda each: each[1] - each[0])]
        changing = [_Together([_Integers(self._types[order[number]]) for number in run]) for run in runs]
        kept = list(zip((0, *(run[-1] + 1 for run in runs)), (*(run[0] for run in runs), len(order)), strict=True))
        edges = {number: self._begins[number][rows] for number in {0, len(order), *chain(*kept)}}
        lengths = edges[len(order)] - edges[0]
        blocks = np.diff((np.cumsum(lengths) - lengths) // BLOCK_BYTES, prepend=-1)
        for first, end in pairwise([*np.flatnonzero(blocks).tolist(), len(rows)]):
            pieces: list[Iterable[bytes]] = []
            for number, (begin, stop) in enumerate(kept):
                if begin < stop:
                    pieces.append(self._between(edges[begin][first:end].tolist(), edges[stop][first:end].tolist()))
                if number < len(runs):
                    pieces.append(changing[number].rows([values[order[each]][first:end] for each in runs[number]]))
            yield end - first, b"".join(chain.from_iterable(zip(*pieces, strict=True)))

    def _between(self, begins: list[int], ends: list[int]) -> list[bytes]:
        """The bytes from one place of each entry to another."""
        body = self.body
        return [body[begin:end] for begin, end in zip(begins, ends, strict=True)]


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


def _ends(body: bytes, pieces: Sequence[bytes]) -> np.ndarray | None:
    """Where each of some pieces ends that lie in a body in this order; None if that is not certain.

    None lies after the last place that leaves room for those after it, and none before the first that leaves room for
    those before it: where both are one, there is no other."""
    place, end = -1, len(body)
    last = [end := body.rindex(piece, 0, end) for piece in reversed(pieces)][::-1]
    ends = [begin + len(piece) for begin, piece in zip(last, pieces, strict=True)]
    first = [place := body.index(piece, place + 1, end) for piece, end in zip(pieces, ends, strict=True)]
    return np.array(ends) if first == last else None


def _first_bits(avro_type: Any, values: pl.Series, sizes: np.ndarray) -> np.ndarray:
    """The last seven bits of the first byte of each of some integers or nulls, which take so many bytes."""
    if isinstance(avro_type, list):
        null = avro_type.index("null")
        return np.where(sizes == 1, 2 * null, 2 * (1 - null))
    numbers = values.to_numpy().astype(np.int64)
    return ((numbers << 1) ^ (numbers >> 63)) & 0x7F


def _size_in(columns: pl.DataFrame, name: str, avro_type: Any) -> pl.Expr:
    """How many bytes each value of a column takes; in most columns of integers they are alike."""
    values = columns[name]
    if values.dtype.is_integer() and values.null_count() in (0, len(values)) and values.min() == values.max():
        value = values[0]
        size = isinstance(avro_type, list) + (0 if value is None else len(encode_long(value)))
        return pl.repeat(size, pl.len(), dtype=pl.Int64)
    return _size(avro_type, pl.col(name))


def _size(avro_type: Any, value: pl.Expr) -> pl.Expr:
    """How many bytes an integer, a text, bytes or null takes. KeyError, TypeError or ValueError for other types."""
    if isinstance(avro_type, list):
        (inner,) = (each for each in avro_type if each != "null") if len(avro_type) == 2 else (None,)
        return 1 + _size(inner, value).fill_null(0)
    if avro_type in ("int", "long"):
        return _long_size(value.cast(pl.Int64))
    length = {"string": value.str.len_bytes, "bytes": value.bin.size}[avro_type]().cast(pl.Int64)
    return length + _long_size(length)


def _long_size(value: pl.Expr) -> pl.Expr:
    """Seven bits to a byte, one of which is the sign's."""
    bits = 64 - pl.when(value < 0).then(-1 - value).otherwise(value).bitwise_leading_zeros().cast(pl.Int64)
    return (bits + 7) // 7
