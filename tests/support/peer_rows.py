"""Rows of every engine in one form, so that they can be compared letter by letter."""

from __future__ import annotations

import datetime
import decimal
import json
import math
import uuid
from typing import Any


def encode(value: Any) -> Any:
    """A Python value as JSON, the same form as ``java_peer.encode``; zoned timestamps become naive UTC."""
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, datetime.datetime):
        return (value.astimezone(datetime.timezone.utc).replace(tzinfo=None) if value.tzinfo else value).isoformat()
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, (decimal.Decimal, uuid.UUID)):
        return str(value)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, dict):
        return [encode(item) for item in value.values()]
    if isinstance(value, (list, tuple)):
        return [encode(item) for item in value]
    return value


def arrow_rows(table: Any) -> list[str]:
    """The rows of an Arrow table as sorted JSON texts."""
    columns = [column.to_pylist() for column in table.columns]
    return sorted(json.dumps([encode(value) for value in row]) for row in zip(*columns, strict=True))


def json_rows(rows: list[list[Any]]) -> list[str]:
    """Rows that are JSON already (``JavaIceberg.sql``) as sorted JSON texts."""
    return sorted(json.dumps(row) for row in rows)
