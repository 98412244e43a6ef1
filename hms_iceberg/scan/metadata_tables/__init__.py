"""Metadata tables: what a table's metadata says, as rows, with the names and columns of Apache Iceberg (Java)."""

from __future__ import annotations

from collections.abc import Callable

from hms_iceberg.errors import InvalidInputError
from hms_iceberg.scan.metadata_tables import files, history, manifests, partitions
from hms_iceberg.scan.metadata_tables.request import MetadataRequest, MetadataTable

METADATA_TABLES: dict[str, Callable[[MetadataRequest], MetadataTable]] = {
    **files.TABLES,
    "manifests": manifests.manifests,
    "all_manifests": manifests.all_manifests,
    "snapshots": history.snapshots,
    "history": history.history,
    "refs": history.refs,
    "metadata_log_entries": history.metadata_log_entries,
    "partitions": partitions.partitions,
}


def metadata_table(name: str, request: MetadataRequest) -> MetadataTable:
    """A metadata table by its name.

    Args:
        name: such as ``files``; one of ``METADATA_TABLES``.
        request: the table, and for tables about one snapshot, which.

    Raises:
        InvalidInputError: there is no such metadata table.
        NoSuchSnapshotError: the table has no such snapshot.
        MissingFileError, CorruptManifestError: metadata is gone or damaged.
    """
    make = METADATA_TABLES.get(name.lower())
    if make is None:
        raise InvalidInputError(f"No metadata table {name!r}: expected one of {', '.join(sorted(METADATA_TABLES))}")
    return make(request)


__all__ = ["METADATA_TABLES", "MetadataRequest", "MetadataTable", "metadata_table"]
