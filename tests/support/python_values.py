"""Stored values as a Python user would write them."""

from __future__ import annotations

import datetime as dt
from typing import Any

from hms_iceberg.spec.data_types import (
    DateType,
    IcebergType,
    ListType,
    MapType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
)

_EPOCH = dt.datetime(1970, 1, 1)


def to_python(kind: IcebergType, value: Any) -> Any:
    """The Python value of a stored value; nanosecond timestamps stay integers, since Python has none.

    Raises:
        OverflowError: a date lies outside of the years 1 to 9999, which Python cannot hold.
    """
    if value is None:
        return None
    if isinstance(kind, StructType):
        return {field.name: to_python(field.field_type, value.get(field.field_id)) for field in kind.fields}
    if isinstance(kind, ListType):
        return [to_python(kind.element_type, each) for each in value]
    if isinstance(kind, MapType):
        pairs = [(to_python(kind.key_type, key), to_python(kind.value_type, each)) for key, each in value]
        try:
            return dict(pairs)
        except TypeError:
            return pairs
    if isinstance(kind, DateType):
        return _EPOCH.date() + dt.timedelta(days=value)
    if isinstance(kind, (TimeType, TimestampType, TimestamptzType)):
        moment = _EPOCH + dt.timedelta(microseconds=value)
        if isinstance(kind, TimeType):
            return moment.time()
        return moment if isinstance(kind, TimestampType) else moment.replace(tzinfo=dt.timezone.utc)
    return value
