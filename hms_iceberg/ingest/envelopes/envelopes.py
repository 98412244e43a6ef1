"""Envelopes of events, which say how a row changes: Debezium's, or none, so that a value is the row itself.

Source: Debezium's documentation, "Data change events".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from hms_iceberg.errors import InvalidInputError
from hms_iceberg.ingest.envelopes.decoding import AvroDecoder, Decoded, Decoder, JsonDecoder
from hms_iceberg.ingest.envelopes.schema_registry import avro_schemas
from hms_iceberg.ingest.records import Change, EventProblem, Operation, Part, Record
from hms_iceberg.ingest.values.source_types import UNTYPED

Envelope = Callable[[Record], Change | None]
"""What an event does; None if it stands for nothing. Raises EventProblem if it is no change."""

FORMATS = ("debezium-json", "debezium-avro", "json", "avro")
_NOTHING = Part(MappingProxyType({}))

# What PostgreSQL's connector writes in place of a large value that an update did not change, also as bytes in Base64.
_UNAVAILABLE = (
    "__debezium_unavailable_value",
    "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==",
    b"__debezium_unavailable_value",
)

_DEBEZIUM_OPERATIONS: Mapping[str, Operation] = MappingProxyType(
    {
        "c": Operation.INSERT,
        "r": Operation.INSERT,
        "u": Operation.UPSERT,
        "d": Operation.DELETE,
        "t": Operation.TRUNCATE,
    }
)
_OPERATIONS: Mapping[str, Operation] = MappingProxyType(
    {
        **_DEBEZIUM_OPERATIONS,
        "i": Operation.INSERT,
        "insert": Operation.INSERT,
        "create": Operation.INSERT,
        "read": Operation.INSERT,
        "update": Operation.UPSERT,
        "upsert": Operation.UPSERT,
        "delete": Operation.DELETE,
        "truncate": Operation.TRUNCATE,
    }
)


def envelope_of(kind: str, registry: Mapping[str, str], operation_column: str | None) -> Envelope:
    """The envelope of a format of `FORMATS`; `registry` are settings of the schema registry, for Avro,
    `operation_column` is the field of a plain value that says what happens to its row."""
    if kind not in FORMATS:
        raise InvalidInputError(f"Format {kind!r} is unknown; there are {', '.join(FORMATS)}.")
    if operation_column is not None and kind.startswith("debezium"):
        raise InvalidInputError("Debezium's events say what they do: an operation column is of plain values.")
    if kind.endswith("avro") and not registry.get("url"):
        raise InvalidInputError(f"Format {kind} needs the URL of a schema registry.")
    decoder: Decoder = AvroDecoder(avro_schemas(registry)) if kind.endswith("avro") else JsonDecoder()
    return Debezium(decoder) if kind.startswith("debezium") else Plain(decoder, operation_column)


@dataclass(frozen=True)
class Debezium:
    """Debezium's events: `op`, and the row `before` and `after`; and the tombstones behind deletes."""

    decoder: Decoder

    def __call__(self, record: Record) -> Change | None:
        if record.value is None:
            gone = _key_of(record, self.decoder)
            return Change(Operation.TOMBSTONE, gone, gone, gone.values) if gone.values else None
        found = self.decoder(record.value)
        if not isinstance(found.value, dict) or not isinstance(found.value.get("op"), str):
            raise EventProblem("it is no event of Debezium: it has no field 'op'")
        letter = found.value["op"]
        operation = _DEBEZIUM_OPERATIONS.get(letter)
        if operation is None:
            raise EventProblem(f"its operation {letter!r} is unknown; there are c, r, u, d and t")
        if operation is Operation.TRUNCATE:
            return Change(operation, _NOTHING, _NOTHING, found.value)
        place = "before" if operation is Operation.DELETE else "after"
        row, key = _struct(found, place), _key_of(record, self.decoder)
        if row is None and (operation is not Operation.DELETE or not key.values):
            raise EventProblem(f"its field {place!r} is no row, as operation {letter!r} needs")
        if operation is not Operation.DELETE and row is not None:
            _refuse_unavailable(row)
        return Change(operation, row or key, key, found.value)


@dataclass(frozen=True)
class Plain:
    """Values that are rows. A value that is null deletes the row of its key, as compacted topics have it."""

    decoder: Decoder
    operation_column: str | None = None

    def __call__(self, record: Record) -> Change | None:
        key = _key_of(record, self.decoder)
        if record.value is None:
            if not key.values:
                raise EventProblem("it has no value, and its key has no fields that would name a row to delete")
            return Change(Operation.DELETE, key, key, key.values)
        found = self.decoder(record.value)
        if not isinstance(found.value, dict):
            raise EventProblem(f"it is no row, but {type(found.value).__name__}: a value with fields is needed")
        row, operation = Part(found.value, found.kind.fields), Operation.INSERT
        if self.operation_column is not None:
            operation = self._operation(found.value)
            row = Part({each: value for each, value in found.value.items() if each != self.operation_column}, row.types)
        return Change(operation, row, key, found.value)

    def _operation(self, value: Mapping[str, Any]) -> Operation:
        told = value.get(self.operation_column or "")
        operation = _OPERATIONS.get(told.lower()) if isinstance(told, str) else None
        if operation is None:
            raise EventProblem(
                f"its operation {told!r} (field {self.operation_column!r}) is unknown; there are "
                f"{', '.join(_OPERATIONS)}"
            )
        return operation


def _struct(found: Decoded, name: str) -> Part | None:
    """A field that is a struct, with its types; None if it is null, or none."""
    value = found.value.get(name)
    if not isinstance(value, dict):
        return None
    kind = (found.kind.fields or {}).get(name, UNTYPED)
    return Part(value, kind.fields)


def _key_of(record: Record, decoder: Decoder) -> Part:
    """The fields of an event's key; none if it is no struct, or is nothing that its decoder knows."""
    if not record.key:
        return _NOTHING
    try:
        found = decoder(record.key)
    except EventProblem:  # a key may be any bytes; whether it is needed, is not known here
        return _NOTHING
    return Part(found.value, found.kind.fields) if isinstance(found.value, dict) else _NOTHING


def _refuse_unavailable(row: Part) -> None:
    for name, value in row.values.items():
        if isinstance(value, (str, bytes)) and value in _UNAVAILABLE:
            raise EventProblem(
                f"its column {name!r} has a value that Debezium left out, as the update did not change it; have the "
                "source table send whole rows (PostgreSQL: replica identity full)"
            )
