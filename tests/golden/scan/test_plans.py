"""Plans of tables written by Apache Iceberg (Java): every read of every golden table.

Java's plan of each read is in ``expected.json``. Ours may keep more files, and keeps every file of Java's unless it can
tell that no row of it matches; for files in both plans the assigned deletes are Java's. Where they are not, the read is
listed below with the reason.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.errors import IcebergError
from hms_iceberg.expressions.text.parser import parse
from hms_iceberg.expressions.tree import AlwaysTrue
from hms_iceberg.scan.planner import plan_scan
from hms_iceberg.scan.tasks import ScanPlan, ScanRequest
from hms_iceberg.spec.metadata.metadata_json import metadata_from_json
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.snapshots_and_refs import SnapshotRefType

GOLDEN = Path("/tmp/hms_iceberg_golden/public")
CASES = sorted(path.parent.name for path in GOLDEN.glob("*/expected.json"))

# Files of Java's plan that ours leaves out, because no row of them matches.
PRUNED = {
    ("c05_times", "filter_12"): "every value of the file is the one that the filter excludes",
    ("c05_truncate", "filter_10"): "every value of the file starts with the prefix that the filter excludes",
    ("c05_identity_more", "filter_03"): "-0.0 is not less than 0",
    ("c03_primitives_spark", "filter_03"): "-0.0 is not less than 0",
}
# Reads in which a file has more deletes than in Java's plan; they delete no row of it that Java's plan keeps.
MORE_DELETES = {
    ("c11_eqdel_evolution", None): "bounds -0.0 and 0.0 of a key are equal",
    ("c11_eqdel_global", "filter_06"): "only key columns of an equality delete file are compared with the filter",
    ("c17_eqdel_orc", "filter_06"): "only key columns of an equality delete file are compared with the filter",
}


@cache
def expected(case: str) -> dict[str, Any]:
    return json.loads((GOLDEN / case / "expected.json").read_text())


@cache
def metadata_of(case: str) -> TableMetadata:
    location = GOLDEN / case / expected(case)["metadata_file"]
    return metadata_from_json(location.read_bytes(), str(location))


def request_of(metadata: TableMetadata, read: dict[str, Any]) -> ScanRequest:
    row_filter = AlwaysTrue() if read.get("filter") is None else parse(read["filter"])
    if read.get("ref"):
        snapshot = metadata.snapshot_by_name(read["ref"])
        branch = metadata.refs[read["ref"]].snapshot_ref_type == SnapshotRefType.BRANCH
        schema = metadata.schema() if branch else metadata.schema_for_snapshot(snapshot)
        return ScanRequest(metadata, snapshot.snapshot_id, row_filter, schema=schema)
    if read.get("as_of_timestamp_ms"):
        return ScanRequest(metadata, metadata.snapshot_as_of(read["as_of_timestamp_ms"]).snapshot_id, row_filter)
    return ScanRequest(metadata, read.get("snapshot_id"), row_filter)


def tasks_of(plan: ScanPlan, case: str) -> dict[str, set[str]]:
    prefix = f"file:/tmp/hms_iceberg_golden/public/{case}/"

    def name(file: Any) -> str:
        path = file.file_path.removeprefix(prefix)
        return path if file.content_offset is None else f"{path}@{file.content_offset}"

    return {name(task.file): {name(delete) for delete in task.delete_files} for task in plan.tasks()}


@pytest.mark.parametrize("case", CASES)
def test_every_read_is_planned_as_java_plans_it(case: str) -> None:
    metadata = metadata_of(case)
    storage = ArrowStorage({})
    problems = []
    for read in expected(case)["reads"]:
        try:
            plan = plan_scan(request_of(metadata, read), storage)
            ours = tasks_of(plan, case)
        except IcebergError as error:
            problems.append((read["name"], read.get("filter"), type(error).__name__, str(error)))
            continue
        planned = read.get("planned")
        if not planned or "tasks" not in planned:
            continue
        javas = {task[0]: set(task[1]) for task in planned["tasks"]}
        for path, deletes in javas.items():
            if path not in ours:
                if (case, read["name"]) not in PRUNED:
                    problems.append((read["name"], read.get("filter"), "pruned", path))
            elif ours[path] != deletes:
                extra, missing = ours[path] - deletes, deletes - ours[path]
                listed = {(case, read["name"]), (case, None)} & set(MORE_DELETES)
                if missing or not listed:
                    problems.append((read["name"], read.get("filter"), "extra", extra, "missing", missing))
    assert not problems, "\n".join(map(str, problems))
