"""Runs of delete files: which of them apply to which data file, without a row for each pair.

A run has three columns: ``data_file``, the row of a data file; ``first`` and ``end``, the rows of the first delete file
that applies and of the one after the last. Runs of one data file do not overlap.
"""

from __future__ import annotations

from hms_iceberg.lazy import pl


def no_runs() -> pl.DataFrame:
    return pl.DataFrame(schema={"data_file": pl.UInt32, "first": pl.UInt32, "end": pl.UInt32})


def used_deletes(runs: pl.DataFrame, deletes: int) -> tuple[pl.Series, pl.DataFrame]:
    """Which delete files are in any run, and the runs numbered by these alone."""
    edges = pl.concat(
        [
            runs.select(pl.col("first").alias("row"), pl.lit(1, pl.Int64).alias("open")),
            runs.select(pl.col("end").alias("row"), pl.lit(-1, pl.Int64).alias("open")),
        ]
    )
    changes = edges.group_by("row").agg(pl.col("open").sum())
    open_runs = pl.zeros(deletes + 1, pl.Int64, eager=True).scatter(changes["row"], changes["open"]).cum_sum()
    used = open_runs.head(deletes) > 0
    before = _sums(used)
    renumbered = (before.gather(runs[name]).cast(pl.UInt32).alias(name) for name in ("first", "end"))
    return used, runs.with_columns(renumbered)


def sums_of_runs(runs: pl.DataFrame, values: pl.Series, data_files: int) -> pl.Series:
    """For each data file, the sum of a column over the delete files that apply to it."""
    before = _sums(values)
    sums = runs.select("data_file", sum=before.gather(runs["end"]) - before.gather(runs["first"]))
    sums = sums.group_by("data_file").agg(pl.col("sum").sum())
    return pl.zeros(data_files, pl.Int64, eager=True).scatter(sums["data_file"], sums["sum"])


def pairs_of(runs: pl.DataFrame) -> pl.DataFrame:
    """The runs as pairs of ``data_file`` and ``delete_file``: as many as there are, which may be very many."""
    rows = pl.int_ranges("first", "end", dtype=pl.UInt32).alias("delete_file")
    return runs.select("data_file", rows).explode("delete_file")


def joined(runs: pl.DataFrame, within: str) -> pl.DataFrame:
    """Sorted runs that follow each other without a gap as one; parts of one run have the column `within` in common."""
    is_new = (pl.col(within) != pl.col(within).shift()) | (pl.col("first") != pl.col("end").shift())
    numbered = runs.with_columns(is_new.fill_null(True).cum_sum().alias("run"))
    found = numbered.group_by("run", maintain_order=True).agg(
        pl.col("data_file").first(), pl.col("first").first(), pl.col("end").last()
    )
    return found.drop("run")


def _sums(values: pl.Series) -> pl.Series:
    """The sum of the values before each row, and of all at the end."""
    return pl.concat([pl.zeros(1, pl.Int64, eager=True), values.cast(pl.Int64).cum_sum().alias("")])
