"""PyIceberg's module path of Arrow's file systems and schemas: `hms_iceberg.arrow`."""

from __future__ import annotations

from collections.abc import Mapping

from hms_iceberg.arrow.columns.arrow_schema import from_arrow as pyarrow_to_schema
from hms_iceberg.arrow.columns.arrow_schema import to_arrow as schema_to_pyarrow
from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.storage import FileIO


class PyArrowFileIO(FileIO):
    """Files of any store, through Arrow, as `load_file_io` gives them."""

    def __init__(self, properties: Mapping[str, str] | None = None) -> None:
        super().__init__(ArrowStorage(dict(properties or {})))


__all__ = ["PyArrowFileIO", "pyarrow_to_schema", "schema_to_pyarrow"]
