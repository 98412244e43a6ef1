"""Stored values in all their forms: bytes, JSON, Python objects and truncated bounds.

Stored values: bool; int for int, long, date (days), time and timestamps (micro- or nanoseconds); float; str; uuid.UUID;
bytes; decimal.Decimal at the type's scale. Of nested types: a struct is a dict of field id to value, a list is a list,
a map is a list of (key, value) pairs.

Source: Iceberg specification, Appendix D (single-value serialization); for values written before a column was promoted,
"Schema Evolution".
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import InvalidOperation
from functools import partial
from struct import Struct
from typing import Any

from hms_iceberg.errors import CorruptFileError, IcebergError, NullValueError, TypeMismatchError, UnsupportedError
from hms_iceberg.spec.data_types import (
    BinaryType,
    FixedType,
    GeographyType,
    GeometryType,
    IcebergType,
    ListType,
    MapType,
    StringType,
    StructType,
)
from hms_iceberg.spec.values.forms import numbers, sequences, times
from hms_iceberg.spec.values.forms.form import ValueForms
from hms_iceberg.spec.values.shapes import Extent, interval

FORMS: Mapping[type[IcebergType], ValueForms] = {**numbers.FORMS, **times.FORMS, **sequences.FORMS}
_NONE = ValueForms()


def forms_of(kind: IcebergType) -> ValueForms:
    """The record of a type; one without any form for types that are not primitive."""
    return FORMS.get(type(kind), _NONE)


# Of a fixed value no more than its first bytes may be left, which are no value of the type.
_SHORTENED = (StringType, BinaryType, FixedType)
_LAST_CODE_POINT = 0x10FFFF
_SURROGATES = range(0xD800, 0xE000)


def bounds_to_bytes(kind: IcebergType, low: Any, high: Any, width: int | None) -> tuple[bytes, bytes | None]:
    """The bounds of a column as manifests hold them, cut to `width` characters or bytes; no upper one if none is short
    enough."""
    if width is not None:
        low, high = truncate_lower(kind, low, width), truncate_upper(kind, high, width)
    stored = BinaryType() if isinstance(kind, FixedType) else kind
    return to_bytes(stored, low), None if high is None else to_bytes(stored, high)


def truncate_lower(kind: IcebergType, value: Any, width: int) -> Any:
    """A value of at most `width` characters (or bytes) that is no greater; other types come back unchanged."""
    return value[:width] if isinstance(kind, _SHORTENED) else value


def truncate_upper(kind: IcebergType, value: Any, width: int) -> Any | None:
    """A value of at most `width` code points (or bytes) that is no smaller, None if there is none; other types come
    back unchanged."""
    if not isinstance(kind, _SHORTENED) or len(value) <= width:
        return value
    return _next_text(value[:width]) if isinstance(value, str) else next_bytes(bytes(value[:width]))


def _next_text(prefix: str) -> str | None:
    for last in range(len(prefix) - 1, -1, -1):
        following = ord(prefix[last]) + 1
        if following in _SURROGATES:
            following = _SURROGATES.stop
        if following <= _LAST_CODE_POINT:
            return prefix[:last] + chr(following)
    return None


def next_bytes(prefix: bytes) -> bytes | None:
    """The smallest bytes above all that start with the prefix; None if there is none."""
    kept = prefix.rstrip(b"\xff")
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else None


def human_string(kind: IcebergType, value: Any) -> str:
    """Text of a stored value as Apache Iceberg in Java writes it in partition paths: ISO dates, base64 for bytes."""
    return "null" if value is None else forms_of(kind).text(kind, value)


def hash_function(source_type: IcebergType) -> Callable[[Any], int]:
    """The signed 32-bit Murmur3 hash of stored values of a type (Appendix B), also if bucket does not allow it."""
    hash_value = forms_of(source_type).hash
    if hash_value is None:
        raise TypeMismatchError(f"Values of type {source_type} cannot be hashed into buckets")
    return partial(hash_value, source_type)


_DOUBLE = Struct("<d")


def point_to_bytes(x: float, y: float, z: float | None = None, m: float | None = None) -> bytes:
    """A corner of a bounding box, as bounds of geometry and geography columns hold it."""
    values = [x, y]
    if m is not None:
        values += [math.nan if z is None else z, m]
    elif z is not None:
        values.append(z)
    return b"".join(_DOUBLE.pack(each) for each in values)


def point_from_bytes(data: bytes) -> tuple[float, float, float | None, float | None]:
    """x, y, z and m of a corner of a bounding box; z and m are None if they are not set."""
    if len(data) not in (16, 24, 32):
        raise CorruptFileError(f"Cannot read a bounding-box corner from {len(data)} bytes: expected 16, 24 or 32")
    values: list[float | None] = [_DOUBLE.unpack_from(data, offset)[0] for offset in range(0, len(data), 8)]
    x, y, z, m = (*values, None, None)[:4]
    if len(data) == 32 and z is not None and math.isnan(z):
        z = None
    assert x is not None and y is not None
    return x, y, z, m


def point_text(data: bytes) -> str | None:
    """A corner of a bounding box as Java shows it, such as "x=1.0, y=2.0"; None if the bytes hold no corner."""
    try:
        point = point_from_bytes(data)
    except CorruptFileError:
        return None
    return ", ".join(f"{name}={each!r}" for name, each in zip("xyzm", point, strict=True) if each is not None)


def corners_of(extent: Extent, kind: GeometryType | GeographyType) -> tuple[bytes, bytes] | None:
    """The bounds of a column of shapes; None without x or y, or if they are not on the globe of a geography."""
    (_, south, *low), (_, north, *high) = extent.low, extent.high
    west, east = interval(extent, kind)
    if not (south <= north and (west <= east or isinstance(kind, GeographyType))):
        return None
    if isinstance(kind, GeographyType) and not (max(abs(west), abs(east)) <= 180 and -90 <= south <= north <= 90):
        return None
    lower, upper = ((None if each != each else each for each in further) for further in (low, high))
    return point_to_bytes(west, south, *lower), point_to_bytes(east, north, *upper)


def to_bytes(kind: IcebergType, value: Any) -> bytes:
    """A stored value as bytes.

    Args:
        kind: the primitive type of the column.
        value: the stored value, such as days for a date; not None.

    Returns:
        The bytes that a manifest holds as bound.

    Raises:
        UnsupportedError: values of the type have no binary form (nested types, variant, unknown).
        TypeMismatchError: the value is not of the type.
    """
    writer = forms_of(kind).to_bytes
    if writer is None:
        raise UnsupportedError(f"Values of type {kind} have no binary form; only primitive types have bounds")
    try:
        data: bytes = writer(kind, value)
        return data
    except (struct.error, OverflowError, TypeError, ValueError, AttributeError) as error:
        raise TypeMismatchError(f"Cannot store {value!r} ({type(value).__name__}) as {kind}: {error}") from error


def from_bytes(kind: IcebergType, data: bytes) -> Any:
    """The stored value in the bytes of a bound.

    Bounds written before the column was promoted are read too: 4-byte ints for long, floats for double, dates for
    timestamp, decimals of any smaller precision.

    Args:
        kind: the primitive type of the column today.
        data: the bytes.

    Returns:
        The stored value.

    Raises:
        UnsupportedError: values of the type have no binary form.
        CorruptFileError: the bytes hold no value of the type.
    """
    reader = forms_of(kind).from_bytes
    if reader is None:
        raise UnsupportedError(f"Values of type {kind} have no binary form; only primitive types have bounds")
    try:
        return reader(kind, data)
    except ValueError as error:
        shown = bytes(data[:16]).hex() + ("..." if len(data) > 16 else "")
        raise CorruptFileError(f"Cannot read a {kind} from {len(data)} bytes ({shown}): {error}") from error


def to_json(kind: IcebergType, value: Any) -> Any:
    """A stored value as JSON-ready Python: dates as ISO text, decimals as text, bytes as hexadecimal digits."""
    if value is None:
        return None
    if isinstance(kind, StructType):
        present = ((field, value.get(field.field_id)) for field in kind.fields)
        return {str(field.field_id): to_json(field.field_type, each) for field, each in present if each is not None}
    if isinstance(kind, ListType):
        return [to_json(kind.element_type, each) for each in value]
    if isinstance(kind, MapType):
        keys = [to_json(kind.key_type, key) for key, _ in value]
        return {"keys": keys, "values": [to_json(kind.value_type, each) for _, each in value]}
    writer = forms_of(kind).to_json
    if writer is None:
        raise UnsupportedError(f"Values of type {kind} have no JSON form; their default can only be null")
    try:
        return writer(kind, value)
    except IcebergError:
        raise
    except (TypeError, ValueError, AttributeError, OverflowError) as error:
        raise TypeMismatchError(f"Cannot write {value!r} ({type(value).__name__}) as {kind}: {error}") from error


def from_json(kind: IcebergType, value: Any) -> Any:
    if value is None:
        return None
    try:
        if isinstance(kind, StructType):
            return _struct_from_json(kind, value)
        if isinstance(kind, ListType):
            return [from_json(kind.element_type, each) for each in _sequence(value)]
        if isinstance(kind, MapType):
            return _map_from_json(kind, value)
        reader = forms_of(kind).from_json
        if reader is None:
            raise UnsupportedError(f"Values of type {kind} have no JSON form; their default can only be null")
        return reader(kind, value)
    except IcebergError:
        raise
    except (ValueError, InvalidOperation, OverflowError) as error:
        raise TypeMismatchError(f"Cannot read {value!r} as {kind}: {error}") from error


def _sequence(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError("expected a list")
    return value


def _struct_from_json(kind: StructType, value: Any) -> dict[int, Any]:
    if not isinstance(value, dict):
        raise ValueError("expected an object by field id")
    by_id = {str(field.field_id): field for field in kind.fields}
    known = ((by_id[name], each) for name, each in value.items() if name in by_id)
    return {field.field_id: from_json(field.field_type, each) for field, each in known}


def _map_from_json(kind: MapType, value: Any) -> list[tuple[Any, Any]]:
    if not isinstance(value, dict) or "keys" not in value or "values" not in value:
        raise ValueError("expected an object with 'keys' and 'values'")
    keys, values = _sequence(value["keys"]), _sequence(value["values"])
    if len(keys) != len(values):
        raise ValueError(f"it has {len(keys)} keys and {len(values)} values")
    pairs = zip(keys, values, strict=True)
    return [(from_json(kind.key_type, key), from_json(kind.value_type, each)) for key, each in pairs]


def from_python(kind: IcebergType, value: Any) -> Any:
    """The stored value of a Python value (numpy, pandas too): a struct as dict by field id, a map as list of pairs.
    Text is read as ISO 8601 or digits, but for fixed and binary; naive timestamps are UTC for columns with zone; NaT is
    null."""
    if is_null(value):
        return None
    try:
        if isinstance(kind, StructType):
            return _struct(kind, value)
        if isinstance(kind, ListType):
            return [_child(kind.element_field.required, "element", kind.element_type, each) for each in list(value)]
        if isinstance(kind, MapType):
            pairs = value.items() if isinstance(value, Mapping) else value
            return [
                (
                    _child(True, "key", kind.key_type, key),
                    _child(kind.value_required, "value", kind.value_type, each),
                )
                for key, each in pairs
            ]
        convert = forms_of(kind).from_python
        if convert is None:
            raise UnsupportedError(f"Cannot take {value!r} as {kind}: values of this type cannot be given in Python")
        return convert(kind, _without_numpy(value))
    except IcebergError:
        raise
    except (TypeError, ValueError, InvalidOperation, OverflowError, struct.error) as error:
        raise TypeMismatchError(f"{value!r} ({type(value).__name__}) is no value of type {kind}: {error}") from error


def _child(required: bool, name: str, kind: IcebergType, value: Any) -> Any:
    if required and is_null(value):
        raise NullValueError(f"Field {name!r} is required ({kind}), but its value is null")
    return from_python(kind, value)


def is_null(value: Any) -> bool:
    """Whether a Python value stands for null: None, and the NaT of numpy and of pandas."""
    if isinstance(value, datetime):
        return value != value  # pandas' NaT is a datetime
    return value is None or (getattr(getattr(value, "dtype", None), "kind", "") in "mM" and str(value) == "NaT")


def _struct(kind: StructType, value: Any) -> dict[int, Any]:
    if not isinstance(value, Mapping):
        raise ValueError("expected a mapping of field names to values")
    extra = sorted(str(name) for name in set(value) - {field.name for field in kind.fields})
    if extra:
        raise ValueError(f"the struct has no field {', '.join(map(repr, extra))}")
    return {
        field.field_id: _child(field.required, field.name, field.field_type, value.get(field.name))
        for field in kind.fields
    }


def _without_numpy(value: Any) -> Any:
    dtype = getattr(value, "dtype", None)
    if dtype is None or not hasattr(value, "item"):
        return value
    return str(value) if dtype.kind == "M" else value.item()
