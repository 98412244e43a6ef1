"""Which columns of a Parquet file get a dictionary, by how often values repeat in the first rows.

A dictionary is for a row group, and a reader that skips pages still needs all of it. One that grows over its limit is
given up half-way, and costs all the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hms_iceberg.arrow.formats.file_layout import FileLayout
from hms_iceberg.arrow.formats.parquet_writer import leaf_paths
from hms_iceberg.spec.schema import Schema

# Rows that are looked at, as a whole and in runs.
_SAMPLE_ROWS, _RUN_ROWS, _LEAST_ROWS = 20_000, 1_000, 2_000
# What a dictionary and the numbers into it may take of the bytes of plain values, which compress better.
_MOST_BYTES = 0.6
# Smaller growth is chance.
_LEAST_GROWTH = 0.1


@dataclass(frozen=True, slots=True)
class Repetition:
    """How the values of a column repeat.

    Args:
        population: how many values some rows are drawn from, as if all were equally frequent.
        rows: how many rows these are.
        growth: with which power of the number of rows the population grows: 0 if rows that follow one another are
            drawn from as many as any others, up to 1 if the column's order brings ever new ones.
        value_bytes: the mean size of a value.
    """

    population: float
    rows: int
    growth: float
    value_bytes: float

    def distinct(self, rows: int) -> float:
        """How many values so many rows are likely to have."""
        return _expected(self.population * max(1.0, rows / self.rows) ** self.growth, rows)


def repetitions(schema: Schema, rows: pa.RecordBatch) -> dict[str, Repetition]:
    """How values repeat in each column of which some rows are a sample.

    Args:
        schema: the table's schema.
        rows: some rows of the table's columns that follow one another; of few rows nothing is said.
    """
    if rows.num_rows < _LEAST_ROWS:
        return {}
    sample = rows.slice(max(rows.num_rows - _SAMPLE_ROWS, 0) // 2, _SAMPLE_ROWS)
    return {
        field.name: _repetition(column)
        for field, column in zip(schema.fields, sample.columns, strict=True)
        if field.field_type.is_primitive
    }


def with_useful_dictionaries(
    options: Mapping[str, Any], schema: Schema, layout: FileLayout, repeated: Mapping[str, Repetition], rows: int
) -> Mapping[str, Any]:
    """The options with no dictionary for columns that hardly repeat a value in so many rows.

    Their dictionaries would take more than they save, or grow over the limit and be given up.

    Args:
        options: what ``parquet_options`` returned.
        schema: the table's schema.
        layout: its columns in files.
        repeated: what ``repetitions`` returned.
        rows: how many rows one dictionary is for.
    """
    if options["use_dictionary"] is not True:
        return options
    paths = dict(leaf_paths(schema, layout))
    for name, each in repeated.items():
        distinct = each.distinct(rows)
        dictionary = distinct * each.value_bytes
        numbers = rows * math.log2(max(distinct, 2)) / 8
        too_large = dictionary > options["dictionary_pagesize_limit"]
        if too_large or dictionary + numbers > _MOST_BYTES * rows * each.value_bytes:
            paths.pop(name, None)
    return {**options, "use_dictionary": list(paths.values()) or False}


def _repetition(sample: pa.Array) -> Repetition:
    runs = [sample.slice(start, _RUN_ROWS) for start in range(0, len(sample) - _RUN_ROWS + 1, _RUN_ROWS)]
    population, within_run = _population_of([sample]), _population_of(runs)
    spread = math.log(population / within_run, len(sample) / _RUN_ROWS) if 0 < within_run < population else 0.0
    growth = min(spread, 1.0) if spread > _LEAST_GROWTH else 0.0
    return Repetition(population, len(sample), growth, sample.nbytes / len(sample))


def _population_of(arrays: list[pa.Array]) -> float:
    """The population that arrays of one length are drawn from, by the mean of how many of their values differ."""
    values = sum(len(each) - each.null_count for each in arrays) / len(arrays)
    return _population(values, sum(pc.count_distinct(each).as_py() for each in arrays) / len(arrays))


def _population(sample: float, distinct: float) -> float:
    """How many values there are, if so many of a sample differ: `distinct = n * (1 - exp(-sample / n))`."""
    low, high = float(distinct), sample * 1000.0
    if not distinct or _expected(high, sample) <= distinct:
        return high
    while high - low > low / 100:
        middle = (low + high) / 2
        low, high = (middle, high) if _expected(middle, sample) < distinct else (low, middle)
    return high


def _expected(population: float, rows: float) -> float:
    """How many values rows have, of so many that there are."""
    return -population * math.expm1(-rows / population) if population else 0.0
