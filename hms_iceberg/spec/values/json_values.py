"""Single values as JSON, as default values in schemas are written.

Stored values of nested types: a struct is a dict of field id to value, a list is a list, a map is a list of
(key, value) pairs. Source: Iceberg specification, Appendix D, "JSON single-value serialization".
"""

from __future__ import annotations

from decimal import InvalidOperation
from typing import Any

from hms_iceberg.errors import IcebergError, TypeMismatchError, UnsupportedError
from hms_iceberg.spec.data_types import IcebergType, ListType, MapType, StructType
from hms_iceberg.spec.values.forms.table import forms_of


def to_json(kind: IcebergType, value: Any) -> Any:
    """A stored value as JSON-ready Python: dates as ISO text, decimals as text, bytes as hexadecimal digits.

    Args:
        kind: the type of the value.
        value: the stored value, or None.

    Returns:
        What `json.dumps` takes.

    Raises:
        UnsupportedError: the specification has no JSON form for the type (variant, unknown, geometry as bytes).
        TypeMismatchError: the value is none of the type.
    """
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
    """The stored value that parsed JSON stands for.

    Args:
        kind: the type of the value.
        value: what `json.loads` gave.

    Returns:
        The stored value, or None for null.

    Raises:
        UnsupportedError: the specification has no JSON form for the type.
        TypeMismatchError: the JSON holds no value of the type.
    """
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
