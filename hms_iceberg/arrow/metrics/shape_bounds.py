"""Types of shapes and boxes around them, as Parquet's footers tell them."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from hms_iceberg.arrow.columns.geoarrow import ShapeType
from hms_iceberg.spec.data_types import GeographyType, GeometryType
from hms_iceberg.spec.primitive_types import DEFAULT_CRS, DEFAULT_EDGE_ALGORITHM
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


def told_shape(column: Any) -> pa.Field | None:
    """A column of shapes as GeoArrow names its system and edges; None if the footer does not say that it is one.

    Args:
        column: the column of a footer's schema, as pyarrow has it.
    """
    told = json.loads(column.logical_type.to_json())
    if told["Type"] not in ("Geometry", "Geography"):
        return None
    edges = told.get("algorithm", DEFAULT_EDGE_ALGORITHM) if told["Type"] == "Geography" else "planar"
    return pa.field("", ShapeType(json.dumps({"crs": told.get("crs", DEFAULT_CRS), "edges": edges.lower()})))


def _extent(chunk: Any) -> Extent:
    told = chunk.geo_statistics if getattr(chunk, "is_geo_stats_set", False) else None
    low, high = (
        [math.nan if (each := getattr(told, axis + end, None)) is None else each for axis in "xyzm"]
        for end in ("min", "max")
    )
    return Extent(low, high, math.nan, math.nan)
