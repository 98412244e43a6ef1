"""Tables as their user holds them: reading, writing, transactions."""

from __future__ import annotations

from hms_iceberg.table.static import StaticTable
from hms_iceberg.table.table import Table

__all__ = ["StaticTable", "Table"]
