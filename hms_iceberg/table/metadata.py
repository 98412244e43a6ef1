"""PyIceberg's module path of table metadata: `hms_iceberg.spec.metadata`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hms_iceberg.errors import InvalidInputError
from hms_iceberg.spec.metadata.metadata_definition import new_table_metadata
from hms_iceberg.spec.metadata.metadata_json import metadata_from_dict
from hms_iceberg.spec.metadata.table_metadata import TableMetadata


class _OfVersion(type):
    """A class of PyIceberg that here is a predicate: whether metadata is of one format version."""

    format_version: int

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, TableMetadata) and instance.format_version == cls.format_version

    def __call__(cls, **members: Any) -> Any:
        return cls.model_validate(members)

    def model_validate(cls, data: Mapping[str, Any]) -> TableMetadata:
        """The metadata in parsed JSON; raises `IcebergError`, as if it is of another version."""
        metadata = TableMetadata.model_validate(data)
        if metadata.format_version != cls.format_version:
            raise InvalidInputError(f"{cls.__name__}: the metadata is of format version {metadata.format_version}")
        return metadata

    def model_validate_json(cls, text: str | bytes) -> TableMetadata:
        """The metadata in JSON text; see `model_validate`."""
        return cls.model_validate(TableMetadata.model_validate_json(text).model_dump())


class TableMetadataV1(metaclass=_OfVersion):
    """Metadata of format version 1."""

    format_version = 1


class TableMetadataV2(metaclass=_OfVersion):
    """Metadata of format version 2."""

    format_version = 2


class TableMetadataV3(metaclass=_OfVersion):
    """Metadata of format version 3."""

    format_version = 3


class TableMetadataUtil:
    """Reads table metadata of any format version."""

    @staticmethod
    def parse_raw(data: str) -> TableMetadata:
        """The metadata in JSON text; raises `IcebergError`."""
        return TableMetadata.model_validate_json(data)

    @staticmethod
    def parse_obj(data: Mapping[str, Any]) -> TableMetadata:
        """The metadata in parsed JSON; raises `IcebergError`."""
        return metadata_from_dict(data)


__all__ = [
    "TableMetadata",
    "TableMetadataUtil",
    "TableMetadataV1",
    "TableMetadataV2",
    "TableMetadataV3",
    "new_table_metadata",
]
