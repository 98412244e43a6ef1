"""Geometry and geography in Arrow: GeoArrow's extension type of shapes in Well-Known Binary.

A field that pyarrow has no registered type for carries the type's name and parameters in its metadata; that is how
scans of other libraries, and other processes, come in.

Source: GeoArrow, "Extension types" (``geoarrow.wkb``, its ``crs`` and ``edges``).
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from hms_iceberg.spec.data_types import DEFAULT_CRS, DEFAULT_EDGE_ALGORITHM, GeographyType, GeometryType, IcebergType
from hms_iceberg.spec.values.shapes import Extent
from hms_iceberg.spec.values.single_values import corners_of

_NAME = "geoarrow.wkb"
_OTHERS = "geoarrow."
_NAME_KEY, _PARAMETERS_KEY = b"ARROW:extension:name", b"ARROW:extension:metadata"
_PLANAR = "planar"
ADVICE = (
    "Name the coordinate reference system as the column does, or leave it out; geoarrow.pyarrow.as_wkb or "
    "shapely.to_wkb(shapes, flavor='iso') make Well-Known Binary of other forms."
)
# Names of one system: of longitudes and latitudes, whose order in GeoArrow is always this one.
_SAME_SYSTEM = {"EPSG:4326": DEFAULT_CRS, "CRS84": DEFAULT_CRS, "SRID:4326": DEFAULT_CRS}


class ShapeType(pa.ExtensionType):
    """The Arrow type `geoarrow.wkb`, whose parameters are GeoArrow's `crs` and `edges`."""

    def __init__(self, parameters: str = "{}") -> None:
        self._parameters = parameters
        super().__init__(pa.binary(), _NAME)

    @property
    def edges(self) -> str | None:
        """The interpolation of a geography's edges; None for straight ones."""
        found: str | None = json.loads(self._parameters).get("edges")
        return None if found == _PLANAR else found

    def __arrow_ext_serialize__(self) -> bytes:
        return self._parameters.encode()

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> ShapeType:
        return cls(serialized.decode())

    def __reduce__(self) -> tuple[Any, ...]:
        return ShapeType, (self._parameters,)

    def __str__(self) -> str:
        return f"{_NAME}({self._parameters})"


def shape_type(kind: GeometryType | GeographyType) -> ShapeType:
    parameters = {"crs": kind.crs}
    if isinstance(kind, GeographyType):
        parameters["edges"] = kind.algorithm
    return ShapeType(json.dumps(parameters))


def is_shape(field: pa.Field) -> bool:
    """Whether an Arrow field holds shapes, in any form of GeoArrow."""
    return _name(field).startswith(_OTHERS)


def shape_of(field: pa.Field) -> GeometryType | GeographyType:
    """The Iceberg type of a field of shapes; ValueError if they are not WKB or have an unknown coordinate system."""
    crs, edges = _parameters(field)
    system = DEFAULT_CRS if crs is None else crs
    return GeometryType(system) if edges in (None, _PLANAR) else GeographyType(system, edges)


def check_shape(field: pa.Field, target: IcebergType) -> None:
    """Refuses a field of shapes for a column of another coordinate system or with other edges, as far as the field
    names them."""
    if not isinstance(target, (GeometryType, GeographyType)):
        return
    crs, edges = _parameters(field)
    if crs is not None and _system(crs) != _system(target.crs):
        raise ValueError(f"its coordinate reference system is {crs}")
    wanted = target.algorithm if isinstance(target, GeographyType) else _PLANAR
    if edges is not None and edges != wanted:
        raise ValueError(f"its edges are {edges}, not {wanted}")


def _name(field: pa.Field) -> str:
    if isinstance(field.type, pa.BaseExtensionType):
        return str(field.type.extension_name)
    return (field.metadata or {}).get(_NAME_KEY, b"").decode(errors="replace")


def _parameters(field: pa.Field) -> tuple[str | None, str | None]:
    """The coordinate reference system and the edges that a field names."""
    if _name(field) != _NAME:
        raise ValueError(f"its shapes are {_name(field)}, not Well-Known Binary ({_NAME})")
    if isinstance(field.type, pa.ExtensionType):
        text = field.type.__arrow_ext_serialize__()
    else:
        text = (field.metadata or {}).get(_PARAMETERS_KEY, b"")
    try:
        found = json.loads(text or b"{}") or {}
    except ValueError:
        found = None
    if not isinstance(found, Mapping):
        raise ValueError(f"its parameters cannot be read: {bytes(text)[:80]!r}")
    edges = found.get("edges")
    return _crs(found.get("crs")), None if edges is None else str(edges).lower()


def _crs(crs: Any) -> str | None:
    """The name of a coordinate reference system, which may come as PROJJSON."""
    if isinstance(crs, Mapping):
        known = crs.get("id") or next(iter(crs.get("ids") or ()), None)
        if not isinstance(known, Mapping) or "authority" not in known or "code" not in known:
            raise ValueError(f"its coordinate reference system has no identifier: {crs.get('name')!r}")
        return f"{known['authority']}:{known['code']}"
    return None if crs is None else str(crs)


def _system(crs: str) -> str:
    name = crs.upper()
    return _SAME_SYSTEM.get(name, name.replace("SRID:", "EPSG:"))


# ------------------------------------------------------------------------------------ boxes in Parquet's footers


def footer_corners(chunks: Sequence[Any], kind: GeometryType | GeographyType) -> tuple[bytes, bytes] | None:
    """The corners around the boxes that a footer tells of, None if it does not tell of all shapes; geographies' boxes
    are not taken, as writers differ in what they mean."""
    if isinstance(kind, GeographyType) or not chunks:
        return None
    found = [_extent(chunk) for chunk in chunks]
    whole = found[0]
    for each in found:
        if not (each.low[0] <= each.high[0] and each.low[1] <= each.high[1]):
            return None
        whole = whole.widened(each)
    return corners_of(whole, kind)


def shape_of_footer(column: Any) -> pa.Field | None:
    """A column of shapes as GeoArrow names its system and edges; None if the footer does not say that it is one."""
    logical = json.loads(column.logical_type.to_json())
    if logical["Type"] not in ("Geometry", "Geography"):
        return None
    edges = logical.get("algorithm", DEFAULT_EDGE_ALGORITHM) if logical["Type"] == "Geography" else "planar"
    return pa.field("", ShapeType(json.dumps({"crs": logical.get("crs", DEFAULT_CRS), "edges": edges.lower()})))


def _extent(chunk: Any) -> Extent:
    statistics = chunk.geo_statistics if getattr(chunk, "is_geo_stats_set", False) else None
    found = {end: [getattr(statistics, axis + end, None) for axis in "xyzm"] for end in ("min", "max")}
    low, high = ([math.nan if each is None else each for each in found[end]] for end in ("min", "max"))
    return Extent(low, high, math.nan, math.nan)
