"""A table as PyIceberg's, for libraries that read Iceberg through it: polars' `scan_iceberg`, `daft.read_iceberg` ….

PyIceberg is a peer: nothing else here uses it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hms_iceberg.encryption.encrypted_tables import refuse_encrypted
from hms_iceberg.errors import UnsupportedError
from hms_iceberg.metastore import Identifier
from hms_iceberg.spec.metadata.metadata_json import metadata_to_json
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.storage import Storage
from hms_iceberg.table.reading.lazy_frame import needing

if TYPE_CHECKING:
    import pyiceberg.table

_HIGHEST_VERSION = 3


def pyiceberg_table(
    identifier: Identifier, metadata: TableMetadata, metadata_location: str, storage: Storage
) -> pyiceberg.table.Table:
    """The table at its version, which PyIceberg can read and not change."""
    name = ".".join(identifier)
    refuse_encrypted(metadata.properties, name, "Cannot give PyIceberg", "PyIceberg has no keys; use to_arrow().")
    if metadata.format_version > _HIGHEST_VERSION:
        raise UnsupportedError(
            f"Cannot give PyIceberg {name}: it has format version {metadata.format_version}, PyIceberg knows versions "
            f"to {_HIGHEST_VERSION}. Use to_arrow() or to_polars()."
        )
    with needing("to_pyiceberg", "PyIceberg", "pyiceberg"):
        from pyiceberg.catalog.noop import NoopCatalog
        from pyiceberg.io import load_file_io
        from pyiceberg.table import StaticTable
        from pyiceberg.table.metadata import TableMetadataUtil
    properties = dict(getattr(storage, "file_properties", {}))
    return StaticTable(
        identifier=identifier,
        metadata=TableMetadataUtil.parse_raw(metadata_to_json(metadata).decode()),
        metadata_location=metadata_location,
        io=load_file_io({**metadata.properties, **properties}, metadata_location),
        catalog=NoopCatalog(name),
    )
