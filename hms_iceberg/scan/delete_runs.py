"""Runs of delete files: which of them apply to which data file, without a row for each pair.

A run has three columns: ``data_file``, the row of a data file; ``first`` and ``end``, the rows of the first delete file
that applies and of the one after the last. Runs of one data file do not overlap.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hms_iceberg.lazy import pl


def no_runs() -> pl.DataFrame:
    return pl.DataFrame(schema={"data_file": pl.UInt32, "first": pl.UInt32, "end": pl.UInt32})


def used_deletes(runs: pl.DataFrame, deletes: int) -> tuple[pl.Series, pl.DataFrame]:
    """Which delete files are in any run, and the runs numbered by these alone."""
    first, end = runs["first"].to_numpy(), runs["end"].to_numpy()
    opened = np.bincount(first, minlength=deletes + 1) - np.bincount(end, minlength=deletes + 1)
    used = opened[:deletes].cumsum() > 0
    before = _sums(used)
    return pl.Series(used), _runs(runs["data_file"].to_numpy(), before[first], before[end])


def sums_of_runs(runs: pl.DataFrame, values: pl.Series, data_files: int) -> pl.Series:
    """For each data file, the sum of a column over the delete files that apply to it."""
    before = _sums(values.to_numpy())
    sums = np.zeros(data_files, np.int64)
    np.add.at(sums, runs["data_file"].to_numpy(), before[runs["end"].to_numpy()] - before[runs["first"].to_numpy()])
    return pl.Series(sums)


def pairs_of(runs: pl.DataFrame) -> pl.DataFrame:
    """The runs as pairs of ``data_file`` and ``delete_file``: as many as there are, which may be very many."""
    rows = pl.int_ranges("first", "end", dtype=pl.UInt32).alias("delete_file")
    return runs.select("data_file", rows).explode("delete_file")


def joined(runs: pl.DataFrame, within: str) -> pl.DataFrame:
    """Sorted runs that follow each other without a gap as one; parts of one run have the column `within` in common."""
    data_file, first, end, kind = (runs[name].to_numpy() for name in ("data_file", "first", "end", within))
    is_new, is_last = np.ones((2, runs.height), np.bool_)
    is_new[1:] = is_last[:-1] = (kind[1:] != kind[:-1]) | (first[1:] != end[:-1])
    return _runs(data_file[is_new], first[is_new], end[is_last])


def _runs(data_file: Any, first: Any, end: Any) -> pl.DataFrame:
    columns = zip(no_runs().schema.items(), (data_file, first, end), strict=True)
    return pl.DataFrame([pl.Series(name, values.astype(np.uint32), dtype) for (name, dtype), values in columns])


def _sums(values: Any) -> Any:
    """The sum of the values before each row, and of all at the end."""
    return np.concatenate(([0], np.cumsum(values, dtype=np.int64)))
