"""The entries of a manifest as the bytes that they are, so that most of a manifest can be copied and not encoded anew.

A decoded manifest tells how long each of its values is in Avro, and so where each field of each entry begins: nothing
but the few fields that change is written again.

Source: Avro specification, "Binary Encoding".
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from hms_iceberg.errors import CorruptManifestError
from hms_iceberg.lazy import pl
from hms_iceberg.scan.manifests.manifest_frames import ManifestDecoder
from hms_iceberg.spec.manifests.avro_container import encode_long

_SIZES = {"boolean": 1, "float": 4, "double": 8}


class EntryBytes:
    """The entries of one manifest: their inflated bytes one after the other, and one row for each, removed ones
    included, in the columns of `ManifestDecoder.entries` without metrics."""

    def __init__(self, body: bytes, files: pl.DataFrame, types: Mapping[str, Any], places: np.ndarray) -> None:
        self.body = body
        self.files = files
        self._types = types
        self._places = places  # for each field, and the end: where it begins in each entry

    @classmethod
    def of(cls, decoder: ManifestDecoder) -> EntryBytes | None:
        """The entries of a decoder's only manifest; None if their bytes are not laid out as most writers do."""
        body = decoder.body()
        columns, files = decoder.every_column()
        types = {field["name"]: field["type"] for field in json.loads(decoder.flat_schema)["fields"]}
        if not types.keys() <= set(columns.columns):
            return None
        try:
            sizes = [_sizes(avro_type, columns[name]) for name, avro_type in types.items()]
        except (KeyError, TypeError, ValueError, pl.exceptions.PolarsError):
            return None
        ends = np.cumsum(np.asarray(sizes, np.int64).T.ravel())
        if len(ends) == 0 or ends[-1] != len(body):
            return None
        starts = np.concatenate([[0], ends[:-1]]).reshape(len(files), len(types))
        places = np.concatenate([starts, ends.reshape(starts.shape)[:, -1:]], axis=1)
        status = places[:, list(types).index("status")]
        told = np.frombuffer(body, np.uint8)[status]
        if not np.array_equal(told, files["status"].to_numpy().astype(np.uint8) * 2):
            return None
        return cls(body, files, types, places)

    def has(self, names: Sequence[str]) -> bool:
        """Whether the manifest has all of these fields."""
        return self._types.keys() >= set(names)

    def with_values(self, rows: np.ndarray, values: Mapping[str, Sequence[Any]]) -> Iterator[bytes]:
        """The bytes of some entries, with other values (integers or null, for each of the rows) for some fields."""
        names = sorted(values, key=list(self._types).index)
        numbers = [list(self._types).index(name) for name in names]
        runs = [[number for _, number in run] for _, run in groupby(enumerate(numbers), lambda each: each[1] - each[0])]
        places = self._places[rows]
        edges = [places[:, 0], *(places[:, edge] for run in runs for edge in (run[0], run[-1] + 1)), places[:, -1]]
        encoders = dict(zip(numbers, (_Integers(self._types[name]) for name in names), strict=True))
        columns = dict(zip(numbers, (values[name] for name in names), strict=True))
        encoded = []
        for run in runs:
            together = _Together([encoders[number] for number in run])
            encoded.append(map(together.__getitem__, zip(*(columns[number] for number in run), strict=True)))
        body = self.body
        if not runs:
            yield from (body[begin:end] for begin, end in zip(*(each.tolist() for each in edges), strict=True))
            return
        if len(runs) == 1:  # of most entries only the first fields change
            for begin, first, last, end, changed in zip(*(each.tolist() for each in edges), encoded[0], strict=True):
                yield body[begin:first] + changed + body[last:end]
            return
        for place, row in zip(np.stack(edges, axis=1).tolist(), zip(*encoded, strict=True), strict=True):
            pieces = [body[place[0] : place[1]]]
            for number, changed in enumerate(row):
                pieces += (changed, body[place[2 * number + 2] : place[2 * number + 3]])
            yield b"".join(pieces)


class _Together(dict[tuple[Any, ...], bytes]):
    """The values of fields that follow each other in Avro, each combination encoded once."""

    def __init__(self, encoders: Sequence[_Integers]) -> None:
        super().__init__()
        self._encoders = encoders

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


def _sizes(avro_type: Any, values: pl.Series) -> np.ndarray:
    """How many bytes each value takes. KeyError, TypeError, ValueError or PolarsError for a type that is not known."""
    if isinstance(avro_type, list):
        (inner,) = (each for each in avro_type if each != "null") if len(avro_type) == 2 else (None,)
        return np.where(values.is_null().to_numpy(), 1, 1 + _sizes(inner, values))
    if isinstance(avro_type, dict) and avro_type["type"] == "array":
        return _array_sizes(avro_type["items"], values)
    if isinstance(avro_type, dict) and avro_type["type"] == "record":
        fields = [_sizes(field["type"], values.struct.field(field["name"])) for field in avro_type["fields"]]
        return np.asarray(np.sum(fields, axis=0, dtype=np.int64))
    name = avro_type["type"] if isinstance(avro_type, dict) else avro_type
    if name in ("int", "long"):
        return _long_sizes(values.fill_null(0).to_numpy().astype(np.int64))
    if name in ("string", "bytes"):
        lengths = values.str.len_bytes() if name == "string" else values.bin.size()
        known = lengths.fill_null(0).to_numpy().astype(np.int64)
        return known + _long_sizes(known)
    size = avro_type["size"] if name == "fixed" else _SIZES[name]
    return np.full(len(values), size, np.int64)


def _array_sizes(items: Any, values: pl.Series) -> np.ndarray:
    """One block of all items, and an empty one at the end."""
    counts = values.list.len().fill_null(0).to_numpy().astype(np.int64)
    sizes = np.ones(len(values), np.int64)
    filled = counts > 0
    if filled.any():
        inner = np.concatenate([[0], np.cumsum(_sizes(items, values.filter(filled).explode()))])
        ends = np.cumsum(counts[filled])
        sizes[filled] += _long_sizes(counts[filled]) + inner[ends] - inner[ends - counts[filled]]
    return sizes


def _long_sizes(values: np.ndarray) -> np.ndarray:
    zigzag = ((values << 1) ^ (values >> 63)).astype(np.uint64)
    sizes = np.ones(len(values), np.int64)
    for bits in range(7, 64, 7):
        longer = zigzag >= np.uint64(1 << bits)
        if not longer.any():
            break
        sizes += longer
    return sizes
