"""Every question of the bridge that defines something, by its name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from hms_iceberg.spark.ddl.alter import AlterTable, alter_table
from hms_iceberg.spark.ddl.definition import DefineTable
from hms_iceberg.spark.ddl.namespace_changes import (
    AlterNamespace,
    CreateNamespace,
    DropNamespace,
    alter_namespace,
    create_namespace,
    drop_namespace,
)
from hms_iceberg.spark.ddl.staging import StagedTable, StageTable, abort_staged, commit_staged, stage_table
from hms_iceberg.spark.ddl.table_changes import DropTable, RenameTable, create_table, drop_table, rename_table
from hms_iceberg.spark.ddl.view_changes import (
    AlterView,
    CreateView,
    DropView,
    RenameView,
    alter_view,
    create_view,
    drop_view,
    rename_view,
)
from hms_iceberg.spark.targets import Targets
from hms_iceberg.storage import Storage

_ANSWERS: Mapping[str, tuple[type, Callable[[Any, Targets], dict[str, Any]]]] = {
    "create-table": (DefineTable, create_table),
    "drop-table": (DropTable, drop_table),
    "rename-table": (RenameTable, rename_table),
    "create-view": (CreateView, create_view),
    "alter-view": (AlterView, alter_view),
    "drop-view": (DropView, drop_view),
    "rename-view": (RenameView, rename_view),
    "create-namespace": (CreateNamespace, create_namespace),
    "alter-namespace": (AlterNamespace, alter_namespace),
    "drop-namespace": (DropNamespace, drop_namespace),
    "stage-table": (StageTable, stage_table),
    "commit-staged": (StagedTable, commit_staged),
    "abort-staged": (StagedTable, abort_staged),
}


def answered(asked: Mapping[str, Any], targets: Targets, storage: Storage) -> dict[str, Any] | None:
    """The answer to a question that defines something; None if it is another kind of question."""
    call = asked["call"]
    if call in _ANSWERS:
        kind, answer = _ANSWERS[call]
        return answer(msgspec.convert(asked, kind), targets)
    if call == "alter-table":
        return alter_table(msgspec.convert(asked, AlterTable), asked, targets, storage)
    return None
