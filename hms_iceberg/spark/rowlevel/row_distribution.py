"""How DELETE, UPDATE and MERGE want their rows from Spark.

Source: Iceberg documentation, "Spark Writes", "Writing Distribution Modes"; defaults as in Apache Iceberg 1.12. Two
shuffles of Apache Iceberg's are left out, because what they are for holds without them: a copy-on-write scan gives all
rows of a file to one task, so that rows need not be brought together by file; and positions of deleted rows are put
together when they are committed, in whatever tasks they were found.
"""

from __future__ import annotations

from typing import Any

from hms_iceberg.spark.writing.distribution import (
    MODES,
    Distribution,
    advisory_size,
    clustered_order,
    clustering,
    sort_key,
    write_mode,
)
from hms_iceberg.spark.writing.write_settings import WriteSettings
from hms_iceberg.spec.metadata_columns import FILE
from hms_iceberg.spec.partitions.partition_specs import PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.sort_orders import SortOrder
from hms_iceberg.spec.table_properties import FANOUT_ENABLED, ROW_DISTRIBUTION_MODES

_FILE_TERM = {"transform": "identity", "width": None, "column": f"`{FILE.name}`"}
_FILE_ORDER = {**_FILE_TERM, "descending": False, "nulls_first": True}


def row_distribution(
    settings: WriteSettings,
    schema: Schema,
    spec: PartitionSpec,
    order: SortOrder,
    has_functions: bool,
    command: str,
    copies: bool,
) -> Distribution:
    """The distribution of an operation's new rows.

    Args:
        settings: of the write.
        schema: the table's columns.
        spec: how new files are partitioned.
        order: the table's sort order.
        has_functions: as of `write_distribution`.
        command: `delete`, `update` or `merge`.
        copies: whether whole files are written anew (copy-on-write).

    Raises:
        ConfigurationError: a setting is not what it can be.
    """
    if command == "delete" and not copies:
        return Distribution()
    if not settings.switch("use-table-distribution-and-ordering", True):
        return Distribution(fanout=settings.switch("fanout-enabled", True, FANOUT_ENABLED))
    fanout = settings.switch("fanout-enabled", False, FANOUT_ENABLED)
    terms = tuple(clustering(spec, schema))
    keys = tuple(sort_key(each, schema) for each in clustered_order(spec, order))
    if not has_functions and any(each["transform"] != "identity" for each in (*terms, *keys)):
        return Distribution(advisory_size=advisory_size(settings))
    mode = _mode(settings, spec, order, command, copies)
    ordering = () if fanout and order.is_unsorted else keys
    together, sorted_by = _without_partitions(copies)
    return Distribution(
        clustering=(terms or together) if mode == "hash" else (),
        ranges=(keys or sorted_by) if mode == "range" else (),
        ordering=ordering,
        fanout=settings.switch("fanout-enabled", not ordering, FANOUT_ENABLED),
        advisory_size=advisory_size(settings),
    )


def _without_partitions(copies: bool) -> tuple[tuple[dict[str, Any], ...], tuple[dict[str, Any], ...]]:
    """What brings the rows of one file together if the table has no partitions and no order."""
    return ((), ()) if copies else ((_FILE_TERM,), (_FILE_ORDER,))


def _mode(settings: WriteSettings, spec: PartitionSpec, order: SortOrder, command: str, copies: bool) -> str:
    mode = settings.choice("distribution-mode", MODES, ROW_DISTRIBUTION_MODES[command])
    if copies and command == "merge":
        if mode is None:
            return write_mode(settings, spec, order) if spec.is_unpartitioned() else "hash"
        return "none" if spec.is_unpartitioned() and (mode == "hash" or order.is_unsorted) else mode
    return mode or "hash"
