"""Care of tables that exist: checks of their consistency, and old snapshots with their files."""

from __future__ import annotations

from hms_iceberg.maintenance.consistency import ConsistencyReport, check_table
from hms_iceberg.maintenance.expire_snapshots import ExpiryResult, expire_snapshots
from hms_iceberg.maintenance.findings import Finding

__all__ = ["ConsistencyReport", "ExpiryResult", "Finding", "check_table", "expire_snapshots"]
