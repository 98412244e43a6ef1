"""PyIceberg's module path of the types: `hms_iceberg.spec.data_types`."""

from __future__ import annotations

from hms_iceberg.spec.data_types import (
    DEFAULT_CRS as DEFAULT_GEOGRAPHY_CRS,
)
from hms_iceberg.spec.data_types import (
    DEFAULT_CRS as DEFAULT_GEOMETRY_CRS,
)
from hms_iceberg.spec.data_types import (
    DEFAULT_EDGE_ALGORITHM as DEFAULT_GEOGRAPHY_ALGORITHM,
)
from hms_iceberg.spec.data_types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    GeographyType,
    GeometryType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    PrimitiveType,
    StringType,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UnknownType,
    UUIDType,
    VariantType,
)

__all__ = [
    "DEFAULT_GEOGRAPHY_ALGORITHM",
    "DEFAULT_GEOGRAPHY_CRS",
    "DEFAULT_GEOMETRY_CRS",
    "BinaryType",
    "BooleanType",
    "DateType",
    "DecimalType",
    "DoubleType",
    "FixedType",
    "FloatType",
    "GeographyType",
    "GeometryType",
    "IcebergType",
    "IntegerType",
    "ListType",
    "LongType",
    "MapType",
    "NestedField",
    "PrimitiveType",
    "StringType",
    "StructType",
    "TimeType",
    "TimestampNanoType",
    "TimestampType",
    "TimestamptzNanoType",
    "TimestamptzType",
    "UUIDType",
    "UnknownType",
    "VariantType",
]
