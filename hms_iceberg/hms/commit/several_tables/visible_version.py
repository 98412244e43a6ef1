"""The version that a reader sees of a row that a transaction on several tables has moved."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Protocol

from hms_iceberg.encryption.encrypted_tables import METADATA_HASH
from hms_iceberg.hms.commit.several_tables.rules import RowState, row_state_of, shows_base
from hms_iceberg.hms.rows.table_rows import METADATA_LOCATION, PREVIOUS_METADATA_LOCATION
from hms_iceberg.hms.rows.transaction_marks import Mark
from hms_iceberg.metastore import Identifier, TablePointer
from hms_iceberg.storage import Storage
from hms_iceberg.transaction.intents import IntendedTable
from hms_iceberg.transaction.workspace import read_version


class Histories(Protocol):
    """Reads what metadata files tell of those before them."""

    def __call__(self, location: str) -> Collection[str]:
        """The locations in the metadata log of the file at a location."""
        ...


class Parameters(Protocol):
    """Reads rows of a metastore."""

    def __call__(self, identifier: Identifier) -> Mapping[str, str] | None:
        """The parameters of the row of a name; None if there is none."""
        ...


def histories(storage: Storage | None) -> Histories:
    """Reads metadata logs of files in a storage; none without one."""

    def read(location: str) -> tuple[str, ...]:
        return () if storage is None else read_version(location, storage).previous

    return read


def row_state_in(
    parameters: Mapping[str, str] | None, transaction: str, table: IntendedTable, histories: Histories
) -> RowState:
    """How far a row with these parameters has come; None is no row."""
    if parameters is None or METADATA_LOCATION not in parameters:
        return RowState.GONE
    if table.uuid and parameters.get("uuid", table.uuid) != table.uuid:
        return RowState.GONE
    location, mark = parameters[METADATA_LOCATION], Mark.of(parameters)
    return row_state_of(
        table.base,
        table.new,
        location,
        parameters.get(PREVIOUS_METADATA_LOCATION, ""),
        mark is not None and mark.transaction == transaction,
        lambda: histories(location),
    )


def seen_pointer(pointer: TablePointer, read: Parameters, histories: Histories) -> TablePointer:
    """The pointer that a reader follows: to the table's base while the transaction that moved it is not committed.
    `pointer` is that of a row, with its parameters."""
    mark = Mark.of(pointer.properties)
    if mark is None or mark.decides_itself:
        return pointer
    own = row_state_of(mark.base, mark.new, pointer.metadata_location, "", True, tuple)
    last = mark.intent_for(pointer.identifier).tables[-1]
    deciding = row_state_in(read(mark.decides), mark.transaction, last, histories)
    return _at_base(pointer, mark) if shows_base(own, deciding) else pointer


def _at_base(pointer: TablePointer, mark: Mark) -> TablePointer:
    properties = {**pointer.properties, METADATA_LOCATION: mark.base, METADATA_HASH: mark.base_hash}
    properties.pop(PREVIOUS_METADATA_LOCATION, None)
    if not mark.base_hash:
        del properties[METADATA_HASH]
    return replace(pointer, metadata_location=mark.base, properties=properties)
