"""The entries of manifests without their maps of metrics, which are most of their bytes.

polars skips a map pair by pair, and takes longer for it than for all it reads. Here maps are cut out first, on all
entries at once; of the metrics that are asked for, the values are left in.

Avro says nowhere where an entry begins: that is known when the one before it was read. So it is guessed and proved.
Files of one table begin with the same folder, whose text is searched for. From there all entries are walked to their
ends, field by field. The guess is right if the first entry begins with the bytes, each other one where the one before
it ends, the last one ends with the bytes, and the paths are where they were found. If not, nothing is cut.

Source: Avro specification, "Binary Encoding".
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, groupby
from typing import Any

import numpy as np

from hms_iceberg.lazy import pl
from hms_iceberg.scan.manifests.entry_walk import EntryWalk, IrregularError, Places
from hms_iceberg.scan.manifests.metric_columns import Metric, metric_dtype

# For fewer entries, polars is done sooner.
FEWEST_ENTRIES = 300

MAPS = ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")


@dataclass(frozen=True, slots=True)
class CutEntries:
    """Entries without maps.

    Args:
        body: their bytes.
        schema: their Avro schema.
        metrics: what the maps said of some fields, null for an entry that says nothing.
    """

    body: bytes
    schema: bytes
    metrics: Mapping[Metric, pl.Series]


def without_maps(blocks: Sequence[bytes], rows: int, schema: bytes, metrics: Sequence[Metric]) -> CutEntries | None:
    """The entries without maps, and some of the metrics that were in these.

    Args:
        blocks: all entries, decompressed; each block begins with an entry.
        rows: how many entries there are.
        schema: their Avro schema, without records in records.
        metrics: the metrics to keep.

    Returns:
        None if the entries are not laid out as those of most data files, or polars is likely to be as fast.
    """
    fields = json.loads(schema)["fields"]
    names = [field["name"] for field in fields]
    if "file_path" not in names or rows == 0:
        return None
    path = names.index("file_path")
    try:
        walk = EntryWalk(blocks)
        cut = _Cut(walk, rows, fields[:path], fields[path + 1 :], metrics)
        paths = cut.find_paths([0, *accumulate(map(len, blocks[:-1]))])
        left = cut.from_paths(paths)
        found = {metric: walk.values_at(places, metric_dtype(metric[0])) for metric, places in cut.kept.items()}
    except (IrregularError, IndexError, ValueError, RecursionError):
        return None
    kept = json.dumps({**json.loads(schema), "fields": [*fields[: path + 1], *cut.left_fields]})
    return CutEntries(left, kept.encode("utf-8"), found)


@dataclass(slots=True)
class _Piece:
    """Maps that follow one another: from and to where they are cut out of each entry."""

    starts: np.ndarray
    ends: np.ndarray


class _Cut:
    """The cutting of some entries.

    Args:
        walk: the bytes.
        rows: how many entries there are.
        front: fields before the path.
        rest: fields after it.
        metrics: metrics to keep.
    """

    def __init__(
        self,
        walk: EntryWalk,
        rows: int,
        front: Sequence[Mapping[str, Any]],
        rest: Sequence[Mapping[str, Any]],
        metrics: Sequence[Metric],
    ) -> None:
        self._walk = walk
        self._rows = rows
        self._front = front
        self._rest = rest
        self._metrics = metrics
        self._cuts: list[_Piece] = []
        self.kept: dict[Metric, Places] = {}
        self.left_fields: list[Mapping[str, Any]] = []

    def find_paths(self, starts: Sequence[int]) -> np.ndarray:
        """Where the text of each path seems to begin, given where some entries do."""
        body = self._walk.body
        sizes, texts = self._walk.varints(self._skip_front(np.array(starts)))
        samples = _slices(body, texts, texts + sizes)
        prefix = _common_prefix(min(samples), max(samples))
        while True:
            prefix = prefix.rpartition(b"/")[0]
            if len(prefix) <= 1:
                raise IrregularError
            before, *pieces = body.split(prefix)
            if len(pieces) == self._rows:
                lengths = np.fromiter(map(len, [before, *pieces[:-1]]), np.int64, self._rows)
                return np.cumsum(lengths) + np.arange(self._rows) * len(prefix)
            if len(pieces) > self._rows:
                raise IrregularError

    def from_paths(self, paths: np.ndarray) -> bytes:
        """The entries without maps, given where their paths seem to begin."""
        sizes = self._walk.sizes_before(paths)
        at = paths + sizes
        for is_map, group in groupby(self._rest, lambda field: field["name"] in MAPS):
            fields = list(group)
            if is_map:
                at = self._cut_maps(fields, at)
                continue
            self.left_fields += fields
            for field in fields:
                at = self._walk.skip(field["type"], at)
        self._prove(paths, sizes, at)
        return self._left()

    def _cut_maps(self, fields: Sequence[Mapping[str, Any]], at: np.ndarray) -> np.ndarray:
        """Notes what is to be cut out; returns where the maps end."""
        places: list[dict[int, Places]] = []
        for field in fields:
            wanted = [metric for metric in self._metrics if metric[0] == field["name"]]
            places.append({field_id: Places(self._rows) for _, field_id in wanted})
            self.kept |= {metric: places[-1][metric[1]] for metric in wanted}
        ends = self._walk.skip_maps([field["type"] for field in fields], at, places, np.arange(self._rows))
        self._cuts.append(_Piece(at, ends))
        return ends

    def _left(self) -> bytes:
        body = self._walk.body
        if not self._cuts:
            return body[: self._walk.size]
        # What is left at the end of an entry, and of the next one before its maps, is copied as one.
        begin = np.concatenate([[0], self._cuts[-1].ends[:-1]])
        columns: list[list[bytes]] = []
        for piece in self._cuts:
            columns.append(_slices(body, begin, piece.starts))
            begin = piece.ends
        return b"".join([*chain.from_iterable(zip(*columns, strict=True)), body[begin[-1] : self._walk.size]])

    def _skip_front(self, at: np.ndarray) -> np.ndarray:
        for field in self._front:
            at = self._walk.skip(field["type"], at)
        return at

    def _prove(self, paths: np.ndarray, sizes: np.ndarray, ends: np.ndarray) -> None:
        starts = np.concatenate([[0], ends[:-1]])
        found, texts = self._walk.varints(self._skip_front(starts))
        if ends[-1] != self._walk.size or not np.array_equal(texts, paths) or not np.array_equal(found, sizes):
            raise IrregularError


def _slices(body: bytes, starts: np.ndarray, ends: np.ndarray) -> list[bytes]:
    return [body[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]


def _common_prefix(one: bytes, other: bytes) -> bytes:
    length = next((place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), len(one))
    return one[:length]
