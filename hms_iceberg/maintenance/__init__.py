"""Care of tables that exist: checks, compaction, and old snapshots with their files."""

from __future__ import annotations

from hms_iceberg.maintenance.check.consistency import ConsistencyReport, check_table
from hms_iceberg.maintenance.check.findings import Finding
from hms_iceberg.maintenance.erasure.erasure_plan import ErasurePlan, ErasureResult
from hms_iceberg.maintenance.erasure.erasure_report import is_about, verify_report
from hms_iceberg.maintenance.erasure.forget import forget, resume_forget
from hms_iceberg.maintenance.expire_with_files import ExpiryResult, SnapshotExpiry, expire_snapshots
from hms_iceberg.maintenance.orphan_files import OrphanFiles, remove_orphan_files
from hms_iceberg.maintenance.rewrite.convert_deletes import ConversionResult, convert_equality_deletes
from hms_iceberg.maintenance.rewrite.data_files import RewriteResult, rewrite_data_files
from hms_iceberg.maintenance.rewrite.manifest_rewrite import ManifestRewriteResult, rewrite_manifests
from hms_iceberg.maintenance.rewrite.rewrite_deletes import (
    DeleteRewriteResult,
    remove_dangling_deletes,
    rewrite_position_delete_files,
)
from hms_iceberg.maintenance.service.service import Limits, MaintenanceService, RunReport, Step
from hms_iceberg.maintenance.statistics_files import compute_partition_stats, compute_table_stats
from hms_iceberg.maintenance.system import system_table
from hms_iceberg.maintenance.table_maintenance import TableMaintenance
from hms_iceberg.maintenance.table_path import TablePathResult, rewrite_table_path
from hms_iceberg.maintenance_policy import Policies, Policy

__all__ = [
    "ConsistencyReport",
    "ConversionResult",
    "DeleteRewriteResult",
    "ErasurePlan",
    "ErasureResult",
    "ExpiryResult",
    "Finding",
    "Limits",
    "MaintenanceService",
    "ManifestRewriteResult",
    "OrphanFiles",
    "Policies",
    "Policy",
    "RewriteResult",
    "RunReport",
    "SnapshotExpiry",
    "Step",
    "TableMaintenance",
    "TablePathResult",
    "check_table",
    "compute_partition_stats",
    "compute_table_stats",
    "convert_equality_deletes",
    "expire_snapshots",
    "forget",
    "is_about",
    "remove_dangling_deletes",
    "remove_orphan_files",
    "resume_forget",
    "rewrite_data_files",
    "rewrite_manifests",
    "rewrite_position_delete_files",
    "rewrite_table_path",
    "system_table",
    "verify_report",
]
