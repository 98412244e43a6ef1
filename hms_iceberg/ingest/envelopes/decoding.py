"""Bytes of keys and values, decoded: JSON with or without a schema of Kafka Connect, and Avro of a schema registry."""

from __future__ import annotations

import io
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Protocol

import fastavro
import msgspec

from hms_iceberg.bounded_cache import BoundedCache
from hms_iceberg.ingest.envelopes.schema_registry import AvroSchemas
from hms_iceberg.ingest.records import EventProblem
from hms_iceberg.ingest.values.avro_types import avro_type, without_logical_types
from hms_iceberg.ingest.values.connect_types import connect_type
from hms_iceberg.ingest.values.source_types import UNTYPED, SourceType

# Confluent's framing: a zero, and the schema's number.
_FRAME = struct.Struct(">bI")
_SCHEMAS_KEPT = 1_000


class Decoded(msgspec.Struct, frozen=True):
    """A key or a value, and its type, `UNTYPED` if only the values tell."""

    value: Any
    kind: SourceType


class Decoder(Protocol):
    """Decodes keys and values; raises EventProblem for what it cannot."""

    def __call__(self, data: bytes) -> Decoded: ...


class _Wrapped(msgspec.Struct):
    """JSON that carries its schema; both are absent in other JSON."""

    schema: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    payload: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class JsonDecoder:
    """Decodes JSON; numbers with a fraction become decimals, so that none of their digits is lost."""

    def __init__(self) -> None:
        self._wrapped = msgspec.json.Decoder(_Wrapped)
        self._plain = msgspec.json.Decoder(float_hook=Decimal)
        self._types: BoundedCache[SourceType] = BoundedCache(_SCHEMAS_KEPT)

    def __call__(self, data: bytes) -> Decoded:
        """The value, with its type if it carries its schema."""
        if len(data) > _FRAME.size and data[0] == 0:  # JSON of a schema registry
            data = data[_FRAME.size :]
        try:
            if data.lstrip()[:1] == b"{" and b'"payload"' in data and b'"schema"' in data:
                found = self._wrapped.decode(data)
                if isinstance(found.schema, msgspec.Raw) and isinstance(found.payload, msgspec.Raw):
                    kind = self._type(bytes(found.schema))
                    if kind is not None:
                        return Decoded(self._plain.decode(found.payload), kind)
            return Decoded(self._plain.decode(data), UNTYPED)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise EventProblem(f"it is no JSON: {error}") from error

    def _type(self, schema: bytes) -> SourceType | None:
        """The type that a schema describes; None if it is no schema, but a column of that name."""
        known = self._types.get(schema)
        if known is None:
            parsed = self._plain.decode(schema)
            if parsed is None:
                return UNTYPED
            if not isinstance(parsed, dict) or "type" not in parsed:
                return None
            try:
                known = connect_type(parsed)
            except (ValueError, KeyError, TypeError) as error:
                raise EventProblem(f"its schema is not one of Kafka Connect's: {error}") from error
            self._types.put(schema, known)
        return known


@dataclass(frozen=True)
class _AvroSchema:
    parsed: Any
    kind: SourceType


class AvroDecoder:
    """Decodes Avro by the schemas of a registry, to which each value names its own."""

    def __init__(self, schemas: AvroSchemas) -> None:
        self._registry = schemas
        self._schemas: dict[int, _AvroSchema] = {}

    def __call__(self, data: bytes) -> Decoded:
        """The value with its type."""
        if len(data) < _FRAME.size or data[0] != 0:
            raise EventProblem("it does not begin with a zero and the number of its schema, as Avro of a registry does")
        schema = self._schema(_FRAME.unpack_from(data)[1])
        stream = io.BytesIO(data)
        stream.seek(_FRAME.size)
        try:
            value = fastavro.schemaless_reader(stream, schema.parsed, None)
        except Exception as error:  # fastavro raises whatever its parts do
            raise EventProblem(f"it is not what its Avro schema says: {type(error).__name__}: {error}") from error
        if stream.read(1):
            raise EventProblem("bytes are left behind what its Avro schema describes")
        return Decoded(value, schema.kind)

    def _schema(self, number: int) -> _AvroSchema:
        known = self._schemas.get(number)
        if known is None:
            known = self._schemas[number] = _parsed(*self._registry(number))
        return known


def _parsed(text: str, references: Mapping[str, str]) -> _AvroSchema:
    """A schema parsed twice: as it is for its types, and without logical types for its values."""
    described, stored = (_parse(text, references, change) for change in (lambda each: each, without_logical_types))
    return _AvroSchema(stored[0], avro_type(*described))


def _parse(text: str, references: Mapping[str, str], change: Any) -> tuple[Any, Mapping[str, Any]]:
    named: dict[str, Any] = {}
    try:
        for each in references.values():
            fastavro.parse_schema(change(msgspec.json.decode(each)), named)
        return fastavro.parse_schema(change(msgspec.json.decode(text)), named), named
    except Exception as error:  # fastavro raises whatever its parts do
        raise EventProblem(f"the registry's schema of it is no Avro schema: {error}") from error
