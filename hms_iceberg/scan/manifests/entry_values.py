"""Values of many Avro records, taken out of their bytes at once, as columns.

Source: Avro specification, "Binary Encoding"; Arrow columnar format, "Variable-size Binary View Layout".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from hms_iceberg.lazy import pl
from hms_iceberg.scan.manifests.entry_walk import EntryWalk, Places, distinct_values
from hms_iceberg.scan.manifests.map_shape import IrregularError

# A view holds a text of up to so many bytes itself.
_MOST_INLINE = 12
_VIEW = 16
_MOST_BYTES = (1 << 31) - 1
# The first bytes of a word, by their number.
_FIRST_BYTES = np.array([(1 << (8 * count)) - 1 for count in range(9)], np.uint64)


class EntryValues:
    """Takes values out of the bytes of records.

    Args:
        walk: knows the bytes.
    """

    def __init__(self, walk: EntryWalk) -> None:
        self._walk = walk

    def read(self, avro_type: Any, at: np.ndarray) -> tuple[pl.Series, np.ndarray]:
        """Values of one type.

        Args:
            avro_type: the type, as in an Avro schema.
            at: where the value of each record begins.

        Returns:
            The values, of the type that polars reads from a file; and where each ends.

        Raises:
            IrregularError: there are no such values, or they are not read at once.
        """
        if isinstance(avro_type, list):
            return self._read_union(avro_type, at)
        kind = avro_type["type"] if isinstance(avro_type, dict) else avro_type
        if kind in ("int", "long"):
            return self._read_integers(kind, at)
        if kind in ("string", "bytes") and "logicalType" not in (avro_type if isinstance(avro_type, dict) else ()):
            sizes, begun = self._walk.varints(at)
            texts = self.texts(begun, sizes)
            return texts.cast(pl.String) if kind == "string" else texts, begun + sizes
        if kind in ("float", "double"):
            dtype = np.dtype("<f4" if kind == "float" else "<f8")
            return pl.Series(self._walk.fixed(at, dtype)), at + dtype.itemsize
        if kind == "boolean":
            numbers = self._walk.fixed(at, np.dtype(np.uint8))
            if (numbers > 1).any():
                raise IrregularError
            return pl.Series(numbers.astype(bool)), at + 1
        if kind == "fixed":
            return self._read_fixed(avro_type, at)
        if kind == "array" and avro_type["items"] in ("int", "long"):
            return self._read_lists(avro_type["items"], at)
        raise IrregularError

    def at_places(self, places: Places, dtype: Any) -> pl.Series:
        """The texts or numbers at some places, null where there is none.

        Args:
            places: where each value is, with the length of a text.
            dtype: ``pl.Binary`` for texts; all others are integers.

        Raises:
            IrregularError: a value does not end where its place does.
        """
        rows = np.flatnonzero(places.ends > 0)
        values, ends = self.read("bytes" if dtype == pl.Binary else "long", places.starts[rows])
        if not np.array_equal(ends, places.ends[rows]):
            raise IrregularError
        return _spread(values, rows, len(places.ends))

    def lengths_between(self, text: bytes) -> np.ndarray:
        """How many bytes there are before a text, between it and the next, and after the last one."""
        import pyarrow as pa
        import pyarrow.compute as pc

        ends = np.array([0, self._walk.size], np.int64)
        whole = pa.Array.from_buffers(pa.large_binary(), 1, [None, pa.py_buffer(ends), pa.py_buffer(self._walk.body)])
        found = pc.binary_length(pc.split_pattern(whole, text).values)
        return np.frombuffer(found.buffers()[1], np.int64, len(found))  # `to_numpy` imports pandas

    def texts(self, begun: np.ndarray, sizes: np.ndarray) -> pl.Series:
        """Copies of texts.

        Args:
            begun: where each begins.
            sizes: how many bytes each has.

        Raises:
            IrregularError: some are not inside the bytes.
        """
        import pyarrow as pa

        walk = self._walk
        if walk.size > _MOST_BYTES:  # a view counts with 32 bits
            raise IrregularError
        if len(sizes) and (sizes.min() < 0 or (begun + sizes).max() > walk.size):
            raise IrregularError
        word = np.dtype("<u8")
        views = np.empty((len(sizes), _VIEW // word.itemsize), word)
        views[:, 0] = sizes.astype(np.uint64) | walk.fixed(begun, word) << np.uint64(32)
        views[:, 1] = begun.astype(np.uint64) << np.uint64(32)
        short = np.flatnonzero(sizes <= _MOST_INLINE)
        if len(short):
            length, start = sizes[short], begun[short]
            first = walk.fixed(start, word) & _FIRST_BYTES[np.minimum(length, 4)]
            rest = walk.fixed(np.minimum(start + 4, walk.size), word)
            views[short, 0] = length.astype(np.uint64) | first << np.uint64(32)
            views[short, 1] = rest & _FIRST_BYTES[np.maximum(length - 4, 0)]
        found = pa.Array.from_buffers(
            pa.binary_view(), len(sizes), [None, pa.py_buffer(views), pa.py_buffer(walk.body)]
        )
        # A cast copies the texts; the bytes of everything else are not kept.
        return pl.Series(pl.from_arrow(found.cast(pa.large_binary())))

    def _read_union(self, branches: list[Any], at: np.ndarray) -> tuple[pl.Series, np.ndarray]:
        others = [number for number, each in enumerate(branches) if each != "null"]
        if len(others) != 1:
            raise IrregularError
        numbers, ends = self._walk.varints(at)
        if not set(distinct_values(numbers)) <= set(range(len(branches))):
            raise IrregularError
        rows = np.flatnonzero(numbers == others[0])
        values, ends[rows] = self.read(branches[others[0]], ends[rows])
        return _spread(values, rows, len(at)), ends

    def _read_integers(self, kind: str, at: np.ndarray) -> tuple[pl.Series, np.ndarray]:
        values, ends = self._walk.varints(at)
        if kind == "long":
            return pl.Series(values), ends
        narrow = values.astype(np.int32)
        if not np.array_equal(narrow, values):
            raise IrregularError
        return pl.Series(narrow), ends

    def _read_fixed(self, avro_type: Mapping[str, Any], at: np.ndarray) -> tuple[pl.Series, np.ndarray]:
        size = avro_type["size"]
        if avro_type.get("logicalType") != "decimal":
            return self.texts(at, np.full(len(at), size, np.int64)), at + size
        import pyarrow as pa

        width = pa.decimal128(1).byte_width
        if size > width:
            raise IrregularError
        given = self._walk.fixed(at, np.dtype((np.uint8, (size,))))[:, ::-1]
        values = np.empty((len(at), width), np.uint8)
        values[:, :size] = given
        values[:, size:] = (given[:, -1:] >> 7) * np.uint8(0xFF)
        dtype = pa.decimal128(avro_type["precision"], avro_type.get("scale", 0))
        found = pa.Array.from_buffers(dtype, len(at), [None, pa.py_buffer(values)])
        return pl.Series(pl.from_arrow(found)), at + size

    def _read_lists(self, items: str, at: np.ndarray) -> tuple[pl.Series, np.ndarray]:
        """Lists in one block, whose length in bytes is not told."""
        counts, ends = self._walk.varints(at)
        if len(counts) and (counts.min() < 0 or counts.max() > self._walk.size):
            raise IrregularError
        offsets = np.concatenate([[0], np.cumsum(counts)])
        if offsets[-1] > self._walk.size:
            raise IrregularError
        values = np.empty(offsets[-1], np.int64)
        for place in range(int(counts.max()) if len(counts) else 0):
            rows = np.flatnonzero(counts > place)
            values[offsets[rows] + place], ends[rows] = self._walk.varints(ends[rows])
        more = counts > 0
        last, ends[more] = self._walk.varints(ends[more])
        if last.any():
            raise IrregularError
        import pyarrow as pa

        # From buffers, because `pa.array` imports pandas.
        kept, dtype = (values, pa.int64()) if items == "long" else (values.astype(np.int32), pa.int32())
        inner = pa.Array.from_buffers(dtype, len(kept), [None, pa.py_buffer(kept)])
        lists = [None, pa.py_buffer(offsets)]
        found = pa.Array.from_buffers(pa.large_list(dtype), len(at), lists, children=[inner])
        return pl.Series(pl.from_arrow(found)), ends


def _spread(values: pl.Series, rows: np.ndarray, count: int) -> pl.Series:
    """Values of some of so many rows, with null for the others."""
    if len(values) == count:
        return values
    if not len(values):
        return pl.Series([None], dtype=values.dtype).new_from_index(0, count)
    places = np.full(count, len(values), np.uint32)
    places[rows] = np.arange(len(values), dtype=np.uint32)
    return values.extend_constant(None, 1).gather(pl.Series(places))
