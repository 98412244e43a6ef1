"""Endpoints of planning. A plan is answered at once: its first page, and tasks to fetch all others with.

A task names a part of the plan (some manifests) and a row in it; whichever process gets it makes that part anew, from
decoded manifests that are kept. So a plan of any size takes the memory of a part.
"""

from __future__ import annotations

from itertools import islice, takewhile
from typing import Any

import msgspec

from hms_iceberg.errors import MissingFileError
from hms_iceberg.metastore import MetadataVersion
from hms_iceberg.rest.errors import RefusedError
from hms_iceberg.rest.planning.content_json import tasks_json
from hms_iceberg.rest.planning.requests import (
    PlanBody,
    StoredPlan,
    count_parts,
    enough_files,
    left_to_the_client,
    part_of,
    planned,
    stats_fields,
)
from hms_iceberg.rest.served_catalog import ServedCatalog
from hms_iceberg.rest.serving.calls import NOTHING, Answer, Call
from hms_iceberg.scan.tasks import ScanPlan


class _Fetch(msgspec.Struct, rename="kebab"):
    plan_task: str


def plan_scan(served: ServedCatalog, call: Call) -> Answer:
    identifier, version = served.current(call.table)
    body = call.read(PlanBody)
    plan = planned((identifier[0], identifier[1]), version, body)
    history = version.metadata.ancestors_of(body.end_snapshot_id or plan.snapshot_id)
    start = body.start_snapshot_id
    snapshots = islice(history, 1) if start is None else takewhile(lambda each: each.snapshot_id != start, history)
    served.check_plan(call, identifier, version, snapshots)
    plan_id = served.plans.keep(plan)
    return Answer({**_first_page(served, plan, plan_id, version), "status": "completed", "plan-id": plan_id})


def fetch_plan(served: ServedCatalog, call: Call) -> Answer:
    """A plan that an earlier request made."""
    plan_id = call.path["plan-id"]
    plan = served.plans.get(plan_id, _name(call))
    return Answer({**_first_page(served, plan, plan_id, _version(served, plan)), "status": "completed"})


def cancel_plan(served: ServedCatalog, call: Call) -> Answer:
    served.plans.drop(call.path["plan-id"], _name(call))
    return NOTHING


def fetch_tasks(served: ServedCatalog, call: Call) -> Answer:
    task = call.read(_Fetch).plan_task
    plan_id, part, row = _parsed(task)
    try:
        plan = served.plans.get(plan_id, _name(call))
    except RefusedError as error:
        raise _no_such_task(task) from error
    version = _version(served, plan)
    made = _part(served, plan, plan_id, part, version)
    if made is None or row > len(made):
        raise _no_such_task(task)
    return Answer(_page(served, plan, version, made, plan_id, part, row))


def _first_page(served: ServedCatalog, plan: StoredPlan, plan_id: str, version: MetadataVersion) -> dict[str, Any]:
    parts = count_parts(plan, version, served.catalog.storage, served.settings.limits.plan_part_files)
    number, made = 0, _part(served, plan, plan_id, 0, version)
    while made is not None and not len(made) and number + 1 < parts:
        number += 1  # nothing of these manifests matches
        made = _part(served, plan, plan_id, number, version)
    if made is None:
        return {"file-scan-tasks": [], "delete-files": [], "plan-tasks": []}
    enough = enough_files(plan, version, made)
    if enough is not None and enough <= served.settings.limits.plan_page_files:
        return {**tasks_json(made, 0, enough, stats_fields(plan, version)), "plan-tasks": []}
    page = _page(served, plan, version, made, plan_id, number, 0)
    page["plan-tasks"] += [_task(plan_id, part, 0) for part in range(number + 1, parts)]
    return page


def _page(
    served: ServedCatalog, plan: StoredPlan, version: MetadataVersion, made: ScanPlan, plan_id: str, part: int, row: int
) -> dict[str, Any]:
    size = served.settings.limits.plan_page_files
    page = tasks_json(made, row, size, stats_fields(plan, version), left_to_the_client(plan, version))
    page["plan-tasks"] = [_task(plan_id, part, row + size)] if row + size < len(made) else []
    return page


def _part(
    served: ServedCatalog, plan: StoredPlan, plan_id: str, part: int, version: MetadataVersion
) -> ScanPlan | None:
    found: ScanPlan | None = served.plan_parts.get((plan_id, part))
    if found is not None:
        return found
    made = part_of(plan, part, version, served.catalog.storage, served.settings.limits.plan_part_files)
    if made is not None and len(made) > served.settings.limits.plan_page_files:  # whose next page is asked for soon
        served.plan_parts.put((plan_id, part), made)
    return made


def _version(served: ServedCatalog, plan: StoredPlan) -> MetadataVersion:
    try:
        return served.version_at(plan.location)
    except MissingFileError as error:
        raise RefusedError(404, "NoSuchPlanIdException", f"The plan's version of the table is gone. {error}") from error


def _name(call: Call) -> tuple[str, ...]:
    return tuple(part.lower() for part in call.table)


def _task(plan_id: str, part: int, row: int) -> str:
    return f"{plan_id}.{part}.{row}"


def _parsed(task: str) -> tuple[str, int, int]:
    plan_id, _, rest = task.partition(".")
    part, _, row = rest.partition(".")
    if not all(each.isascii() and each.isdigit() and len(each) < 10 for each in (part, row)):
        raise _no_such_task(task)
    return plan_id, int(part), int(row)


def _no_such_task(task: str) -> RefusedError:
    return RefusedError(
        404, "NoSuchPlanTaskException", f"There is no task {task[:80]!r} of this table (any more). Plan again."
    )
