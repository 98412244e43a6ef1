"""The changes of one table in a batch: rows that fit its columns, and the columns that it has to get for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from hms_iceberg.arrow.columns.arrow_schema import to_arrow_type
from hms_iceberg.errors import UnsupportedError
from hms_iceberg.ingest.records import Change, EventProblem, Operation, Part, Record, place_of
from hms_iceberg.ingest.values.fitting import Fit, fit
from hms_iceberg.ingest.values.growth import type_of_value, widened
from hms_iceberg.ingest.values.source_types import UNTYPED, SourceType
from hms_iceberg.metastore import Identifier
from hms_iceberg.spec.data_types import IcebergType, NestedField
from hms_iceberg.spec.schema import Schema, assign_fresh_ids

_DOES_NOT_FIT = (ValueError, TypeError, ArithmeticError, RecursionError)


@dataclass(frozen=True)
class Rules:
    """How events become rows, for all tables alike."""

    # the columns that identify a row; if none are given, the table's identifier fields, or those of the key of its
    # first event
    keys: tuple[str, ...] = ()
    evolve: bool = False  # whether columns are added and widened as events need them
    # nanoseconds of one unit of numbers in columns of times, for events without a schema; None refuses such numbers
    time_unit: int | None = None


class TableRows:
    """Collects the changes of one table, in their order."""

    def __init__(self, identifier: Identifier, schema: Schema, format_version: int, rules: Rules) -> None:
        self.identifier = identifier
        self.keys = rules.keys or tuple(sorted(schema.identifier_field_names()))
        self._rules = rules
        self._schema = schema
        self._format_version = format_version
        self._types: dict[str, IcebergType] = {each.name: each.field_type for each in schema.fields}
        self._required = {each.name for each in schema.fields if each.required}
        self._fits: dict[int, tuple[object, dict[str, Fit]]] = {}
        self._rows: list[dict[str, Any]] = []
        self._operations: list[str] = []
        self._places: list[tuple[str, int, int]] = []

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def schema(self) -> Schema:
        """The table's columns, for which the rows are made."""
        return self._schema

    @property
    def operation_column(self) -> str:
        """The column of `arrow` that says what happens: `upsert` or `delete`. No column of the table has its name."""
        name = "_operation"
        while name in self._types:
            name += "_"
        return name

    def place(self, row: int) -> str:
        """Where the event of a row is."""
        return place_of(*self._places[row])

    def add(self, change: Change, record: Record) -> None:
        """Takes a change of a row, by an event; an EventProblem if it does not fit, and nothing was taken."""
        if not self.keys and change.key.values:
            self.keys = tuple(change.key.values)
        if not self.keys and change.operation is not Operation.INSERT:
            raise EventProblem(
                f"it needs a key to {change.operation.value} a row of table {'.'.join(self.identifier)}: the table has "
                "no identifier fields, the event's key has no fields, and --key was not given"
            )
        is_tombstone = change.operation is Operation.TOMBSTONE
        is_delete = is_tombstone or change.operation is Operation.DELETE
        if is_delete:
            key = self._key_of(change, {})
            if is_tombstone and self._operations[-1:] == ["delete"] and self._rows[-1] == key:
                return
            self._rows.append(key)
        else:
            row = self._fitted(change.row)
            row.update(self._key_of(change, row))
            for name in self._required:
                if row.get(name) is None:
                    raise EventProblem(f"its column {name!r} is null, and the table requires a value")
            self._rows.append(row)
        self._operations.append("delete" if is_delete else "upsert")
        self._places.append((record.topic, record.partition, record.offset))

    # ------------------------------------------------------------------------------------------------- rows

    def _fitted(self, part: Part) -> dict[str, Any]:
        fits = self._fits_of(part.types)
        row: dict[str, Any] = {}
        for name, value in part.values.items():
            if value is None:
                continue
            make = fits.get(name)
            if make is None:
                self._grow(name, type_of_value(value) if part.types is None else None)
                make = self._fits_of(part.types)[name]
            try:
                row[name] = make(value)
            except _DOES_NOT_FIT as error:
                row[name] = self._in_wider(name, value, part.types is None, error)
        return row

    def _in_wider(self, name: str, value: Any, is_untyped: bool, why: Exception) -> Any:
        """A value that does not fit its column, in a wider one if there may be one."""
        try:
            wider = widened(self._types[name], type_of_value(value), self._format_version)
            if is_untyped and self._rules.evolve and wider != self._types[name]:
                assert wider is not None
                self._set(name, wider)
                return self._fits_of(None)[name](value)
        except _DOES_NOT_FIT as error:
            why = error
        raise EventProblem(f"its column {name!r} does not fit: {why}") from why

    def _key_of(self, change: Change, row: Mapping[str, Any]) -> dict[str, Any]:
        """The key columns of a row, from the row or else from the event's key."""
        key: dict[str, Any] = {}
        for name in self.keys:
            if row.get(name) is not None:
                key[name] = row[name]
                continue
            for part in (change.row, change.key):
                value = part.values.get(name)
                if value is not None:
                    key[name] = self._fitted(Part({name: value}, part.types))[name]
                    break
            else:
                raise EventProblem(f"its key column {name!r} is missing, or null")
        return key

    def _fits_of(self, types: Mapping[str, SourceType] | None) -> dict[str, Fit]:
        known = self._fits.get(id(types))
        if known is None:
            if types is not None and self._rules.evolve:
                self._widen(types)
            kinds: Mapping[str, SourceType] = types or {}
            unit = self._rules.time_unit
            made = {name: fit(kind, kinds.get(name, UNTYPED), unit) for name, kind in self._types.items()}
            known = self._fits[id(types)] = (
                types,
                made,
            )  # the types are kept, as their id is only theirs while they are
        return known[1]

    # ---------------------------------------------------------------------------------------------- growth

    def _widen(self, types: Mapping[str, SourceType]) -> None:
        for name, kind in types.items():
            wider = widened(self._types.get(name), kind.column, self._format_version)
            if wider is not None and wider != self._types.get(name):
                self._set(name, wider)

    def _grow(self, name: str, kind: IcebergType | None) -> None:
        if not self._rules.evolve:
            raise EventProblem(
                f"table {'.'.join(self.identifier)} has no column {name!r}: add it, or let --evolve do so"
            )
        if kind is None:
            raise EventProblem(f"its column {name!r} has values of a type that no column can be made for")
        self._set(name, kind)

    def _set(self, name: str, kind: IcebergType) -> None:
        self._types[name] = kind
        self._fits.clear()

    @property
    def grown(self) -> Schema | None:
        """The columns that the table has to get, or get wider, to be united with its own; None if there are none."""
        before = {each.name: each.field_type for each in self._schema.fields}
        new = [
            NestedField(number, name, kind, required=name in self._required)
            for number, (name, kind) in enumerate(self._types.items(), 1)
            if before.get(name) != kind
        ]
        return assign_fresh_ids(Schema(*new)) if new else None

    def arrow(self, with_operations: bool = True) -> pa.Table:
        """The rows, in the order of their events; a delete has values in its key columns only."""
        columns = {
            name: pa.array([row.get(name) for row in self._rows], arrow_type(kind))
            for name, kind in self._types.items()
        }
        if with_operations:
            columns[self.operation_column] = pa.array(self._operations, pa.string())
        return pa.table(columns)


