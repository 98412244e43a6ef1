"""Single values as bytes, as bounds in manifests hold them.

Source: Iceberg specification, Appendix D, "Binary single-value serialization" and "Bound serialization"; for values
written before a column was promoted, "Schema Evolution".
"""

from __future__ import annotations

import math
import struct
from struct import Struct
from typing import Any

from hms_iceberg.errors import CorruptFileError, TypeMismatchError, UnsupportedError
from hms_iceberg.spec.data_types import IcebergType
from hms_iceberg.spec.values.forms.table import forms_of

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
    """x, y, z and m of a corner of a bounding box; z and m are None if they are not set.

    Raises:
        CorruptFileError: the length is not that of two to four coordinates.
    """
    if len(data) not in (16, 24, 32):
        raise CorruptFileError(f"Cannot read a bounding-box corner from {len(data)} bytes: expected 16, 24 or 32")
    values: list[float | None] = [_DOUBLE.unpack_from(data, offset)[0] for offset in range(0, len(data), 8)]
    x, y, z, m = (*values, None, None)[:4]
    if len(data) == 32 and z is not None and math.isnan(z):
        z = None
    assert x is not None and y is not None
    return x, y, z, m


def to_bytes(kind: IcebergType, value: Any) -> bytes:
    """A stored value as bytes.

    Args:
        kind: the primitive type of the column.
        value: the stored value, such as days for a date; not None.

    Returns:
        The bytes that a manifest holds as bound.

    Raises:
        UnsupportedError: values of the type have no binary form (nested types, variant, unknown).
        TypeMismatchError: the value is none of the type.
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
