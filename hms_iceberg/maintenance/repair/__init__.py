"""Repair of damaged tables: a plan that can be looked at, a journal, and then only what is safe.

`examination` reads what there is, `whole_versions`, `rebuilt_lists` and `rebuilt_manifests` find what damaged files
held, `repair_plan` puts it together, `carry_out_repair` writes it and takes it back. Files that are there are never
changed or deleted.
"""

from __future__ import annotations

from hms_iceberg.maintenance.repair.carry_out_repair import RepairResult, UndoneRepair, repair_table, undo_repair
from hms_iceberg.maintenance.repair.examination import RepairStep
from hms_iceberg.maintenance.repair.repair_plan import RepairPlan, plan_repair

__all__ = ["RepairPlan", "RepairResult", "RepairStep", "UndoneRepair", "plan_repair", "repair_table", "undo_repair"]
