"""Care of tables that exist: checks of their consistency."""

from __future__ import annotations

from hms_iceberg.maintenance.consistency import ConsistencyReport, check_table
from hms_iceberg.maintenance.findings import Finding

__all__ = ["ConsistencyReport", "Finding", "check_table"]
