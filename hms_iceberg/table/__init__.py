"""Tables, their scans and transactions; `DataScan` and `Transaction` are PyIceberg's names of two of the classes."""

from __future__ import annotations

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
