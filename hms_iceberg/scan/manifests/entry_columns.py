"""Columns of the entries of manifests, read on all entries at once; maps of metrics are passed over.

polars reads one entry after the other, and takes longer to pass over the maps than for all it reads. Here a field is
read in all entries before the next one is: many short steps, between which Python's lock is given away, so that only
one thread at a time gains by it. polars does not need the lock, but it makes whole maps of the metrics of one column.

Avro says nowhere where an entry begins: that is known when the one before it was read. So it is guessed and proved.
Files of one table begin with the same folder, whose text is searched for. From there all entries are walked to their
ends, field by field. The guess is right if the first entry begins with the bytes, each other one where the one before
it ends, the last one ends with the bytes, and the paths are where they were found. If not, nothing is read.

Source: Avro specification, "Binary Encoding".
"""

from __future__ import annotations

import json
import threading
from collections.abc import Collection, Mapping, Sequence
from itertools import accumulate, groupby
from typing import Any

import numpy as np

from hms_iceberg.lazy import pl
from hms_iceberg.scan.manifests.entry_values import EntryValues
from hms_iceberg.scan.manifests.entry_walk import EntryWalk, Places
from hms_iceberg.scan.manifests.map_shape import IrregularError
from hms_iceberg.scan.manifests.metric_columns import Metric, metric_dtype, metric_name

# For fewer entries, polars is done sooner.
_FEWEST_ENTRIES = 2_400
_FEWEST_WITH_METRICS = 600
# What the processor's cache holds, so that each field is read from there.
_BYTES_AT_ONCE = 4_000_000
_one_thread = threading.Lock()

MAPS = ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")


def entries_at_once(
    blocks: Sequence[tuple[int, bytes]], schema: bytes, columns: Collection[str], metrics: Sequence[Metric]
) -> pl.DataFrame | None:
    """What `entry_columns` reads of many entries, as many at a time as fit into the processor's cache.

    Args:
        blocks: the number of entries of each block, and its bytes.
        schema: as for `entry_columns`, like the others.
        columns: the fields to read.
        metrics: the metrics to read.

    Returns:
        None also if there are no metrics, and it is done for another thread now.
    """
    rows = sum(count for count, _ in blocks)
    if rows < (_FEWEST_WITH_METRICS if metrics else _FEWEST_ENTRIES):
        return None
    if metrics:
        return _in_parts(blocks, schema, columns, metrics)
    if not _one_thread.acquire(blocking=False):
        return None
    try:
        return _in_parts(blocks, schema, columns, metrics)
    finally:
        _one_thread.release()


def _in_parts(
    blocks: Sequence[tuple[int, bytes]], schema: bytes, columns: Collection[str], metrics: Sequence[Metric]
) -> pl.DataFrame | None:
    starts = [0, *accumulate(len(raw) for _, raw in blocks)]
    size = starts[-1] / max(1, round(starts[-1] / _BYTES_AT_ONCE))
    frames = []
    for _, some in groupby(zip(blocks, starts, strict=False), lambda each: each[1] // size):
        counts, contents = zip(*(block for block, _ in some), strict=True)
        frame = entry_columns(contents, sum(counts), schema, columns, metrics)
        if frame is None:
            return None
        frames.append(frame)
    return pl.concat(frames)


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
