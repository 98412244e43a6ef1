"""How a write wants its rows from Spark: spread over tasks, and ordered within each.

Source: Iceberg documentation, "Spark Writes", "Writing Distribution Modes"; defaults as in Apache Iceberg 1.12.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hms_iceberg.spark.writing.write_settings import WriteSettings
from hms_iceberg.spec.partitions.partition_specs import PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.sort_orders import NullOrder, SortDirection, SortField, SortOrder
from hms_iceberg.spec.table_properties import (
    ADVISORY_PARTITION_BYTES,
    COMPRESSION_CODECS,
    DISTRIBUTION_MODE,
    FANOUT_ENABLED,
    FILE_FORMAT,
)
from hms_iceberg.spec.transforms.partition_transforms import Transform

MODES = ("none", "hash", "range")
# Shuffled rows that become a file of about 128 MB: how much smaller rows are in files than in a shuffle is estimated
# as in Java, for shuffles of Spark's default codec.
_FILE_BYTES = 128 * 1024 * 1024
_STRONG_CODECS = ("zstd", "gzip", "zlib")


@dataclass(frozen=True)
class Distribution:
    """How rows come to tasks, for the bridge's class Layouts."""

    clustering: tuple[dict[str, Any], ...] = ()  # rows that agree in these terms are wanted in one task
    ranges: tuple[dict[str, Any], ...] = ()  # tasks are wanted to have ranges of this order
    ordering: tuple[dict[str, Any], ...] = ()  # within a task
    fanout: bool = field(default=True)  # whether a file stays open for each partition
    advisory_size: int = 0  # bytes of shuffled rows that adaptive execution gives to a task
    partitions: int = 0  # how many tasks the rows are spread over, exactly; 0 leaves that to adaptive execution

    def for_spark(self) -> dict[str, Any]:
        """The distribution as JSON-ready Python, for the bridge."""
        return {
            "clustering": self.clustering,
            "ranges": self.ranges,
            "ordering": self.ordering,
            # Spark refuses a size if it does not shuffle.
            "advisory_size": self.advisory_size if self.clustering or self.ranges else 0,
            "partitions": self.partitions,
        }


def write_distribution(
    settings: WriteSettings, schema: Schema, spec: PartitionSpec, order: SortOrder, has_functions: bool
) -> Distribution:
    """The distribution that a table and a write ask for; empty if rows stay as they come. Without a catalog that gives
    Spark Iceberg's transforms (`has_functions`), it can sort and cluster by columns only."""
    if not settings.switch("use-table-distribution-and-ordering", True):
        return Distribution(fanout=settings.switch("fanout-enabled", True, FANOUT_ENABLED))
    fanout = settings.switch("fanout-enabled", False, FANOUT_ENABLED)
    mode = write_mode(settings, spec, order)
    full = clustered_order(spec, order)
    terms = clustering(spec, schema)
    keys = [sort_key(each, schema) for each in full]
    if not has_functions and any(each["transform"] != "identity" for each in (*terms, *keys)):
        return Distribution()
    ordering = () if fanout and order.is_unsorted else tuple(keys)
    return Distribution(
        clustering=tuple(terms) if mode == "hash" else (),
        ranges=tuple(keys) if mode == "range" else (),
        ordering=ordering,
        fanout=settings.switch("fanout-enabled", not ordering, FANOUT_ENABLED),
        advisory_size=advisory_size(settings),
    )


def clustering(spec: PartitionSpec, schema: Schema) -> list[dict[str, Any]]:
    """The terms that rows of one partition agree in, for the bridge's class Layouts."""
    return [_term(each.source_id, each.transform, schema) for each in spec.fields if not each.transform.is_void]


def write_mode(settings: WriteSettings, spec: PartitionSpec, order: SortOrder) -> str:
    """How rows come to tasks, as the write or the table says: `none`, `hash` or `range`."""
    mode = settings.choice("distribution-mode", MODES, DISTRIBUTION_MODE)
    if mode is None and not order.is_unsorted:
        return "range"
    if mode is None:
        return "none" if spec.is_unpartitioned() else "hash"
    if spec.is_unpartitioned() and (mode == "hash" or order.is_unsorted):
        return "none"
    return mode


def clustered_order(spec: PartitionSpec, order: SortOrder) -> tuple[SortField, ...]:
    """The sort order, with those partition fields before it by which it does not bring rows together itself."""
    needed = {(str(field.transform), field.source_id): field for field in spec.fields if not field.transform.is_void}
    for key, partition in list(needed.items()):
        finer = (other for other in spec.fields if other is not partition and other.source_id == partition.source_id)
        if any(other.transform.satisfies_order_of(partition.transform) for other in finer):
            needed.pop(key)
    for each in order.fields:
        if needed.pop((str(each.transform), each.source_id), None) is not None:
            continue
        for partition in spec.fields:
            if each.source_id == partition.source_id and each.transform.satisfies_order_of(partition.transform):
                needed.pop((str(partition.transform), partition.source_id), None)
        break
    return (*(SortField(each.source_id, each.transform) for each in needed.values()), *order.fields)


def sort_key(each: SortField, schema: Schema) -> dict[str, Any]:
    """A key of an order for the bridge's class Layouts."""
    return {
        **_term(each.source_id, each.transform, schema),
        "descending": each.direction is SortDirection.DESC,
        "nulls_first": each.null_order is NullOrder.NULLS_FIRST,
    }


def _term(source_id: int, transform: Transform, schema: Schema) -> dict[str, Any]:
    return {"transform": transform.sql_name, "width": transform.argument, "column": quoted(schema, source_id)}


def quoted(schema: Schema, field_id: int) -> str:
    """A column's name as Spark parses it."""
    names: Sequence[int] = [*reversed(tuple(schema.ancestor_ids(field_id))), field_id]
    return ".".join(f"`{schema.find_field(each).name.replace('`', '``')}`" for each in names)


def advisory_size(settings: WriteSettings) -> int:
    """How much of shuffled rows adaptive execution gives to a task."""
    given = settings.number("advisory-partition-size", ADVISORY_PARTITION_BYTES, of_session=True)
    if given is not None:
        return given
    file_format = (settings.text("write-format", FILE_FORMAT) or FILE_FORMAT.default).strip().lower()
    codec = settings.text("compression-codec", COMPRESSION_CODECS.get(file_format), of_session=True) or "zstd"
    ratio = 2.0
    if codec.strip().lower() in _STRONG_CODECS:
        ratio = 1.5 if file_format == "avro" else 3.0
    of_spark = settings.session.get("spark.sql.adaptive.advisoryPartitionSizeInBytes", "0")
    return max(int(_FILE_BYTES * ratio), int(of_spark))
