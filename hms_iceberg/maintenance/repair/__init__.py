"""Repair of damaged tables: a plan that can be looked at, a journal, and then only what is safe.

`examination` reads what there is, `versions`, `lists` and `manifests` find what damaged files held, `plan` puts it
together, `carry_out` writes. Files that are there are never changed or deleted.
"""

from __future__ import annotations

from hms_iceberg.maintenance.repair.carry_out import RepairResult, repair_table
from hms_iceberg.maintenance.repair.plan import RepairPlan, plan_repair
from hms_iceberg.maintenance.repair.steps import RepairStep

__all__ = ["RepairPlan", "RepairResult", "RepairStep", "plan_repair", "repair_table"]
