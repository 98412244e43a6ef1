"""Procedures that move main to another snapshot, publish staged changes, and show the history."""

from __future__ import annotations

from collections.abc import Iterator

from hms_iceberg.errors import InvalidInputError, NoSuchRefError, NoSuchSnapshotError
from hms_iceberg.spark.procedures.procedure import TABLE, Call, Column, Parameter, Procedure, Row
from hms_iceberg.spec.snapshots_and_refs import MAIN_BRANCH


def _moved(previous_is_null: bool = False) -> tuple[Column, ...]:
    previous = Column("previous_snapshot_id", "bigint", nullable=previous_is_null)
    return previous, Column("current_snapshot_id", "bigint", nullable=False)


def _rollback_to_snapshot(call: Call) -> list[Row]:
    table = call.table()
    snapshot_id = call.required("snapshot_id")
    previous = table.metadata.current_snapshot_id
    table.manage_snapshots().rollback_to_snapshot(snapshot_id).commit()
    return [(previous, snapshot_id)]


def _rollback_to_timestamp(call: Call) -> list[Row]:
    call.required("timestamp")
    time = call.milliseconds("timestamp")
    assert time is not None
    table = call.table()
    previous = table.metadata.current_snapshot_id
    table.manage_snapshots().rollback_to_timestamp(time).commit()
    return [(previous, table.metadata.current_snapshot_id)]


def _set_current_snapshot(call: Call) -> list[Row]:
    snapshot_id, ref = call.get("snapshot_id"), call.get("ref")
    if (snapshot_id is None) == (ref is None):
        raise InvalidInputError("Either snapshot_id or ref must be provided, not both.")
    table = call.table()
    if ref is not None:
        if ref not in table.metadata.refs:
            raise NoSuchRefError(
                f"Cannot find matching snapshot ID for ref {ref} of table {'.'.join(call.identifier)}; its refs "
                f"are {', '.join(sorted(table.metadata.refs)) or 'none'}."
            )
        snapshot_id = table.metadata.refs[ref].snapshot_id
    previous = table.metadata.current_snapshot_id
    table.manage_snapshots().set_current_snapshot(snapshot_id).commit()
    return [(previous, snapshot_id)]


def _ancestors_of(call: Call) -> Iterator[Row]:
    metadata = call.table().metadata
    snapshot_id = call.get("snapshot_id", metadata.current_snapshot_id)
    if snapshot_id is not None and metadata.snapshot_by_id(snapshot_id) is None:
        raise NoSuchSnapshotError(
            f"Cannot find snapshot {snapshot_id} of the table {'.'.join(call.identifier)}: it never had it, or it has "
            "expired. Its metadata table `snapshots` lists those that it has."
        )
    for snapshot in metadata.ancestors_of(snapshot_id):
        yield snapshot.snapshot_id, snapshot.timestamp_ms


def _applied_offsets(call: Call) -> list[Row]:
    name, branch = call.required("name"), call.get("branch", MAIN_BRANCH)
    return [*sorted(call.table().applied_offsets(name, branch).items())]


ROLLBACK_TO_SNAPSHOT = Procedure(
    "rollback_to_snapshot", (TABLE, Parameter("snapshot_id", "bigint", required=True)), _moved(), _rollback_to_snapshot
)
ROLLBACK_TO_TIMESTAMP = Procedure(
    "rollback_to_timestamp",
    (TABLE, Parameter("timestamp", "timestamp", required=True)),
    _moved(),
    _rollback_to_timestamp,
)
SET_CURRENT_SNAPSHOT = Procedure(
    "set_current_snapshot",
    (TABLE, Parameter("snapshot_id", "bigint"), Parameter("ref", "string")),
    _moved(previous_is_null=True),
    _set_current_snapshot,
)
ANCESTORS_OF = Procedure(
    "ancestors_of",
    (TABLE, Parameter("snapshot_id", "bigint")),
    (Column("snapshot_id", "bigint"), Column("timestamp", "bigint")),
    _ancestors_of,
    only_reads=True,
)

APPLIED_OFFSETS = Procedure(
    "applied_offsets",
    (TABLE, Parameter("name", "string", required=True), Parameter("branch", "string")),
    (Column("part", "string", nullable=False), Column("next_offset", "bigint", nullable=False)),
    _applied_offsets,
    only_reads=True,
)

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
