"""Which delete files apply to which data files, as runs of delete files in an order of their own.

- A deletion vector applies to the data file it names, and replaces position delete files for it.
- A position delete file applies to the one data file that it names (or whose path is both of its bounds), else to the
  files of its partition; if the file's data sequence number is not greater than its own.
- What names its data file applies to it whatever the partitions and specs of both, as in Apache Iceberg before 1.12,
  which refuses to read it if they differ.
- An equality delete file applies to the files of its partition, or of all if its spec is unpartitioned; if the
  file's data sequence number is less than its own, and the bounds of both leave a common key possible.

The delete files of one kind, reach and key are put in the order of their sequence numbers, so that those which apply to
a data file are all from one on: a run, of whatever length. Pairs are not made, of which there may be a square.

Source: Iceberg specification, "Scan Planning".
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from hms_iceberg.errors import CorruptManifestError
from hms_iceberg.lazy import pl
from hms_iceberg.scan.delete_keys import CommonKeys
from hms_iceberg.scan.delete_runs import joined, no_runs, used_deletes
from hms_iceberg.scan.partition_columns import PartitionColumns
from hms_iceberg.spec.data_types import IcebergType
from hms_iceberg.spec.manifests.manifest_values import DataFileContent

_Side = Literal["left", "right"]


@dataclass(frozen=True)
class DeleteIndex:
    """Finds the deletes of data files; equality deletes of `unpartitioned` specs apply everywhere."""

    partitions: PartitionColumns
    unpartitioned: Collection[int]
    key_types: Mapping[int, IcebergType]

    def assign(self, files: pl.DataFrame, deletes: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
        """The delete files that apply to any file, and their runs as in `ScanPlan.assignments`; frames have
        `key_metric_columns`, deletes also `referenced_data_file`. Two deletion vectors for one file, or one older than
        it, are a CorruptManifestError."""
        if files.height == 0 or deletes.height == 0:
            return deletes.clear(), no_runs()
        data = files.with_row_index("data_file")
        delete = deletes.with_row_index("delete_file")
        is_position = delete["content"] == int(DataFileContent.POSITION_DELETES)
        is_vector = is_position & (delete["file_format"] == "PUFFIN")
        order = _Order()
        vectors = self._vectors(data, delete.filter(is_vector))
        order.add_pairs(vectors)
        self._positions(data, delete.filter(is_position & ~is_vector), vectors, order)
        self._equality(data, delete.filter(~is_position), order)
        ordered = order.deletes()
        used, runs = used_deletes(order.runs(), len(ordered))
        return deletes[ordered.filter(used)], runs

    def _vectors(self, data: pl.DataFrame, vectors: pl.DataFrame) -> pl.DataFrame:
        if vectors.height == 0:
            return _no_pairs()
        pairs = data.join(vectors, left_on="file_path", right_on="referenced_data_file", suffix="_delete")
        twice = pairs.filter(pl.col("data_file").is_duplicated())
        if twice.height:
            raise CorruptManifestError(
                f"Cannot plan the deletes of {twice['file_path'][0]}: it has {twice.height} deletion vectors, the "
                f"first two in {' and '.join(twice['file_path_delete'].to_list()[:2])}; a file may have one"
            )
        stray = pairs.filter(pl.col("sequence_number") > pl.col("sequence_number_delete"))
        if stray.height:
            row = stray.row(0, named=True)
            raise CorruptManifestError(
                f"Cannot plan the deletes of {row['file_path']} (sequence number {row['sequence_number']}, spec "
                f"{row['spec_id']}): its deletion vector in {row['file_path_delete']} has sequence number "
                f"{row['sequence_number_delete']}; a vector is at least as new as its file"
            )
        return pairs.select("data_file", "delete_file")

    def _positions(self, data: pl.DataFrame, deletes: pl.DataFrame, vectors: pl.DataFrame, order: _Order) -> None:
        if deletes.height == 0:
            return
        if vectors.height:
            data = data.join(vectors, on="data_file", how="anti")
        by_path = deletes.filter(pl.col("referenced_data_file").is_not_null()).select(
            "delete_file", "sequence_number", pl.col("referenced_data_file").alias("file_path")
        )
        named = data.join(by_path, on="file_path", suffix="_delete")
        in_order = named.filter(pl.col("sequence_number") <= pl.col("sequence_number_delete"))
        order.add_pairs(in_order.select("data_file", "delete_file"))
        for spec_id, group in _by_spec(deletes.filter(pl.col("referenced_data_file").is_null())):
            own = data.filter(pl.col("spec_id") == spec_id)
            order.add(*self._same_partition(own, group, spec_id, "left"))

    def _equality(self, data: pl.DataFrame, deletes: pl.DataFrame, order: _Order) -> None:
        if deletes.height == 0:
            return
        keys = CommonKeys(data, self.key_types, data.height + deletes.height)
        for spec_id, of_spec in _by_spec(deletes):
            everywhere = spec_id in self.unpartitioned
            own = data if everywhere else data.filter(pl.col("spec_id") == spec_id)
            for ids, group in _by_key(of_spec):
                found, ranges = self._same_partition(own, group, None if everywhere else spec_id, "right")
                order.add(found, keys.possible(ranges, found, ids))

    def _same_partition(
        self, data: pl.DataFrame, deletes: pl.DataFrame, spec_id: int | None, side: _Side
    ) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Delete files by partition (of one spec; None if partitions do not matter) and sequence number, and which of
        them apply to which data file; on the left `side` also to files as new as themselves."""
        columns = () if spec_id is None else self.partitions.columns(spec_id)
        keys = [name for name in columns if data.height and data.schema[name] != pl.Null]
        known = pl.col("sequence_number").is_not_null()
        left = _with_zero_signs(data.filter(known).select("data_file", "sequence_number", *keys), keys)
        right = _with_zero_signs(deletes.filter(known), keys)
        keys = [name for name in left.columns if name in keys or name.startswith("zero_")]
        left, right = _numbered(left, right, keys)
        right = right.sort("partition", "sequence_number", "delete_file")
        numbers = right["sequence_number"].unique().sort()
        step = len(numbers) + 1
        codes = _code(right, numbers, step, "left")
        after = (left["partition"].cast(pl.Int64) + 1) * step
        ranges = left.select(
            "data_file",
            codes.search_sorted(_code(left, numbers, step, side), "left").cast(pl.UInt32).alias("first"),
            codes.search_sorted(after, "left").cast(pl.UInt32).alias("end"),
        )
        return right, ranges.filter(pl.col("first") < pl.col("end"))


