"""Which equality delete files may delete a row of a data file, by the metrics of their keys.

Every data file would have to be compared with every delete file. To keep the work linear, delete files that follow each
other are compared as one block, with the bounds of all, and smaller blocks where those leave little: what cannot be
told apart in as many comparisons as there are files is kept.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from hms_iceberg.lazy import pl
from hms_iceberg.scan.delete_runs import joined
from hms_iceberg.scan.partition_columns import decode_bounds, has_bounds
from hms_iceberg.spec.data_types import DoubleType, FloatType, IcebergType, PrimitiveType

# Comparisons: at least so many, or so many for each file; and how many are made in one go.
_FEW = 1 << 19
_FOR_EACH_FILE = 16
_AT_ONCE = 1 << 18


def key_metric_columns(field_id: int) -> tuple[str, str, str, str, str]:
    """Names of the columns that hold a key's metrics: values, nulls, NaN, lower and upper bound as stored."""
    return f"values_{field_id}", f"nulls_{field_id}", f"nans_{field_id}", f"lower_{field_id}", f"upper_{field_id}"


class CommonKeys:
    """Compares the metrics of keys."""

    def __init__(self, data: pl.DataFrame, key_types: Mapping[int, IcebergType], files: int) -> None:
        self._types = {key: each for key, each in key_types.items() if isinstance(each, PrimitiveType)}
        self._frame = data
        self._data: dict[int, pl.DataFrame] = {}
        self._most = max(_FEW, _FOR_EACH_FILE * files)

    def possible(self, runs: pl.DataFrame, deletes: pl.DataFrame, ids: Collection[int]) -> pl.DataFrame:
        """The parts of some runs in which a delete file may have a key in common with the data file."""
        known = [each for each in ids if each in self._types]
        if not known or runs.height == 0:
            return runs
        stored = {each: _metrics(deletes, each, self._types[each]) for each in known}
        for each in known:
            if each not in self._data:
                self._data[each] = _metrics(self._frame, each, self._types[each])
        last = 0
        while True:
            block = max(1, -(-_length(runs) // self._most))
            if last and block > last // 2:
                return runs
            runs, last = self._pruned(runs, stored, block), block
            if block == 1 or not runs.height:
                return runs

    def _pruned(self, runs: pl.DataFrame, stored: Mapping[int, pl.DataFrame], block: int) -> pl.DataFrame:
        """The runs without the blocks of so many delete files that have no key in common with the data file."""
        blocks = {field_id: _blocks(frame, block) for field_id, frame in stored.items()}
        kept = []
        for part in _stretches(runs.with_row_index("run"), block):
            pairs = part.select("run", "data_file", "first", "end", _block_numbers(block)).explode("block")
            mask = pl.repeat(True, pairs.height, dtype=pl.Boolean, eager=True)
            for field_id, frame in blocks.items():
                mask &= _overlaps(
                    self._data[field_id][pairs["data_file"]], frame[pairs["block"]], self._types[field_id]
                )
            start = pl.col("block") * block
            cut = pairs.filter(mask).with_columns(
                pl.max_horizontal("first", start).cast(pl.UInt32).alias("first"),
                pl.min_horizontal("end", start + block).cast(pl.UInt32).alias("end"),
            )
            kept.append(joined(cut, "run"))
        return pl.concat(kept)


def _length(runs: pl.DataFrame) -> int:
    return int((runs["end"].cast(pl.Int64) - runs["first"].cast(pl.Int64)).sum())


def _block_numbers(block: int) -> pl.Expr:
    first, last = pl.col("first").cast(pl.Int64) // block, (pl.col("end").cast(pl.Int64) - 1) // block
    return pl.int_ranges(first, last + 1).alias("block")


def _stretches(runs: pl.DataFrame, block: int) -> Iterator[pl.DataFrame]:
    """The runs in parts of about so many comparisons as are made in one go."""
    blocks = (pl.col("end").cast(pl.Int64) - 1) // block - pl.col("first").cast(pl.Int64) // block + 1
    parts = runs.with_columns((blocks.cum_sum() // _AT_ONCE).alias("part"))
    return (each.drop("part") for each in parts.partition_by("part", maintain_order=True))


def _metrics(frame: pl.DataFrame, field_id: int, key_type: IcebergType) -> pl.DataFrame:
    """The metrics of a key, with bounds as they compare."""
    values, nulls, nans, lower, upper = (frame[name] for name in key_metric_columns(field_id))
    found = pl.DataFrame({"all_null": (nulls == values).fill_null(False), "nulls": nulls, "nans": nans})
    if not has_bounds(key_type):
        return found
    return found.with_columns(
        decode_bounds(lower, key_type).alias("lower"), decode_bounds(upper, key_type).alias("upper")
    )


def _blocks(metrics: pl.DataFrame, block: int) -> pl.DataFrame:
    """The metrics of so many files at a time; null where one of them has none."""
    if block == 1:
        return metrics
    numbered = metrics.with_columns((pl.int_range(pl.len()) // block).alias("block"))
    united = [
        pl.when(pl.col(name).null_count() == 0).then(getattr(pl.col(name), how)()).alias(name)
        for name, how in (("all_null", "min"), ("nulls", "sum"), ("nans", "sum"), ("lower", "min"), ("upper", "max"))
        if name in metrics.columns
    ]
    return numbered.group_by("block", maintain_order=True).agg(united).drop("block")


def _overlaps(data: pl.DataFrame, delete: pl.DataFrame, key_type: IcebergType) -> pl.Series:
    """Where the metrics of both leave a common key possible, row by row."""
    both_null = (data["nulls"] != 0).fill_null(True) & (delete["nulls"] != 0).fill_null(True)
    apart = (data["all_null"] & (delete["nulls"] == 0).fill_null(False)) | (
        delete["all_null"] & (data["nulls"] == 0).fill_null(False)
    )
    if "lower" in data.columns:
        known = data["lower"].is_not_null() & data["upper"].is_not_null()
        known &= delete["lower"].is_not_null() & delete["upper"].is_not_null()
        if isinstance(key_type, FloatType | DoubleType):
            # NaN equals NaN, and is within no bounds.
            known &= (data["nans"] == 0).fill_null(False) | (delete["nans"] == 0).fill_null(False)
        apart |= known & ((data["lower"] > delete["upper"]) | (delete["lower"] > data["upper"])).fill_null(False)
    return both_null | ~apart
