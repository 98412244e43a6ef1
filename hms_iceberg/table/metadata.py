"""PyIceberg's door to table metadata: `hms_iceberg.spec.metadata`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hms_iceberg.spec.metadata.metadata_changes import new_table_metadata
from hms_iceberg.spec.metadata.metadata_json import metadata_from_dict
from hms_iceberg.spec.metadata.table_metadata import TableMetadata


class TableMetadataUtil:
    """Reads table metadata of any format version."""

    @staticmethod
    def parse_raw(data: str) -> TableMetadata:
        """The metadata in JSON text; raises `IcebergError`."""
        return TableMetadata.model_validate_json(data)

    @staticmethod
    def parse_obj(data: Mapping[str, Any]) -> TableMetadata:
        """The metadata that parsed JSON stands for; raises `IcebergError`."""
        return metadata_from_dict(data)


__all__ = ["TableMetadata", "TableMetadataUtil", "new_table_metadata"]
