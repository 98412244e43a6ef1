"""Tables, their scans and transactions; `DataScan` and `Transaction` are PyIceberg's names of two of the classes.

The names load on first use: the metastores of the room, and its modules of PyIceberg's names, need none of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hms_iceberg.scan.tasks import FileScanTask
    from hms_iceberg.spec.property_names import TableProperties
    from hms_iceberg.table.changes.assignments import UpdateResult
    from hms_iceberg.table.changes.upsert import UpsertResult
    from hms_iceberg.table.file_system import FileSystemTables
    from hms_iceberg.table.readable import StaticTable
    from hms_iceberg.table.reading.incremental_scans import ChangelogScan, IncrementalAppendScan
    from hms_iceberg.table.reading.scan import TableScan
    from hms_iceberg.table.reading.scan import TableScan as DataScan
    from hms_iceberg.table.table import Table, TableTransaction
    from hms_iceberg.table.table import TableTransaction as Transaction

_HOMES = {
    "ChangelogScan": "hms_iceberg.table.reading.incremental_scans",
    "DataScan": "hms_iceberg.table.reading.scan",
    "FileScanTask": "hms_iceberg.scan.tasks",
    "FileSystemTables": "hms_iceberg.table.file_system",
    "IncrementalAppendScan": "hms_iceberg.table.reading.incremental_scans",
    "StaticTable": "hms_iceberg.table.readable",
    "Table": "hms_iceberg.table.table",
    "TableProperties": "hms_iceberg.spec.property_names",
    "TableScan": "hms_iceberg.table.reading.scan",
    "TableTransaction": "hms_iceberg.table.table",
    "Transaction": "hms_iceberg.table.table",
    "UpdateResult": "hms_iceberg.table.changes.assignments",
    "UpsertResult": "hms_iceberg.table.changes.upsert",
}
_PYICEBERG = {"DataScan": "TableScan", "Transaction": "TableTransaction"}

__all__ = [
    "ChangelogScan",
    "DataScan",
    "FileScanTask",
    "FileSystemTables",
    "IncrementalAppendScan",
    "StaticTable",
    "Table",
    "TableProperties",
    "TableScan",
    "TableTransaction",
    "Transaction",
    "UpdateResult",
    "UpsertResult",
]


def __getattr__(name: str) -> Any:
    """Loads a public name on first use (PEP 562)."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(home), _PYICEBERG.get(name, name))
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
