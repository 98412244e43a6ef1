"""Hypothesis strategies for types, stored values, schemas and table metadata."""

from __future__ import annotations

import struct
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

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
from hms_iceberg.spec.metadata import metadata_definition as definition
from hms_iceberg.spec.metadata import metadata_snapshots as snapshots
from hms_iceberg.spec.metadata.format_rules import RESERVED_PROPERTIES
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.partitions.partition_specs import PartitionField, PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.snapshots_and_refs import (
    BlobMetadata,
    EncryptionKey,
    PartitionStatisticsFile,
    Snapshot,
    SnapshotRef,
    SnapshotRefType,
    StatisticsFile,
)
from hms_iceberg.spec.sort_orders import NullOrder, SortDirection, SortField, SortOrder
from hms_iceberg.spec.transforms.partition_transforms import IdentityTransform
from hms_iceberg.spec.values.decimals import decimal_value

INTS = st.integers(-(2**31), 2**31 - 1)
LONGS = st.integers(-(2**63), 2**63 - 1)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
NAMES = st.text("abcXYZ_ .ß😀019", min_size=1, max_size=6)

CLASSIC_PRIMITIVES: tuple[IcebergType, ...] = (
    BooleanType(),
    IntegerType(),
    LongType(),
    FloatType(),
    DoubleType(),
    DateType(),
    TimeType(),
    TimestampType(),
    TimestamptzType(),
    StringType(),
    UUIDType(),
    BinaryType(),
    FixedType(5),
    DecimalType(9, 2),
    DecimalType(38, 10),
    DecimalType(38, 0),
)
NANO_TIMESTAMPS: tuple[IcebergType, ...] = (TimestampNanoType(), TimestamptzNanoType())
VALUED_PRIMITIVES = CLASSIC_PRIMITIVES + NANO_TIMESTAMPS
"""Types whose values have a binary and a JSON form."""
NEW_TYPES: tuple[IcebergType, ...] = (
    *NANO_TIMESTAMPS,
    UnknownType(),
    VariantType(),
    GeometryType(),
    GeometryType("EPSG:3857"),
    GeographyType(),
    GeographyType("srid:4326", "karney"),
)


def decimals(kind: DecimalType) -> st.SearchStrategy[Decimal]:
    limit = 10**kind.precision - 1
    return st.integers(-limit, limit).map(lambda unscaled: decimal_value(unscaled, kind.scale))


def values(kind: IcebergType, finite: bool = False) -> st.SearchStrategy[Any]:
    """Stored values of a type that has some."""
    if isinstance(kind, DecimalType):
        return decimals(kind)
    if isinstance(kind, FixedType):
        return st.binary(min_size=kind.length, max_size=kind.length)
    simple: dict[type[IcebergType], st.SearchStrategy[Any]] = {
        BooleanType: st.booleans(),
        IntegerType: INTS,
        LongType: LONGS,
        DateType: INTS,
        TimeType: st.integers(0, 86_400_000_000 - 1),
        TimestampType: LONGS,
        TimestamptzType: LONGS,
        TimestampNanoType: LONGS,
        TimestamptzNanoType: LONGS,
        FloatType: st.floats(width=32, allow_nan=not finite, allow_infinity=not finite),
        DoubleType: st.floats(allow_nan=not finite, allow_infinity=not finite),
        StringType: TEXT,
        UUIDType: st.uuids(),
        BinaryType: st.binary(max_size=20),
    }
    return simple[type(kind)]


def typed_values(
    kinds: tuple[IcebergType, ...] = VALUED_PRIMITIVES, finite: bool = False
) -> st.SearchStrategy[tuple[IcebergType, Any]]:
    """A type with one of its stored values."""
    return st.sampled_from(kinds).flatmap(lambda kind: st.tuples(st.just(kind), values(kind, finite)))


def same_value(left: Any, right: Any) -> bool:
    """Equality in which NaN equals itself and -0.0 differs from 0.0."""
    if isinstance(left, float) and isinstance(right, float):
        return struct.pack("<d", left) == struct.pack("<d", right) or (left != left and right != right)
    return bool(left == right) and type(left) is type(right)


# ---------------------------------------------------------------------------------------------- schemas


@st.composite
def nested_types(draw: st.DrawFn, leaves: tuple[IcebergType, ...], depth: int = 2) -> IcebergType:
    """A type whose field ids are all 0: number it with `assign_fresh_ids`."""
    kind = draw(st.sampled_from(("leaf", "leaf", "leaf", "struct", "list", "map"))) if depth else "leaf"
    if kind == "leaf":
        return draw(st.sampled_from(leaves))
    inner = nested_types(leaves, depth - 1)
    if kind == "struct":
        return StructType(*draw(nested_fields(leaves, depth - 1)))
    if kind == "list":
        element = draw(inner)
        return ListType(0, element, draw(st.booleans()) and not isinstance(element, UnknownType))
    value = draw(inner)
    required = draw(st.booleans()) and not isinstance(value, UnknownType)
    return MapType(0, draw(st.sampled_from(CLASSIC_PRIMITIVES)), 0, value, required)


@st.composite
def nested_fields(draw: st.DrawFn, leaves: tuple[IcebergType, ...], depth: int) -> list[NestedField]:
    names = draw(st.lists(NAMES, min_size=1, max_size=4, unique=True))
    fields = []
    for name in names:
        kind = draw(nested_types(leaves, depth))
        required = draw(st.booleans()) and not isinstance(kind, UnknownType)
        defaults = kind in VALUED_PRIMITIVES and leaves is not CLASSIC_PRIMITIVES and draw(st.booleans())
        default = draw(values(kind, finite=True)) if defaults else None
        doc = draw(st.none() | TEXT)
        fields.append(NestedField(0, name, kind, required, doc, default, default))
    return fields


