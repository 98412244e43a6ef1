"""How Hive writes the values of a partition, and the name of its folder.

Source: Apache Hive, `FileUtils.escapePathName` and `makePartName`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hms_iceberg.errors import UnsupportedError
from hms_iceberg.hms.rows.hive_rows import HiveTable
from hms_iceberg.migration.hive.source_columns import HIVE_NULL
from hms_iceberg.spec.data_types import BinaryType, FixedType, NestedField, TimestampType, TimestamptzType
from hms_iceberg.spec.partition_transforms import IdentityTransform

_ESCAPED = frozenset("\"#%'*/:=?\\{[]^\x7f") | {chr(code) for code in range(1, 32)}


def hive_values(keys: Sequence[NestedField], stored: Sequence[Any]) -> tuple[str, ...]:
    """The values of a partition as Hive has them, as text.

    Args:
        keys: the partition columns.
        stored: the values as Iceberg has them.

    Raises:
        UnsupportedError: Hive has no text for one of them.
    """
    return tuple(_text(key, value) for key, value in zip(keys, stored, strict=True))


def _text(key: NestedField, value: Any) -> str:
    if value is None:
        return HIVE_NULL
    if value == "" or isinstance(key.field_type, (BinaryType, FixedType)):
        raise UnsupportedError(f"Hive has no partition {key.name}={value!r}.")
    text = IdentityTransform().to_human_string(key.field_type, value)
    return text.replace("T", " ") if isinstance(key.field_type, (TimestampType, TimestamptzType)) else text


def hive_folder(table: HiveTable, values: Sequence[str]) -> str:
    """The folder of a partition below its table's: `month=1/day=2`."""
    names = (key.name for key in table.partition_keys)
    return "/".join(f"{_escaped(name)}={_escaped(value)}" for name, value in zip(names, values, strict=True))


def _escaped(text: str) -> str:
    return "".join(f"%{ord(char):02X}" if char in _ESCAPED else char for char in text)
