"""Making snapshots that are staged, or on another branch, part of a branch."""

from __future__ import annotations

from hms_iceberg.errors import InvalidInputError
from hms_iceberg.spark.procedures.procedure import TABLE, Call, Column, Parameter, Procedure, Row

_STAGED_WAP_ID = "wap.id"
_PUBLISHED = (
    Column("source_snapshot_id", "bigint", nullable=False),
    Column("current_snapshot_id", "bigint", nullable=False),
)


def _cherrypick(call: Call, snapshot_id: int) -> list[Row]:
    table = call.table()
    table.manage_snapshots().cherrypick(snapshot_id).commit()
    return [(snapshot_id, table.metadata.current_snapshot_id)]


def _cherrypick_snapshot(call: Call) -> list[Row]:
    return _cherrypick(call, call.required("snapshot_id"))


def _publish_changes(call: Call) -> list[Row]:
    wap_id = call.required("wap_id")
    snapshots = call.table().metadata.snapshots
    staged = [each.snapshot_id for each in snapshots if each.summary and each.summary.get(_STAGED_WAP_ID) == wap_id]
    name = ".".join(call.identifier)
    if not staged:
        raise InvalidInputError(
            f"Cannot apply unknown WAP ID '{wap_id}': no snapshot of table {name} was staged by it."
        )
    if len(staged) > 1:
        raise InvalidInputError(
            f"Cannot apply non-unique WAP ID. Found multiple snapshots with WAP ID '{wap_id}' in table {name}: "
            f"{', '.join(map(str, staged))}. Use cherrypick_snapshot for one of them."
        )
    return _cherrypick(call, staged[0])


def _fast_forward(call: Call) -> list[Row]:
    branch, to = call.required("branch"), call.required("to")
    table = call.table()
    ref = table.metadata.refs.get(branch)
    table.manage_snapshots().fast_forward_branch(branch, to).commit()
    return [(branch, ref.snapshot_id if ref else None, table.metadata.refs[branch].snapshot_id)]


CHERRYPICK_SNAPSHOT = Procedure(
    "cherrypick_snapshot",
    (TABLE, Parameter("snapshot_id", "bigint", required=True)),
    _PUBLISHED,
    _cherrypick_snapshot,
)
PUBLISH_CHANGES = Procedure(
    "publish_changes", (TABLE, Parameter("wap_id", "string", required=True)), _PUBLISHED, _publish_changes
)
FAST_FORWARD = Procedure(
    "fast_forward",
    (TABLE, Parameter("branch", "string", required=True), Parameter("to", "string", required=True)),
    (
        Column("branch_updated", "string", nullable=False),
        Column("previous_ref", "bigint"),
        Column("updated_ref", "bigint", nullable=False),
    ),
    _fast_forward,
)
