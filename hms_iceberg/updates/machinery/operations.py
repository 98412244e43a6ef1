"""The operation that a snapshot names, told from what it added and removed, and isolation levels of operations.

Source: Iceberg documentation, "Configuration": `write.delete.isolation-level` and its like.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum

from hms_iceberg.expressions.tree import AlwaysFalse, BooleanExpression
from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.spec.snapshots_and_refs import Operation
from hms_iceberg.spec.table_properties import ISOLATION_LEVELS


class Isolation(str, Enum):
    """How much of what an operation read must still hold when it commits."""

    SERIALIZABLE = "serializable"
    """Nobody added or removed rows that it would have read."""
    SNAPSHOT = "snapshot"
    """Nobody deleted rows of the files that it replaces."""
    NONE = "none"
    """Nothing but that the files which it removes are still there."""


def isolation_of(properties: Mapping[str, str], operation: str) -> Isolation:
    """The level that a table sets for `delete`, `update` or `merge`.

    Raises:
        ConfigurationError: no such level.
    """
    return Isolation(ISOLATION_LEVELS[operation].of(properties))


def overwrite_operation(added: Sequence[DataFile], removed: Sequence[DataFile]) -> Operation:
    """An overwrite that only adds is an append, one that only removes a delete."""
    if added and not removed:
        return Operation.APPEND
    if removed and not added:
        return Operation.DELETE
    return Operation.OVERWRITE


def filter_operation(added: Sequence[DataFile], removed: Sequence[DataFile]) -> Operation:
    """Of an overwrite by a filter it counts what was asked for, whether or not rows matched."""
    return Operation.OVERWRITE if added else Operation.DELETE


def overwriting(row_filter: BooleanExpression | None) -> Callable[[Sequence[DataFile], Sequence[DataFile]], Operation]:
    """Which operation an overwrite was. A filter that no row can match asks for nothing, as none does."""
    asks = row_filter is not None and not isinstance(row_filter, AlwaysFalse)
    return filter_operation if asks else overwrite_operation


def row_delta_operation(added: Sequence[DataFile], removed: Sequence[DataFile]) -> Operation:
    """A row delta that only adds data is an append, one that adds no data a delete."""
    adds_data = any(file.is_data for file in added)
    adds_deletes = any(not file.is_data for file in added)
    removes_data = any(file.is_data for file in removed)
    if adds_data and not adds_deletes and not removes_data:
        return Operation.APPEND
    if not adds_data and (adds_deletes or removes_data):
        return Operation.DELETE
    return Operation.OVERWRITE


def always(operation: Operation) -> OperationOf:
    """A rule that always gives one operation, whatever was added and removed."""
    return OperationOf(operation)


class OperationOf:
    """A constant function."""

    def __init__(self, operation: Operation) -> None:
        self._operation = operation

    def __call__(self, added: Sequence[DataFile], removed: Sequence[DataFile]) -> Operation:
        return self._operation
