"""What the footer of a data file says, whatever its format: its columns, its rows, its metrics."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyarrow import orc

from hms_iceberg.arrow.columns.file_schema import FileLeaf
from hms_iceberg.arrow.formats.avro.avro_reader import AvroReader
from hms_iceberg.arrow.formats.orc.orc_layout import OrcLayout
from hms_iceberg.arrow.formats.orc.orc_statistics import date_range, metrics_from_tail, timestamp_range
from hms_iceberg.arrow.metrics.footer_metrics import ColumnMetrics, metrics_from_footer, read_footer, split_offsets
from hms_iceberg.arrow.metrics.metrics_modes import MetricsMode
from hms_iceberg.arrow.storage.arrow_storage import open_for_arrow
from hms_iceberg.arrow.storage.failures import decoding
from hms_iceberg.errors import UnsupportedError
from hms_iceberg.migration.formats.kinds import AVRO, ORC
from hms_iceberg.spec.schema import Schema
from hms_iceberg.storage import Storage

Metrics = Callable[[Sequence[FileLeaf], Schema, Mapping[int, MetricsMode]], ColumnMetrics]

# 1582-10-15, before which files of old writers count in the Julian calendar, in days and in milliseconds.
_GREGORIAN_DAYS = -141_427
_DAY_MILLIS = 86_400_000
# What nanoseconds since 1970 can hold, in milliseconds.
_NANO_MILLIS = (1 << 63) // 1_000_000
_UTC = frozenset({"UTC", "GMT", "Etc/UTC", "Etc/GMT", "Z", ""})


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
    """

    schema: pa.Schema
    int96: frozenset[str]
    columns: int
    rows: int
    split_offsets: tuple[int, ...] | None
    metrics: Metrics
    problems: tuple[str, ...] = ()


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
    descriptors = footer.schema
    leaves = [descriptors.column(index) for index in range(footer.num_columns)]
    return SourceFooter(
        descriptors.to_arrow_schema(),
        frozenset(leaf.path.split(".")[0] for leaf in leaves if leaf.physical_type == "INT96"),
        footer.num_columns,
        footer.num_rows,
        split_offsets(footer),
        lambda found, schema, modes: metrics_from_footer(footer, list(found), schema, modes, {}),
    )


def _orc(storage: Storage, location: str) -> SourceFooter:
    with open_for_arrow(storage, location) as file:
        with decoding(location, "ORC"):
            schema = orc.ORCFile(file).schema
        layout = OrcLayout(file, file.size(), location)
        problems = tuple(_problems_of_orc(layout, location))
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


def _problems_of_orc(layout: OrcLayout, location: str) -> list[str]:
    problems = []
    for column in layout.leaf_columns():
        found = layout.statistics(column) or {}
        days, millis = date_range(found), timestamp_range(found)
        first = min([days[0] * _DAY_MILLIS] if days else [], default=millis[0] if millis else 0)
        if first < _GREGORIAN_DAYS * _DAY_MILLIS and not layout.is_proleptic:
            problems.append(
                "holds days before 1582-10-15, counted in the Julian calendar, in which no reader of Iceberg counts"
            )
        elif millis and max(-millis[0], millis[1]) >= _NANO_MILLIS:
            zones = {layout.footer(stripe).timezone for stripe in layout.stripes} - _UTC
            if zones:
                problems.append(
                    f"holds timestamps outside of 1677 to 2262 that were written in time zone {min(zones)}, and such "
                    "ones are read in UTC only"
                )
    return problems


def _avro(storage: Storage, location: str) -> SourceFooter:
    try:
        reader = AvroReader(storage, location, None)
    except UnsupportedError as error:
        return SourceFooter(pa.schema([]), frozenset(), 0, 0, None, _no_metrics, (f"cannot be read: {error}",))
    try:
        rows = sum(each.rows for each in reader.ranges())
        schema = reader.file_schema
    finally:
        reader.close()
    return SourceFooter(schema, frozenset(), 0, rows, None, _no_metrics)


def _no_metrics(leaves: Sequence[FileLeaf], schema: Schema, modes: Mapping[int, MetricsMode]) -> ColumnMetrics:
    return ColumnMetrics()
