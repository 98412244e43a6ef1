"""Hive tables to Iceberg tables in place, and back."""

from __future__ import annotations

from hms_iceberg.migration.migrate import MigrationResult, migrate
from hms_iceberg.migration.plan import MigrationOptions
from hms_iceberg.migration.rollback import RollbackResult, rollback

__all__ = ["MigrationOptions", "MigrationResult", "RollbackResult", "migrate", "rollback"]