@dataclass
class _Order:
    """The order of delete files while it is made, and the runs in it."""

    _deletes: list[pl.Series] = field(default_factory=list)
    _runs: list[pl.DataFrame] = field(default_factory=list)
    _length: int = 0

    def add(self, deletes: pl.DataFrame, runs: pl.DataFrame) -> None:
        """Puts delete files behind those that there are."""
        self._runs.append(runs.with_columns(pl.col("first", "end") + pl.lit(self._length, pl.UInt32)))
        self._deletes.append(deletes["delete_file"])
        self._length += deletes.height

    def add_pairs(self, pairs: pl.DataFrame) -> None:
        """Puts delete files behind those that there are, each with the data files that it names."""
        if pairs.height == 0:
            return
        ordered = pairs.sort("data_file", "delete_file")
        deletes, at, row = np.unique(ordered["delete_file"].to_numpy(), return_index=True, return_inverse=True)
        order = np.argsort(at)
        first = np.argsort(order)[row].astype(np.uint32)
        runs = pl.DataFrame({"data_file": ordered["data_file"], "first": first, "end": first + 1})
        added = pl.DataFrame({"delete_file": deletes[order]})
        self.add(added, joined(runs.sort("data_file", "first"), "data_file"))

    def deletes(self) -> pl.Series:
        """The rows of the delete files in their order."""
        return pl.concat([_no_pairs()["delete_file"], *self._deletes])

    def runs(self) -> pl.DataFrame:
        return pl.concat([no_runs(), *self._runs]).sort("data_file", "first")


def _numbered(left: pl.DataFrame, right: pl.DataFrame, keys: Collection[str]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Both with the number of their partition; of the left those only whose partition the right has."""
    if not keys:
        number = pl.lit(0, pl.UInt32).alias("partition")
        return left.with_columns(number), right.with_columns(number)
    groups = right.select(keys).unique(maintain_order=True).with_row_index("partition")
    return tuple(each.join(groups, on=list(keys), nulls_equal=True) for each in (left, right))  # type: ignore[return-value]


def _code(frame: pl.DataFrame, numbers: pl.Series, step: int, side: _Side) -> pl.Series:
    """Numbers that sort as partition and sequence number do."""
    rank = numbers.search_sorted(frame["sequence_number"], side)
    return frame["partition"].cast(pl.Int64) * step + rank.cast(pl.Int64)


def _with_zero_signs(frame: pl.DataFrame, keys: Collection[str]) -> pl.DataFrame:
    """Adds the sign of zeros as a key: partitions of -0.0 and 0.0 differ, and a join takes them for equal."""
    floating = [name for name in keys if frame.schema[name] in (pl.Float32, pl.Float64)]
    return frame.with_columns(
        ((pl.col(name) == 0) & (1 / pl.col(name) < 0)).fill_null(False).alias(f"zero_{name}") for name in floating
    )


def _by_spec(deletes: pl.DataFrame) -> Iterator[tuple[int, pl.DataFrame]]:
    for spec_id in deletes["spec_id"].unique().sort():
        yield spec_id, deletes.filter(deletes["spec_id"] == spec_id)


def _by_key(deletes: pl.DataFrame) -> Iterator[tuple[tuple[int, ...], pl.DataFrame]]:
    """Equality delete files by the ids of their key."""
    rows: dict[tuple[int, ...], list[int]] = {}
    for row, ids in enumerate(deletes["equality_ids"].to_list()):
        rows.setdefault(tuple(sorted(ids or ())), []).append(row)
    for key, found in rows.items():
        yield key, deletes[found]


def _no_pairs() -> pl.DataFrame:
    return pl.DataFrame(schema={"data_file": pl.UInt32, "delete_file": pl.UInt32})
