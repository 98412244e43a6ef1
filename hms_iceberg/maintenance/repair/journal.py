"""The journal of a repair: what was, what is done and why, written before anything else."""

from __future__ import annotations

import json
import uuid
from dataclasses import asdict
from typing import Any

from hms_iceberg.maintenance.repair.plan import RepairPlan
from hms_iceberg.spec.metadata.metadata_changes import now_ms
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.table_properties import metadata_folder
from hms_iceberg.storage import Storage


def write_journal(plan: RepairPlan, metadata: TableMetadata, storage: Storage) -> str:
    """Writes the journal beside the table's metadata, and returns its location.

    A repair deletes nothing: the version that the journal names as `metadata-location` is still there where it was, and
    `CALL system.register_table` or `Catalog.register_table` make a table of it again.
    """
    folder = metadata_folder(metadata.location, metadata.properties)
    location = f"{folder}/repair-{now_ms()}-{uuid.uuid4()}.json"
    storage.create(location, json.dumps(_journal(plan), indent=1, default=str).encode())
    return location


def _journal(plan: RepairPlan) -> dict[str, Any]:
    return {
        "table": ".".join(plan.pointer.identifier),
        "begun-ms": now_ms(),
        "metadata-location": plan.pointer.metadata_location,
        "row": dict(plan.pointer.properties),
        "follows": plan.base.location if plan.base else None,
        "steps": [asdict(step) for step in plan.steps],
        "writes": list(plan.files),
        "removes": {branch: [file.file_path for file in lost.files] for branch, lost in plan.gone.items()},
    }
