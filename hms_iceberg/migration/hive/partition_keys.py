"""Values of a partition as something that can be compared: NaN is NaN, and -0.0 is not 0.0, as in Hive's names."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Any


def partition_key(values: Sequence[Any]) -> tuple[Any, ...]:
    """A key that is equal for two sets of partition values only if they are the same partition.

    Args:
        values: as Iceberg stores them.
    """
    return tuple(_bits(value) if isinstance(value, float) else value for value in values)


def _bits(value: float) -> bytes:
    return struct.pack(">d", math.nan if math.isnan(value) else value)
