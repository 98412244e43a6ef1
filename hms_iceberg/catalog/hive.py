"""The catalog of a Hive Metastore."""

from __future__ import annotations

from typing import Any

from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.catalog.catalog import Catalog
from hms_iceberg.hms.hive_metastore import HiveMetastore
from hms_iceberg.spec.json_model import text_properties


class HiveCatalog(Catalog):
    """Namespaces, tables and views of a Hive Metastore; `load_catalog` gives one that is configured, from the same
    properties."""

    def __init__(self, name: str, **properties: Any) -> None:
        merged = text_properties(properties)
        storage = ArrowStorage(merged)
        super().__init__(name, HiveMetastore(merged, storage), storage, merged)