def _numbered(fields: list[NestedField]) -> Schema:
    """Ids for fields that have none yet."""
    counter = iter(range(1, 10_000))

    def renumber(kind: IcebergType) -> IcebergType:
        if isinstance(kind, StructType):
            return StructType(*map(number, kind.fields))
        if isinstance(kind, ListType):
            return ListType(next(counter), renumber(kind.element_type), kind.element_required)
        if isinstance(kind, MapType):
            key_id, value_id = next(counter), next(counter)
            return MapType(key_id, kind.key_type, value_id, renumber(kind.value_type), kind.value_required)
        return kind

    def number(field: NestedField) -> NestedField:
        field_id = next(counter)
        kind = renumber(field.field_type)
        return NestedField(
            field_id, field.name, kind, field.required, field.doc, field.initial_default, field.write_default
        )

    return Schema(*map(number, fields))


def schemas(format_version: int = 3, depth: int = 2) -> st.SearchStrategy[Schema]:
    """Schemas that a table of the format version may have."""
    leaves = CLASSIC_PRIMITIVES if format_version < 3 else CLASSIC_PRIMITIVES + NEW_TYPES
    return nested_fields(leaves, depth).map(_numbered)


# --------------------------------------------------------------------------------------------- metadata


@st.composite
def table_metadata(draw: st.DrawFn) -> TableMetadata:
    """Tables of every format version with a history of random changes."""
    version = draw(st.sampled_from((1, 2, 3)))
    schema = draw(schemas(version))
    usable = [field for field in schema.fields if IdentityTransform().can_transform(field.field_type)]
    chosen = draw(st.lists(st.sampled_from(usable), max_size=2, unique=True)) if usable else []
    spec = PartitionSpec(
        *(PartitionField(field.field_id, 1000 + i, IdentityTransform(), field.name) for i, field in enumerate(chosen))
    )
    keys = [
        SortField(
            field.field_id, IdentityTransform(), draw(st.sampled_from(SortDirection)), draw(st.sampled_from(NullOrder))
        )
        for field in chosen
    ]
    names = TEXT.filter(lambda name: name not in RESERVED_PROPERTIES)
    properties = draw(st.dictionaries(names, TEXT, max_size=3))
    metadata = definition.new_table_metadata(schema, spec, SortOrder(*keys), "s3://bucket/table", properties, version)
    for _ in range(draw(st.integers(0, 4))):
        metadata = draw(st.sampled_from(_CHANGES))(draw, metadata)
    return metadata


def _append(draw: st.DrawFn, metadata: TableMetadata) -> TableMetadata:
    snapshot = Snapshot(
        draw(st.integers(1, 2**63 - 1).filter(lambda each: each not in metadata.snapshots_by_id)),
        metadata.current_snapshot_id,
        metadata.next_sequence_number(),
        metadata.last_updated_ms + draw(st.integers(0, 1000)),
        "s3://bucket/table/metadata/snap.avro",
        None,
        {"operation": "append", **draw(st.dictionaries(TEXT, TEXT, max_size=2))},
        metadata.current_schema_id,
        metadata.next_row_id,
        draw(st.integers(0, 1000)) if metadata.format_version > 2 else None,
    )
    return snapshots.add_snapshot(metadata, snapshot, draw(st.sampled_from(("main", "dev", None))))


def _tag(draw: st.DrawFn, metadata: TableMetadata) -> TableMetadata:
    if metadata.current_snapshot_id is None:
        return metadata
    age = draw(st.none() | st.integers(1, 10**12))
    return snapshots.set_ref(
        metadata, "tag", SnapshotRef(metadata.current_snapshot_id, SnapshotRefType.TAG, None, None, age)
    )


def _statistics(draw: st.DrawFn, metadata: TableMetadata) -> TableMetadata:
    if metadata.current_snapshot_id is None:
        return metadata
    snapshot_id = metadata.current_snapshot_id
    blob = BlobMetadata("apache-datasketches-theta-v1", snapshot_id, 1, (1,), draw(st.none() | st.just({"ndv": "3"})))
    file = StatisticsFile(snapshot_id, "s3://bucket/stats.puffin", 100, 20, (blob,), draw(st.none() | TEXT))
    metadata = snapshots.set_statistics(metadata, file)
    return snapshots.set_partition_statistics(
        metadata, PartitionStatisticsFile(snapshot_id, "s3://bucket/p.parquet", 9)
    )


def _key(draw: st.DrawFn, metadata: TableMetadata) -> TableMetadata:
    if metadata.format_version < 3:
        return metadata
    key = EncryptionKey(draw(st.text("abc123", min_size=1)), "aWNlYmVyZw==", draw(st.none() | TEXT), {"a": "b"})
    known = any(each.key_id == key.key_id for each in metadata.encryption_keys)
    return metadata if known else snapshots.add_encryption_key(metadata, key)


def _upgrade(draw: st.DrawFn, metadata: TableMetadata) -> TableMetadata:
    return definition.upgrade_format_version(metadata, draw(st.integers(metadata.format_version, 3)))


def _log(draw: st.DrawFn, metadata: TableMetadata) -> TableMetadata:
    return snapshots.append_metadata_log(metadata, "s3://bucket/v1.metadata.json", metadata.last_updated_ms)


_CHANGES = (_append, _append, _tag, _statistics, _key, _upgrade, _log)
