"""Metadata tables: what a table's metadata says, as rows, with the names and columns of Apache Iceberg (Java)."""

from __future__ import annotations

from collections.abc import Callable

from hms_iceberg.errors import InvalidInputError
from hms_iceberg.scan.metadata_tables import file_tables, history_tables, manifest_tables, partition_table
from hms_iceberg.scan.metadata_tables.request import MetadataRequest, MetadataTable

METADATA_TABLES: dict[str, Callable[[MetadataRequest], MetadataTable]] = {
    **file_tables.TABLES,
    "manifests": manifest_tables.manifests,
    "all_manifests": manifest_tables.all_manifests,
    "snapshots": history_tables.snapshots,
    "history": history_tables.history,
    "refs": history_tables.refs,
    "metadata_log_entries": history_tables.metadata_log_entries,
    "partitions": partition_table.partitions,
}


def metadata_table(name: str, request: MetadataRequest) -> MetadataTable:
    make = METADATA_TABLES.get(name.lower())
    if make is None:
        raise InvalidInputError(f"No metadata table {name!r}: expected one of {', '.join(sorted(METADATA_TABLES))}")
    return make(request)


def metadata_table_parts(name: str, request: MetadataRequest, most: int) -> list[MetadataRequest]:
    """Requests, at most `most`, whose tables, below one another, are a metadata table: so several threads can make it.
    Tables that are not of files are made as a whole."""
    return file_tables.parts(name, request, most) if name in file_tables.TABLES else [request]


def metadata_table_start(name: str, request: MetadataRequest, rows: int) -> MetadataRequest:
    """A request for so many rows of a metadata table, if it has them, that reads as few manifests as it can."""
    return file_tables.start(name, request, rows) if name in file_tables.TABLES else request


__all__ = [
    "METADATA_TABLES",
    "MetadataRequest",
    "MetadataTable",
    "metadata_table",
    "metadata_table_parts",
    "metadata_table_start",
]
