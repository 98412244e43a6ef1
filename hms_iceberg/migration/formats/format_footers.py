"""What the footer of a data file says, whatever its format: its columns, its rows, its metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass

import pyarrow as pa
from pyarrow import orc

from hms_iceberg.arrow.columns.legacy_calendar import is_known_to_spark, text_marks, writer_calendar
from hms_iceberg.arrow.columns.projection import FileLeaf, file_leaves
from hms_iceberg.arrow.formats.avro.avro_reader import AvroReader
from hms_iceberg.arrow.formats.orc.orc_layout import OrcLayout
from hms_iceberg.arrow.formats.orc.orc_statistics import metrics_from_tail, problems_of
from hms_iceberg.arrow.formats.parquet_reader import ParquetReader
from hms_iceberg.arrow.metrics.footer_metrics import (
    ColumnMetrics,
    MetricsMode,
    metrics_from_footer,
    read_footer,
    split_offsets,
)
from hms_iceberg.arrow.storage.arrow_storage import open_for_arrow
from hms_iceberg.arrow.storage.filesystems import decoding
from hms_iceberg.errors import UnsupportedError
from hms_iceberg.migration.formats.kinds import AVRO, ORC
from hms_iceberg.spec.schema import Schema
from hms_iceberg.storage import Storage

_OF_HIVE = (
    "Spark does not know the marks of Hive's that tell so, and reads other days; have Hive copy the table as ORC "
    "(create table … stored as orc as select …), whose marks Spark knows, and migrate that with --rewrite"
)
Metrics = Callable[[Sequence[FileLeaf], Schema, Mapping[int, MetricsMode]], ColumnMetrics]


@dataclass(frozen=True)
class SourceFooter:
    """The footer of a data file.

    Attributes:
        schema: its columns as Arrow reads them.
        int96: names of top-level columns that hold, or contain, INT96 timestamps.
        columns: how many columns hold values.
        rows: how many rows it has.
        split_offsets: where parts begin that can be read on their own.
        metrics: makes the metrics of its leaves.
        problems: why no reader of Iceberg would return its values; empty if one would.
        misread_by_spark: whether plain Spark would not either, without an error.
    """

    schema: pa.Schema
    int96: frozenset[str]
    columns: int
    rows: int
    split_offsets: tuple[int, ...] | None
    metrics: Metrics
    problems: tuple[str, ...] = ()
    misread_by_spark: bool = False


def read_source_footer(storage: Storage, location: str, file_format: str) -> SourceFooter:
    """Reads the footer of a file; of an Avro file, which has none, its header and the heads of its blocks.

    Args:
        storage: where the file is.
        location: the file.
        file_format: Parquet, ORC or Avro.

    Raises:
        MissingFileError: it disappeared.
        CorruptDataFileError: it is not of the format, or damaged.
        UnsupportedError: it uses what no reader here knows.
    """
    if file_format == ORC:
        return _orc(storage, location)
    return _avro(storage, location) if file_format == AVRO else _parquet(storage, location)


def _parquet(storage: Storage, location: str) -> SourceFooter:
    footer = read_footer(storage, location)
    problems: tuple[str, ...] = ()
    marks = text_marks(footer.metadata)
    if writer_calendar(marks).is_legacy:
        with closing(ParquetReader(storage, location, None)) as reader:
            problems = tuple(reader.problems())
    misread = bool(problems) and not is_known_to_spark(marks)
    descriptors = footer.schema
    leaves = [descriptors.column(index) for index in range(footer.num_columns)]
    return SourceFooter(
        descriptors.to_arrow_schema(),
        frozenset(leaf.path.split(".")[0] for leaf in leaves if leaf.physical_type == "INT96"),
        footer.num_columns,
        footer.num_rows,
        split_offsets(footer),
        lambda found, schema, modes: metrics_from_footer(footer, list(found), schema, modes, {}),
        _with_remedy(problems, misread),
        misread,
    )


def _orc(storage: Storage, location: str) -> SourceFooter:
    with open_for_arrow(storage, location) as file:
        with decoding(location, "ORC"):
            schema = orc.ORCFile(file).schema
        layout = OrcLayout(file, file.size(), location)
        problems = tuple(problems_of(layout, False))
    offsets = tuple(stripe.offset for stripe in layout.stripes)
    return SourceFooter(
        schema,
        frozenset(),
        len(layout.leaf_columns()),
        layout.rows,
        offsets or None,
        lambda found, wanted, modes: metrics_from_tail(layout, found, wanted, modes),
        problems,
    )


def _avro(storage: Storage, location: str) -> SourceFooter:
    try:
        reader = AvroReader(storage, location, None)
    except UnsupportedError as error:
        return SourceFooter(pa.schema([]), frozenset(), 0, 0, None, _no_metrics, (f"cannot be read: {error}",))
    try:
        rows = sum(each.rows for each in reader.ranges())
        schema = reader.file_schema
        problems = (*reader.problems(), *_uuids(reader))
        misread = bool(reader.old_columns) and not is_known_to_spark(reader.marks)
    finally:
        reader.close()
    return SourceFooter(schema, frozenset(), 0, rows, None, _no_metrics, _with_remedy(problems, misread), misread)


def _uuids(reader: AvroReader) -> Iterator[str]:
    """What Java reads as texts, and Hive as bytes."""
    for leaf in file_leaves(reader.file_schema):
        if reader.is_uuid(leaf.path):
            yield f"holds Avro's type uuid in the column {'.'.join(leaf.path)!r}, which Hive does not have"


def _with_remedy(problems: tuple[str, ...], misread_by_spark: bool) -> tuple[str, ...]:
    return tuple(f"{each}; {_OF_HIVE}" for each in problems) if misread_by_spark else problems


def _no_metrics(leaves: Sequence[FileLeaf], schema: Schema, modes: Mapping[int, MetricsMode]) -> ColumnMetrics:
    return ColumnMetrics()
