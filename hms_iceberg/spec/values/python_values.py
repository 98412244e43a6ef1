"""Values as Python users write them (datetime, Decimal, ISO text ...) to stored values."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from decimal import InvalidOperation
from typing import Any

from hms_iceberg.errors import IcebergError, NullValueError, TypeMismatchError, UnsupportedError
from hms_iceberg.spec.data_types import IcebergType, ListType, MapType, StructType
from hms_iceberg.spec.values.forms.table import forms_of


def from_python(kind: IcebergType, value: Any) -> Any:
    """The stored value of a Python value.

    Text is read for every type but fixed and binary: ISO 8601 for dates and times, digits for numbers. For a column
    with time zone, a timestamp without zone is taken as UTC. Integers for dates and times are taken as stored. Numpy
    scalars and pandas timestamps are understood.

    Args:
        kind: the type of the column.
        value: a Python value, or None.

    Returns:
        The stored value; a struct as dict by field id, a map as list of (key, value) pairs.

    Raises:
        TypeMismatchError: the value does not fit the type exactly.
        NullValueError: a required nested field is null or missing.
        UnsupportedError: Python values of the type cannot be taken (variant).
    """
    if value is None:
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
    if value is None and required:
        raise NullValueError(f"Field {name!r} is required ({kind}), but its value is null")
    return from_python(kind, value)


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
