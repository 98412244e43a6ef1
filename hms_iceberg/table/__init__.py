"""Tables as their user holds them: reading, writing, transactions."""

from __future__ import annotations

from hms_iceberg.table.file_system import FileSystemTables
from hms_iceberg.table.row_operations import UpdateResult
from hms_iceberg.table.static import StaticTable
from hms_iceberg.table.table import Table
from hms_iceberg.table.upsert import UpsertResult

__all__ = ["FileSystemTables", "StaticTable", "Table", "UpdateResult", "UpsertResult"]
