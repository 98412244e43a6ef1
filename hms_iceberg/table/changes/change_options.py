"""Options of a write besides what is to change, and where the change goes (write-audit-publish); rows as data files.

Source: Iceberg documentation, "Branching and tagging", "Spark configuration": `write.wap.enabled`, `wap.id`,
`wap.branch`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hms_iceberg.arrow.writing.write import ArrowInput, write_data_files
from hms_iceberg.errors import InvalidInputError
from hms_iceberg.spec.arguments import mapping
from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.snapshots_and_refs import MAIN_BRANCH
from hms_iceberg.spec.table_properties import WAP_ENABLED
from hms_iceberg.transaction.transaction import Transaction

WAP_ID, WAP_BRANCH = "wap.id", "wap.branch"


@dataclass(frozen=True)
class ChangeOptions:
    """Options of a change: branch, snapshot properties and the like.

    Args:
        snapshot_properties: keys for the snapshot's summary.
        case_sensitive: whether filters name columns in their case.
        branch: the branch to change, or that a staged snapshot is based on.
        stage_only: whether the snapshot is added without moving the branch.
    """

    snapshot_properties: Mapping[str, str] = field(default_factory=dict)
    case_sensitive: bool = True
    branch: str = MAIN_BRANCH
    stage_only: bool = False

    @classmethod
    def of(
        cls,
        metadata: TableMetadata,
        snapshot_properties: Mapping[str, str] | None,
        branch: str | None,
        case_sensitive: bool = True,
    ) -> ChangeOptions:
        """The options of a call: `branch=None` stages, as does `wap.id` in a table of `write.wap.enabled`, where
        `wap.branch` goes to that branch.

        Raises:
            InvalidInputError: the branch is no name; or either is given if the table does not allow it, or beside
                another branch.
        """
        properties = dict(mapping(snapshot_properties or {}, "snapshot_properties"))
        if branch is not None and not isinstance(branch, str):
            raise InvalidInputError(f"Branch of a change: expected its name, got {branch!r}.")
        wap_id, wap_branch = properties.get(WAP_ID), properties.pop(WAP_BRANCH, None)
        if wap_id is None and wap_branch is None:
            return cls(properties, case_sensitive, branch or MAIN_BRANCH, stage_only=branch is None)
        given = WAP_ID if wap_branch is None else WAP_BRANCH
        if not WAP_ENABLED.of(metadata.properties):
            raise _refused(
                metadata, given, f"its property {WAP_ENABLED.name} is not true. Set it, or leave {given} out"
            )
        if wap_id is not None and wap_branch is not None:
            raise _refused(metadata, WAP_ID, f"{WAP_BRANCH} is given too ({wap_branch!r}). Choose one")
        if branch != MAIN_BRANCH:
            raise _refused(metadata, given, f"the branch {branch!r} is given too. Choose one")
        return cls(properties, case_sensitive, wap_branch or MAIN_BRANCH, stage_only=wap_id is not None)

    def update_fields(self) -> dict[str, Any]:
        """The options as fields of an update."""
        properties = dict(self.snapshot_properties)
        return {"branch": self.branch, "properties": properties, "stage_only": self.stage_only}


def _refused(metadata: TableMetadata, given: str, why: str) -> InvalidInputError:
    return InvalidInputError(f"Cannot write to the table at {metadata.location} by {given}: {why}.")


def write_rows(transaction: Transaction, rows: ArrowInput, schema: Schema | None = None) -> tuple[DataFile, ...]:
    """Writes rows as data files of the transaction's table; a certain failure of the transaction deletes them.

    Args:
        transaction: what the rows become part of.
        rows: the rows.
        schema: the columns of the files; the table's current schema unless given.

    Raises:
        InvalidInputError: not Arrow data, or it does not fit the table's schema; see `write_data_files`.
    """
    return tuple(
        write_data_files(
            transaction.metadata,
            transaction.workspace.storage,
            rows,
            table=".".join(transaction.identifier),
            schema=schema,
            on_create=transaction.track,
        )
    )
