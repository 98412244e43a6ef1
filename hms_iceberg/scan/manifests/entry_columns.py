"""Columns of the entries of manifests, and metrics of some fields, read on all entries at once.

polars makes whole maps of the metrics of one column. Here a field is read in all entries before the next one is, and
of the maps only the values that are asked for. Without metrics, or for few entries, polars is as fast.

Avro says nowhere where an entry begins: that is known when the one before it was read. So it is guessed and proved.
Files of one table begin with the same folder, whose text is searched for. From there all entries are walked to their
ends, field by field. The guess is right if the first entry begins with the bytes, each other one where the one before
it ends, the last one ends with the bytes, and the paths are where they were found. If not, nothing is read.

Source: Avro specification, "Binary Encoding".
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from itertools import accumulate, groupby
from typing import Any

import numpy as np

from hms_iceberg.lazy import pl
from hms_iceberg.scan.manifests.entry_walk import EntryWalk, Places, distinct_values
from hms_iceberg.scan.manifests.map_shape import IrregularError
from hms_iceberg.scan.manifests.metric_columns import Metric, metric_dtype, metric_name

MAPS = ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")


def entry_columns(
    blocks: Sequence[bytes], rows: int, schema: bytes, columns: Collection[str], metrics: Sequence[Metric]
) -> pl.DataFrame | None:
    """Some columns of entries, and some of the metrics that are in their maps.

    Args:
        blocks: all entries, decompressed; each block begins with an entry.
        rows: how many entries there are.
        schema: their Avro schema, without records in records.
        columns: the fields to read, none of ``MAPS``.
        metrics: the metrics to read, to columns of their :func:`metric_name`; null for an entry that says nothing.

    Returns:
        None if the entries are not laid out as those of most data files, or polars is likely to be as fast.
    """
    fields = json.loads(schema)["fields"]
    names = [field["name"] for field in fields]
    if "file_path" not in names or rows == 0:
        return None
    path = names.index("file_path")
    try:
        reader = _Reader(blocks, rows, set(columns), metrics)
        found = reader.read(fields[:path], fields[path], fields[path + 1 :])
        return pl.DataFrame([found[name].alias(name) for name in [*columns, *map(metric_name, metrics)]])
    except (IrregularError, IndexError, ValueError, RecursionError, pl.exceptions.PolarsError):
        return None


class _Reader:
    """Reads some entries.

    Args:
        blocks: their bytes.
        rows: how many entries there are.
        columns: fields to read.
        metrics: metrics to read.
    """

    def __init__(self, blocks: Sequence[bytes], rows: int, columns: set[str], metrics: Sequence[Metric]) -> None:
        self._blocks = blocks
        self._walk = EntryWalk(blocks)
        self._values = EntryValues(self._walk)
        self._rows = rows
        self._columns = columns
        self._metrics = metrics
        self._found: dict[str, pl.Series] = {}

    def read(
        self, front: Sequence[Mapping[str, Any]], path: Mapping[str, Any], rest: Sequence[Mapping[str, Any]]
    ) -> Mapping[str, pl.Series]:
        """The columns and metrics by name.

        Args:
            front: the fields before the path.
            path: the field of the path.
            rest: the fields after it.

        Raises:
            IrregularError: the entries are not where they were thought to be.
        """
        if path["type"] != "string":
            raise IrregularError
        texts = self._find_paths(front)
        sizes = self._walk.sizes_before(texts)
        ends = self._read_fields(rest, texts + sizes)
        begun = self._read_fields(front, np.concatenate([[0], ends[:-1]]))
        found = self._walk.varints(begun)
        if ends[-1] != self._walk.size or not np.array_equal(found, (sizes, texts)):
            raise IrregularError
        if path["name"] in self._columns:
            self._found[path["name"]] = self._values.texts(texts, sizes).cast(pl.String)
        return self._found

    def _find_paths(self, front: Sequence[Mapping[str, Any]]) -> np.ndarray:
        """Where the text of each path seems to begin."""
        sizes, texts = self._walk.varints(self._skip_front(front))
        samples = [
            self._walk.body[start : start + size] for start, size in zip(texts.tolist(), sizes.tolist(), strict=True)
        ]
        prefix = _common_prefix(min(samples), max(samples))
        while True:
            prefix = prefix.rpartition(b"/")[0]
            if len(prefix) <= 1:
                raise IrregularError
            pieces = self._values.lengths_between(prefix)
            if len(pieces) > self._rows:
                break
        if len(pieces) - 1 != self._rows:
            raise IrregularError
        return np.cumsum(pieces[:-1]) + np.arange(self._rows) * len(prefix)

    def _skip_front(self, front: Sequence[Mapping[str, Any]]) -> np.ndarray:
        """Where the path of the first entry of each block begins, with its length."""
        at = np.array([0, *accumulate(map(len, self._blocks[:-1]))])
        for field in front:
            at = self._walk.skip(field["type"], at)
        return at

    def _read_fields(self, fields: Sequence[Mapping[str, Any]], at: np.ndarray) -> np.ndarray:
        """Reads what is asked for of fields that follow one another; returns where they end."""
        for is_map, group in groupby(fields, lambda field: field["name"] in MAPS):
            if is_map:
                at = self._read_maps(list(group), at)
                continue
            others = list(group)
            alike = self._walk.alike([field["type"] for field in others], at)
            at = at + self._read_each(others[:alike], at[:1]) - at[0]
            at = self._read_each(others[alike:], at)
        return at

    def _read_each(self, fields: Sequence[Mapping[str, Any]], at: np.ndarray) -> np.ndarray:
        """Reads fields of all entries, or of the first one what is the same in all."""
        for field in fields:
            if field["name"] not in self._columns:
                at = self._walk.skip(field["type"], at)
                continue
            values, at = self._values.read(field["type"], at)
            self._found[field["name"]] = values if len(at) == self._rows else values.new_from_index(0, self._rows)
        return at

    def _read_maps(self, fields: Sequence[Mapping[str, Any]], at: np.ndarray) -> np.ndarray:
        places: list[dict[int, Places]] = []
        for field in fields:
            wanted = [field_id for name, field_id in self._metrics if name == field["name"]]
            places.append({field_id: Places(self._rows) for field_id in wanted if field_id is not None})
        ends = self._walk.skip_maps([field["type"] for field in fields], at, places, np.arange(self._rows))
        for field, noted in zip(fields, places, strict=True):
            for field_id, each in noted.items():
                metric = field["name"], field_id
                self._found[metric_name(metric)] = self._values.at_places(each, metric_dtype(metric))
        return ends


def _common_prefix(one: bytes, other: bytes) -> bytes:
    length = next((place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), len(one))
    return one[:length]


# -------------------------------------------------------------------------------------------------------- values


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
