"""Boxes around shapes, as Parquet's footers tell them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from hms_iceberg.spec.data_types import GeographyType, GeometryType
from hms_iceberg.spec.values.shapes import Extent
from hms_iceberg.spec.values.single_values import corners_of


def footer_corners(chunks: Sequence[Any], kind: GeometryType | GeographyType) -> tuple[bytes, bytes] | None:
    """The corners of the box around the boxes that a footer tells of; None if it does not tell of all shapes.

    Args:
        chunks: the column in each of some row groups, as pyarrow has it.
        kind: the type of the column. Boxes of geographies are not taken: writers differ in what they mean.
    """
    if isinstance(kind, GeographyType) or not chunks:
        return None
    found = [_extent(chunk) for chunk in chunks]
    whole = found[0]
    for each in found:
        if not (each.low[0] <= each.high[0] and each.low[1] <= each.high[1]):
            return None
        whole = whole.widened(each)
    return corners_of(whole, kind)


def _extent(chunk: Any) -> Extent:
    told = chunk.geo_statistics if getattr(chunk, "is_geo_stats_set", False) else None
    low, high = (
        [math.nan if (each := getattr(told, axis + end, None)) is None else each for axis in "xyzm"]
        for end in ("min", "max")
    )
    return Extent(low, high, math.nan, math.nan)