def arrow_type(kind: IcebergType) -> pa.DataType:
    """The Arrow type for a column's values; UnsupportedError if there is none."""
    made = to_arrow_type(kind, field_ids=False)
    if made is None:
        raise UnsupportedError(f"Columns of type {kind} cannot be filled from events.")
    return made


def created_schema(change: Change, keys: Sequence[str]) -> Schema:
    """The columns of a table for the rows of an event, and others like it; an EventProblem if it does not tell them."""
    types: dict[str, IcebergType | None] = {}
    for part in (change.key, change.row):
        if part.types is None:
            types |= {name: type_of_value(value) for name, value in part.values.items()}
        else:
            types |= {name: kind.column for name, kind in part.types.items()}
    if change.operation is Operation.DELETE and change.row.types is None:
        raise EventProblem("its table does not exist, and a delete without a schema does not tell its columns")
    names = set(keys or change.key.values)
    fields = [
        NestedField(number, name, kind, required=name in names)
        for number, (name, kind) in enumerate(((n, k) for n, k in types.items() if k is not None), 1)
    ]
    missing = names - {each.name for each in fields}
    if not fields or missing:
        raise EventProblem(f"its table does not exist, and it does not tell the columns {sorted(missing) or 'of it'}")
    fresh = assign_fresh_ids(Schema(*fields)).fields
    return Schema(*fresh, identifier_field_ids=[each.field_id for each in fresh if each.name in names])
