"""Apache Iceberg tables on a Hive Metastore, for Python and PySpark, without a JAR.

The names below are the public ones. They load on first use, so that ``import hms_iceberg`` stays cheap and never
imports PySpark or polars.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hms_iceberg.catalog import Catalog, load_catalog
    from hms_iceberg.errors import IcebergError
    from hms_iceberg.spec.partitions.partition_specs import PartitionField, PartitionSpec
    from hms_iceberg.spec.schema import Schema
    from hms_iceberg.spec.sort_orders import SortField, SortOrder
    from hms_iceberg.table import StaticTable, Table

__version__ = "0.1.0"

_HOMES = {
    "Catalog": "hms_iceberg.catalog",
    "IcebergError": "hms_iceberg.errors",
    "PartitionField": "hms_iceberg.spec.partitions.partition_specs",
    "PartitionSpec": "hms_iceberg.spec.partitions.partition_specs",
    "Schema": "hms_iceberg.spec.schema",
    "SortField": "hms_iceberg.spec.sort_orders",
    "SortOrder": "hms_iceberg.spec.sort_orders",
    "StaticTable": "hms_iceberg.table",
    "Table": "hms_iceberg.table",
    "load_catalog": "hms_iceberg.catalog",
}

__all__ = [
    "Catalog",
    "IcebergError",
    "PartitionField",
    "PartitionSpec",
    "Schema",
    "SortField",
    "SortOrder",
    "StaticTable",
    "Table",
    "__version__",
    "load_catalog",
]


def __getattr__(name: str) -> Any:
    """Loads a public name on first use (PEP 562)."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
