"""Requirements of a commit by the REST protocol: read from JSON, checked against a table or view.

Source: Iceberg's REST protocol, `TableRequirement` and `ViewRequirement`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from hms_iceberg.errors import CommitConflictError, CorruptFileError, InvalidInputError
from hms_iceberg.spec.json_model import JsonObject
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.metadata.view_metadata import ViewMetadata

T = TypeVar("T")


def read_by_kind(
    data: Any, what: str, member: str, kinds: Mapping[str, Callable[[JsonObject], T]]
) -> list[tuple[str, T]]:
    """Reads JSON objects, each by the reader of its kind, which `member` names, as pairs of kind and value."""
    if not isinstance(data, Sequence) or isinstance(data, str):
        raise InvalidInputError(f"Cannot read the {what}s of the request: expected a list, got {str(data)[:200]}.")
    read = []
    for each in data:
        try:
            body = JsonObject(each, f"the {what}")
            kind = body.text(member)
            body.what = f"{what} {kind!r}"
            if kind not in kinds:
                raise InvalidInputError(f"Unknown {what} {kind!r}: expected one of {', '.join(kinds)}.")
            read.append((kind, kinds[kind](body)))
        except CorruptFileError as error:
            raise InvalidInputError(f"Cannot read a {what} of the request: {error}.") from error
    return read


def integers(body: JsonObject, key: str) -> list[int]:
    values = body.sequence(key)
    if not all(isinstance(each, int) and not isinstance(each, bool) for each in values):
        raise InvalidInputError(f"{key!r} of {body.what}: expected numbers, got {str(values)[:200]}.")
    return values


def texts(body: JsonObject, *keys: str) -> list[str]:
    """A list of texts, under the first of some names that is there."""
    values = body.sequence(next((key for key in keys if body.has(key)), keys[0]))
    if not all(isinstance(each, str) for each in values):
        raise InvalidInputError(f"{keys[0]!r} of {body.what}: expected texts, got {str(values)[:200]}.")
    return values


def text_map(body: JsonObject, *keys: str) -> dict[str, str]:
    """An object from text to text, under the first of some names that is there."""
    for key in keys:
        found = body.text_map_or_none(key)
        if found is not None:
            return found
    body.text(keys[0])  # raises, as it is missing
    raise AssertionError


ASSERT_CREATE = "assert-create"

TableRequirement = Callable[[TableMetadata], None]
ViewRequirement = Callable[[ViewMetadata], None]


def read_table_requirements(data: Any) -> tuple[bool, tuple[TableRequirement, ...]]:
    """Whether the table must not exist, and what else must hold."""
    read = read_by_kind(data, "requirement", "type", _TABLE)
    creates = any(kind == ASSERT_CREATE for kind, _ in read)
    others = [kind for kind, _ in read if kind != ASSERT_CREATE]
    if creates and others:
        raise InvalidInputError(f"A table that must not exist cannot have the requirements {', '.join(others)}.")
    return creates, tuple(requirement for kind, requirement in read if kind != ASSERT_CREATE)


def read_view_requirements(data: Any) -> tuple[ViewRequirement, ...]:
    return tuple(requirement for _, requirement in read_by_kind(data, "requirement", "type", _VIEW))


def check_all(requirements: Sequence[TableRequirement], metadata: TableMetadata) -> None:
    """Raises CommitConflictError if a requirement does not hold."""
    for requirement in requirements:
        requirement(metadata)


def _same(what: str, expected: object, found: object, where: str) -> None:
    """Refuses another value than required, in the words of Apache Iceberg's server, which programs look for."""
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
