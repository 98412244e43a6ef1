"""Footers of files of each format that Hive tables have, as a migration needs them.

Hive resolves the file's schema against one of its own by exact names: the table's `avro.schema.literal` or
`avro.schema.url`, else one made of its columns. Source: Apache Hive, `AvroSerdeUtils.determineSchemaOrThrowException`;
Apache Avro specification, "Schema Resolution".

Source: Apache Hive, `StorageFormats`; Apache Spark, `HiveSerDe.sourceToSerDe`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

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
from hms_iceberg.hms.rows.hive_rows import HivePartition, HiveStorage, HiveTable
from hms_iceberg.spec.schema import Schema
from hms_iceberg.storage import Storage

LITERAL, URL = "avro.schema.literal", "avro.schema.url"


@dataclass(frozen=True)
class AvroNames:
    """Facts about a table's columns from Hive's own Avro schema."""

    # for each column, lower-case, the names that it may have in files; an absent column has its own
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    # columns that are not null if a file lacks them, with their value
    defaults: Mapping[str, Any] = field(default_factory=dict)
    exact: bool = True  # whether names in files must be equal in case too

    def of(self, column: str) -> tuple[str, ...]:
        """The names that a column may have in files."""
        return self.names.get(column.lower(), (column.lower(),))


def declared_schema(table: HiveTable, key: str) -> str | None:
    """The Avro schema that a table's parameter `LITERAL` or `URL` declares; None if it is not set, or `none`."""
    value = table.storage.serde_parameters.get(key) or table.parameters.get(key)
    return None if value is None or value.strip().lower() in ("", "none") else value


def avro_names(literal: str) -> AvroNames:
    """Reads column names from the text of an Avro schema."""
    try:
        schema = json.loads(literal)
        fields = schema["fields"]
        names = {each["name"].lower(): (each["name"], *each.get("aliases", ())) for each in fields}
        defaults = {each["name"].lower(): each["default"] for each in fields if each.get("default") is not None}
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise UnsupportedError(f"its {LITERAL} is not the schema of a record in Avro: {error}") from error
    return AvroNames(names, defaults)


PARQUET, ORC, AVRO = "PARQUET", "ORC", "AVRO"
_PROVIDER = "spark.sql.sources.provider"
_SERDES = {"parquethiveserde": PARQUET, "orcserde": ORC, "avroserde": AVRO}


def provider_of(table: HiveTable) -> str:
    """The Spark data source of a table, lower-case; `hive` if it is an ordinary Hive table."""
    return table.parameters.get(_PROVIDER, "hive").lower()


def format_of(table: HiveTable, partition: HivePartition | None = None) -> str | None:
    """The format of a table's files, or of a partition's; None if it is not one that Iceberg has. A partition of a Hive
    table is stored as its own descriptor says; a Spark data source has one format for all."""
    provider = provider_of(table)
    if provider != "hive":
        name = provider.upper()
        return name if name in (PARQUET, ORC, AVRO) else None
    return _SERDES.get(_class_name((partition or table).storage).lower())


def shown_format(table: HiveTable, partition: HivePartition | None = None) -> str:
    """Names a format for people: the data source, or the class of the SerDe."""
    provider = provider_of(table)
    return provider if provider != "hive" else _class_name((partition or table).storage) or "files of no known format"


def _class_name(storage: HiveStorage) -> str:
    return (storage.serde or storage.input_format).rsplit(".", 1)[-1]


_OF_HIVE = (
    "Spark does not know the marks of Hive's that tell so, and reads other days; have Hive copy the table as ORC "
    "(create table … stored as orc as select …), whose marks Spark knows, and migrate that with --rewrite"
)
Metrics = Callable[[Sequence[FileLeaf], Schema, Mapping[int, MetricsMode]], ColumnMetrics]


@dataclass(frozen=True)
class SourceFooter:
    schema: pa.Schema  # its columns as Arrow reads them
    int96: frozenset[str]  # names of top-level columns that hold, or contain, INT96 timestamps
    columns: int  # how many columns hold values
    rows: int  # how many rows it has
    split_offsets: tuple[int, ...] | None  # where parts begin that can be read on their own
    metrics: Metrics  # makes the metrics of its leaves
    problems: tuple[str, ...] = ()  # why no reader of Iceberg would return its values; empty if one would
    misread_by_spark: bool = False  # whether plain Spark would not either, without an error


def read_source_footer(storage: Storage, location: str, file_format: str) -> SourceFooter:
    """Reads the footer of a file; of an Avro file, which has none, its header and the heads of its blocks."""
    if file_format == ORC:
        return _orc(storage, location)
    return _avro(storage, location) if file_format == AVRO else _parquet(storage, location)


def _parquet(storage: Storage, location: str) -> SourceFooter:
    footer = read_footer(storage, location)
    problems: tuple[str, ...] = ()
    found = footer.metadata
    marks = text_marks(found.metadata)
    if writer_calendar(marks).is_legacy:
        with closing(ParquetReader(storage, location, None)) as reader:
            problems = tuple(reader.problems())
    misread = bool(problems) and not is_known_to_spark(marks)
    descriptors = found.schema
    leaves = [descriptors.column(index) for index in range(found.num_columns)]
    return SourceFooter(
        descriptors.to_arrow_schema(),
        frozenset(leaf.path.split(".")[0] for leaf in leaves if leaf.physical_type == "INT96"),
        found.num_columns,
        footer.rows,
        split_offsets(found),
        lambda columns, schema, modes: metrics_from_footer(footer, list(columns), schema, modes, {}),
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
    """Columns that Java reads as text, and Hive as bytes."""
    for leaf in file_leaves(reader.file_schema):
        if reader.is_uuid(leaf.path):
            yield f"holds Avro's type uuid in the column {'.'.join(leaf.path)!r}, which Hive does not have"


def _with_remedy(problems: tuple[str, ...], misread_by_spark: bool) -> tuple[str, ...]:
    return tuple(f"{each}; {_OF_HIVE}" for each in problems) if misread_by_spark else problems


def _no_metrics(leaves: Sequence[FileLeaf], schema: Schema, modes: Mapping[int, MetricsMode]) -> ColumnMetrics:
    return ColumnMetrics()
