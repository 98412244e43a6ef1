"""What must hold for a change: the requirements of a request, checked on the version that it is applied to.

Source: Iceberg's REST protocol, `TableRequirement` and `ViewRequirement`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hms_iceberg.errors import CommitConflictError, InvalidInputError
from hms_iceberg.spec.changes.reading import read_by_kind
from hms_iceberg.spec.json_model import JsonObject
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.views.view_metadata import ViewMetadata

ASSERT_CREATE = "assert-create"

TableRequirement = Callable[[TableMetadata], None]
ViewRequirement = Callable[[ViewMetadata], None]


def read_table_requirements(data: Any) -> tuple[bool, tuple[TableRequirement, ...]]:
    """Whether the table must not exist, and what else must hold.

    Raises:
        InvalidInputError: a requirement cannot be read, or a new table has further ones.
    """
    read = read_by_kind(data, "requirement", "type", _TABLE)
    creates = any(kind == ASSERT_CREATE for kind, _ in read)
    others = [kind for kind, _ in read if kind != ASSERT_CREATE]
    if creates and others:
        raise InvalidInputError(f"A table that must not exist cannot have the requirements {', '.join(others)}.")
    return creates, tuple(requirement for kind, requirement in read if kind != ASSERT_CREATE)


def read_view_requirements(data: Any) -> tuple[ViewRequirement, ...]:
    """What must hold of a view.

    Raises:
        InvalidInputError: a requirement cannot be read.
    """
    return tuple(requirement for _, requirement in read_by_kind(data, "requirement", "type", _VIEW))


def check_all(requirements: Sequence[TableRequirement], metadata: TableMetadata) -> None:
    """Raises CommitConflictError if one of them does not hold."""
    for requirement in requirements:
        requirement(metadata)


def _same(what: str, expected: object, found: object, where: str) -> None:
    """The words are those of Apache Iceberg's server: programs look for them."""
    if expected != found:
        raise CommitConflictError(
            f"Requirement failed: {what}: expected {expected} != {found}. Load the table or view at {where} again, and "
            "repeat the change on it."
        )


def _number(what: str, key: str, found: Callable[[TableMetadata], int]) -> Callable[[JsonObject], TableRequirement]:
    def read(body: JsonObject) -> TableRequirement:
        expected = body.integer(key)
        return lambda metadata: _same(f"{what} changed", expected, found(metadata), metadata.location)

    return read


def _table_uuid(body: JsonObject) -> TableRequirement:
    expected = body.text("uuid").lower()
    return lambda metadata: _same(
        "UUID does not match", expected, (metadata.table_uuid or "").lower(), metadata.location
    )


def _view_uuid(body: JsonObject) -> ViewRequirement:
    expected = body.text("uuid").lower()
    return lambda metadata: _same("view UUID does not match", expected, metadata.view_uuid.lower(), metadata.location)


def _ref(body: JsonObject) -> TableRequirement:
    name, expected = body.text("ref"), body.integer_or_none("snapshot-id")

    def check(metadata: TableMetadata) -> None:
        ref = metadata.refs.get(name)
        found = None if ref is None else ref.snapshot_id
        _same(f"{'tag' if ref and ref.is_tag else 'branch'} {name} has changed", expected, found, metadata.location)

    return check


_TABLE: dict[str, Callable[[JsonObject], TableRequirement]] = {
    ASSERT_CREATE: lambda body: lambda metadata: None,
    "assert-table-uuid": _table_uuid,
    "assert-ref-snapshot-id": _ref,
    "assert-last-assigned-field-id": _number(
        "last assigned field id", "last-assigned-field-id", lambda metadata: metadata.last_column_id
    ),
    "assert-current-schema-id": _number(
        "current schema", "current-schema-id", lambda metadata: metadata.current_schema_id
    ),
    "assert-last-assigned-partition-id": _number(
        "last assigned partition id", "last-assigned-partition-id", lambda metadata: metadata.last_partition_id
    ),
    "assert-default-spec-id": _number(
        "default partition spec", "default-spec-id", lambda metadata: metadata.default_spec_id
    ),
    "assert-default-sort-order-id": _number(
        "default sort order", "default-sort-order-id", lambda metadata: metadata.default_sort_order_id
    ),
}

_VIEW: dict[str, Callable[[JsonObject], ViewRequirement]] = {"assert-view-uuid": _view_uuid}
