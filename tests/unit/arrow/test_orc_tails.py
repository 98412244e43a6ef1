"""Tails of ORC files as other programs wrote them: statistics that are not believed, numbers that contradict."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import orc

from hms_iceberg.arrow.columns.projection import file_leaves, identified
from hms_iceberg.arrow.formats.orc.orc_layout import OrcLayout, encoded_message, message
from hms_iceberg.arrow.formats.orc.orc_reader import OrcReader
from hms_iceberg.arrow.formats.orc.orc_statistics import metrics_from_tail
from hms_iceberg.arrow.metrics.footer_metrics import FULL, ColumnMetrics
from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.errors import CorruptDataFileError
from hms_iceberg.migration.hive.format_footers import ORC, read_source_footer
from hms_iceberg.spec.data_types import LongType, StringType
from hms_iceberg.spec.field_mapping import create_name_mapping
from hms_iceberg.spec.schema import NestedField, Schema

SCHEMA = Schema(NestedField(1, "id", LongType()), NestedField(2, "name", StringType()))
ROWS = pa.table({"id": [1, 2, None], "name": ["a", "é", None]})
WRITER_VERSION, FOOTER_LENGTH = 6, 1
STATISTICS, ROW_COUNT, WRITER = 7, 6, 9


def with_tail(folder: Path, change: Callable[[dict[int, list[Any]], dict[int, list[Any]]], None]) -> str:
    """A file whose footer and postscript are changed."""
    location = folder / "f.orc"
    orc.write_table(ROWS, location, compression="uncompressed")
    data = location.read_bytes()
    end = len(data) - 1 - data[-1]
    postscript = message(data[end:-1])
    start = end - postscript[FOOTER_LENGTH][0]
    footer = message(data[start:end])
    change(footer, postscript)
    changed = encoded_message(footer)
    postscript[FOOTER_LENGTH] = [len(changed)]
    last = encoded_message(postscript)
    location.write_bytes(data[:start] + changed + last + bytes((len(last),)))
    return str(location)


def metrics(location: str) -> ColumnMetrics:
    leaves = file_leaves(identified(orc.ORCFile(location).schema, create_name_mapping(SCHEMA)))
    with open(location, "rb") as file:
        layout = OrcLayout(file, Path(location).stat().st_size, location)
        return metrics_from_tail(layout, leaves, SCHEMA, dict.fromkeys((1, 2), FULL))


@pytest.mark.parametrize(
    ("writer", "version", "bounded"),
    [(0, 0, {1}), (0, 1, {1, 2}), (0, 6, {1, 2}), (1, 0, {1, 2})],
)
def test_texts_have_no_bounds_of_the_first_writer_which_merged_them_wrongly(
    tmp_path: Path, writer: int, version: int, bounded: set[int]
) -> None:
    def change(footer: dict[int, list[Any]], postscript: dict[int, list[Any]]) -> None:
        footer[WRITER], postscript[WRITER_VERSION] = [writer], [version]

    found = metrics(with_tail(tmp_path, change))
    assert (found.lower_bounds.keys(), found.upper_bounds.keys()) == (bounded, bounded)
    assert found.null_value_counts == {1: 1, 2: 1}


def test_counts_of_values_beyond_the_rows_are_not_believed(tmp_path: Path) -> None:
    def change(footer: dict[int, list[Any]], _: dict[int, list[Any]]) -> None:
        statistics = message(footer[STATISTICS][1])
        footer[STATISTICS][1] = encoded_message({**statistics, 1: [4]})

    found = metrics(with_tail(tmp_path, change))
    assert (found.value_counts, found.null_value_counts) == ({2: 3}, {2: 1})


@pytest.mark.parametrize("rows", [0, 2, 4, 2**64 - 3])
def test_a_footer_of_other_rows_than_its_stripes_is_refused(tmp_path: Path, rows: int) -> None:
    def change(footer: dict[int, list[Any]], _: dict[int, list[Any]]) -> None:
        footer[ROW_COUNT] = [rows]

    location = with_tail(tmp_path, change)
    with pytest.raises(CorruptDataFileError, match=r"f\.orc"):
        OrcReader(ArrowStorage(), location, create_name_mapping(SCHEMA))
    with pytest.raises(CorruptDataFileError, match=r"f\.orc"):
        read_source_footer(ArrowStorage(), location, ORC)
