"""Values of string, uuid, fixed, binary, geometry, geography and unknown.

Source: Iceberg specification, Appendices A (Avro), B (hashes) and D (bytes, JSON).
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import Any
from uuid import UUID

import mmh3

from hms_iceberg.spec.data_types import (
    BinaryType,
    FixedType,
    GeographyType,
    GeometryType,
    IcebergType,
    StringType,
    UnknownType,
    UUIDType,
)
from hms_iceberg.spec.values.forms.form import ValueForms, parsed_text

_UUID_TEXT = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def _fixed_writer(kind: FixedType, value: Any) -> bytes:
    if len(value) != kind.length:
        raise ValueError(f"expected {kind.length} bytes, got {len(value)}")
    return bytes(value)


def _bytes_writer(kind: IcebergType, value: Any) -> bytes:
    if not isinstance(value, (bytes, bytearray, memoryview)):
        raise TypeError("expected bytes")
    return bytes(value)


def _fixed_reader(kind: FixedType, data: bytes) -> bytes:
    # Bounds may be truncated, as those of strings are.
    if len(data) > kind.length:
        raise ValueError(f"expected at most {kind.length} bytes")
    return bytes(data)


def _fixed_to_json(kind: FixedType, value: bytes) -> str:
    if len(value) != kind.length:
        raise ValueError(f"expected {kind.length} bytes, got {len(value)}")
    return value.hex().upper()


def _fixed_from_json(kind: FixedType, value: Any) -> bytes:
    data = bytes.fromhex(parsed_text(value))
    if len(data) != kind.length:
        raise ValueError(f"expected {kind.length} bytes, got {len(data)}")
    return data


def _uuid_from_json(_: IcebergType, value: Any) -> UUID:
    if not _UUID_TEXT.fullmatch(parsed_text(value)):
        raise ValueError("expected text such as 'f79c3e09-677c-4bbd-a479-3f349cb785e7'")
    return UUID(value)


def _string(_: IcebergType, value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("expected text")
    return value


def _uuid(_: IcebergType, value: Any) -> UUID:
    if isinstance(value, UUID):
        return value
    if isinstance(value, (bytes, bytearray)):
        return UUID(bytes=bytes(value))
    if not isinstance(value, str):
        raise ValueError("expected a uuid.UUID, 16 bytes or text")
    return UUID(value)


def _binary(kind: IcebergType, value: Any) -> bytes:
    if not isinstance(value, (bytes, bytearray, memoryview)):
        raise ValueError("expected bytes")
    if isinstance(kind, FixedType) and len(value) != kind.length:
        raise ValueError(f"expected {kind.length} bytes, got {len(value)}")
    return bytes(value)


def _base64(_: IcebergType, value: Any) -> str:
    return base64.b64encode(value).decode("ascii")


def _hash_bytes(_: IcebergType, value: Any) -> int:
    return int(mmh3.hash(bytes(value)))


_STRING = ValueForms(
    to_bytes=lambda _, value: value.encode("utf-8"),
    from_bytes=lambda _, data: bytes(data).decode("utf-8"),
    to_json=lambda _, value: str(value),
    from_json=lambda _, value: parsed_text(value),
    from_python=_string,
    hash=lambda _, value: int(mmh3.hash(value.encode("utf-8"))),
    avro="string",
)
_UUID_BYTES = ValueForms(
    to_bytes=lambda _, value: value.bytes,
    from_bytes=lambda _, data: UUID(bytes=bytes(data)),
    to_json=lambda _, value: str(value),
    from_json=_uuid_from_json,
    from_python=_uuid,
    hash=lambda _, value: int(mmh3.hash(value.bytes)),
    avro={"type": "fixed", "name": "uuid_fixed", "size": 16, "logicalType": "uuid"},
)
_FIXED = ValueForms(
    to_bytes=_fixed_writer,
    from_bytes=_fixed_reader,
    to_json=_fixed_to_json,
    from_json=_fixed_from_json,
    from_python=_binary,
    text=_base64,
    hash=_hash_bytes,
    avro=lambda kind: {"type": "fixed", "name": f"fixed_{kind.length}", "size": kind.length},
)
_BINARY = ValueForms(
    to_bytes=_bytes_writer,
    from_bytes=lambda _, data: bytes(data),
    to_json=lambda _, value: value.hex().upper(),
    from_json=lambda _, value: bytes.fromhex(parsed_text(value)),
    from_python=_binary,
    text=_base64,
    hash=_hash_bytes,
    avro="bytes",
)
_SHAPE = ValueForms(to_bytes=_bytes_writer, from_bytes=lambda _, data: bytes(data), from_python=_binary, avro="bytes")
_UNKNOWN = ValueForms(avro="null")
FORMS: Mapping[type[IcebergType], ValueForms] = {
    StringType: _STRING,
    UUIDType: _UUID_BYTES,
    FixedType: _FIXED,
    BinaryType: _BINARY,
    GeometryType: _SHAPE,
    GeographyType: _SHAPE,
    UnknownType: _UNKNOWN,
}
