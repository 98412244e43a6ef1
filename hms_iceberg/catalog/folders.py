"""The catalog of tables that are folders."""

from __future__ import annotations

from typing import Any

from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.catalog.catalog import Catalog
from hms_iceberg.metastore import text_properties
from hms_iceberg.table.file_system_catalog import FileSystemCatalog


class HadoopCatalog(Catalog):
    """Tables in the folders of a warehouse, without a metastore; `load_catalog(type="hadoop", …)` gives one.

    Args:
        name: the catalog's name.
        properties: `warehouse` and others, as of `load_catalog`.

    Raises:
        ConfigurationError: there is no warehouse.
    """

    def __init__(self, name: str, **properties: Any) -> None:
        merged = text_properties(properties)
        storage = ArrowStorage(merged)
        super().__init__(name, FileSystemCatalog(merged.get("warehouse"), storage), storage, merged)
