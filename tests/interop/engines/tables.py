"""The tables that every engine is given: what is in them is said here, and read by nothing of ours.

Each is a feature of the format in one file format. The rows that it must hold are Python values, so that a fault of our
own reader or writer shows just as one of the engine's.
"""

from __future__ import annotations

import datetime
import json
import math
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq

from hms_iceberg.catalog import Catalog
from hms_iceberg.spec.data_types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
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
    TimestamptzType,
    TimeType,
    UUIDType,
)
from hms_iceberg.spec.partitions.partition_specs import UNPARTITIONED, PartitionField, PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.transforms.partition_transforms import (
    BucketTransform,
    DayTransform,
    IdentityTransform,
    TruncateTransform,
    YearTransform,
)
from hms_iceberg.table import Table
from tests.support.peer_rows import encode

UTC = datetime.timezone.utc
Row = dict[str, Any]

VALUES = {
    "id": LongType(),
    "flag": BooleanType(),
    "small": IntegerType(),
    "ratio": FloatType(),
    "score": DoubleType(),
    "price": DecimalType(9, 2),
    "exact": DecimalType(18, 4),
    "wide": DecimalType(38, 10),
    "day": DateType(),
    "name": StringType(),
    "raw": BinaryType(),
}
_MOST = Decimal("9" * 28 + "." + "9" * 10)
VALUE_ROWS: list[Row] = [
    {
        "id": 1,
        "flag": True,
        "small": 7,
        "ratio": 0.25,
        "score": -1.25,
        "price": Decimal("12.34"),
        "exact": Decimal("-0.0001"),
        "wide": Decimal("1.5000000000"),
        "day": datetime.date(2024, 2, 29),
        "name": "zürich",
        "raw": b"\x00\xff",
    },
    {"id": 2},
    {
        "id": 2**63 - 1,
        "flag": False,
        "small": 2**31 - 1,
        "ratio": math.inf,
        "score": math.nan,
        "price": Decimal("9999999.99"),
        "exact": Decimal("99999999999999.9999"),
        "wide": _MOST,
        "day": datetime.date(9999, 12, 31),
        "name": "",
        "raw": b"",
    },
    {
        "id": -(2**63),
        "flag": False,
        "small": -(2**31),
        "ratio": math.nan,
        "score": -math.inf,
        "price": Decimal("-9999999.99"),
        "exact": Decimal("-99999999999999.9999"),
        "wide": _MOST.copy_negate(),
        "day": datetime.date(1969, 12, 31),
        "name": "𝄞 'x'\n",
        "raw": b"text",
    },
    {"id": 5, "ratio": -0.0, "score": -0.0, "name": "NULL", "price": Decimal("0.00"), "day": datetime.date(1970, 1, 1)},
]

NESTED = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "tags", ListType(10, StringType(), False)),
    NestedField(3, "props", MapType(11, StringType(), 12, LongType(), False)),
    NestedField(
        4,
        "place",
        StructType(
            NestedField(13, "x", DoubleType()),
            NestedField(14, "inner", StructType(NestedField(15, "label", StringType()))),
        ),
    ),
    NestedField(
        5,
        "deep",
        ListType(
            16,
            StructType(NestedField(17, "y", FloatType()), NestedField(18, "n", ListType(19, IntegerType(), False))),
            False,
        ),
    ),
)
NESTED_ROWS: list[Row] = [
    {
        "id": 1,
        "tags": ["a", None, ""],
        "props": [("k", 1), ("none", None)],
        "place": {"x": 0.5, "inner": {"label": "ä"}},
        "deep": [{"y": math.nan, "n": [1, None]}, None, {"y": None, "n": []}],
    },
    {"id": 2, "tags": None, "props": None, "place": None, "deep": None},
    {"id": 3, "tags": [], "props": [], "place": {"x": None, "inner": None}, "deep": []},
    {"id": 4, "tags": [None], "props": [("", -1)], "place": {"x": -0.0, "inner": {"label": None}}, "deep": [None]},
]

TIMES = {"id": LongType(), "at": TimestampType(), "zoned": TimestamptzType()}
AFTER_1970 = ["1970-01-01 00:00:00", "2024-02-29 12:34:56.789012", "2200-12-31 23:59:59.999999", "2038-01-19 03:14:08"]
BEFORE_1970 = ["1969-12-31 23:59:58", "1969-12-31 23:59:58.5", "1950-06-01 00:00:00.999999", "1901-01-01 12:00:00.25"]
UNDER_A_MILLISECOND = ["1969-12-31 23:59:58.000001", "1950-06-01 00:00:00.000999", "1901-01-01 12:00:00.0005"]
LAST_SECOND = ["1969-12-31 23:59:59.5", "1969-12-31 23:59:59.999999", "1969-12-31 23:59:59.000001"]
BEFORE_1582 = ["1582-10-04 00:00:00", "1582-10-10 01:02:03", "1500-02-28 00:00:00.25", "1000-01-01 00:00:00"]
FAR = ["0001-01-01 00:00:00.5", "2300-01-01 00:00:00.25", "9999-12-31 23:59:59.999999"]

ODD = {"id": LongType(), "code": FixedType(4), "key": UUIDType()}
ODD_ROWS: list[Row] = [
    {"id": 1, "code": b"\x00\x01\xfe\xff", "key": UUID("123e4567-e89b-12d3-a456-426614174000")},
    {"id": 2},
    {"id": 3, "code": b"abcd", "key": UUID("ffffffff-ffff-ffff-ffff-ffffffffffff")},
]


@dataclass(frozen=True)
class Case:
    """A table that engines read.

    Attributes:
        feature: what it shows, the row of the matrix.
        variant: the file format or another kind of it.
        build: makes it, and returns the rows that it then holds.
    """

    feature: str
    variant: str
    build: Callable[[Catalog, str], list[Row]]

    @property
    def title(self) -> str:
        """Its name in the matrix."""
        return f"{self.feature}, {self.variant}"


@dataclass(frozen=True)
class Written:
    """A table that was written: its case, name in the metastore, metadata file and the rows in it as JSON texts."""

    case: Case
    name: str
    metadata: str
    columns: tuple[str, ...]
    rows: tuple[str, ...]


def _fields(columns: dict[str, IcebergType]) -> Schema:
    return Schema(*(NestedField(place, name, kind) for place, (name, kind) in enumerate(columns.items(), 1)))


def _whole(schema: Schema, rows: Sequence[Row]) -> list[Row]:
    return [{field.name: row.get(field.name) for field in schema.fields} for row in rows]


def arrow(table: Table, rows: Sequence[Row]) -> pa.Table:
    """Rows in the schema of a table, without ids."""
    schema = table.schema().as_arrow()
    plain = [
        field.with_type(field.type.storage_type) if isinstance(field.type, pa.BaseExtensionType) else field
        for field in schema
    ]
    stored = [{name: value.bytes if isinstance(value, UUID) else value for name, value in row.items()} for row in rows]
    return pa.Table.from_pylist(stored, schema=pa.schema([field.remove_metadata() for field in plain]))


def _create(
    catalog: Catalog,
    name: str,
    schema: Schema,
    version: int,
    file_format: str = "parquet",
    spec: PartitionSpec = UNPARTITIONED,
    **more: str,
) -> Table:
    properties = {
        "format-version": str(version),
        "write.format.default": file_format,
        "write.delete.mode": "merge-on-read",
        "write.update.mode": "merge-on-read",
        **more,
    }
    return catalog.create_table(name, schema, partition_spec=spec, properties=properties)


def _plain(
    schema: Schema, rows: Sequence[Row], version: int, file_format: str, catalog: Catalog, name: str
) -> list[Row]:
    table = _create(catalog, name, schema, version, file_format)
    whole = _whole(schema, rows)
    middle = len(whole) // 2
    table.append(arrow(table, whole[:middle]))
    table.append(arrow(table, whole[middle:]))
    return whole


def _times(texts: Sequence[str]) -> list[Row]:
    at = [datetime.datetime.fromisoformat(text.ljust(26, "0") if "." in text else text) for text in texts]
    return [{"id": number, "at": each, "zoned": each.replace(tzinfo=UTC)} for number, each in enumerate(at)]


def numbered(start: int, stop: int) -> list[Row]:
    """Rows of which names are null, empty or such that a path must escape them."""
    names = ["ä b/c", None, "x=1", "", "plain", "a%2Fb", "NULL"]
    return [
        {
            "id": key,
            "name": names[key % 7],
            "day": None if key % 5 == 4 else datetime.date(1969, 12, 28) + datetime.timedelta(days=key),
            "price": None if key % 6 == 5 else Decimal(key * 731 - 5000).scaleb(-2),
            "at": None if key % 8 == 7 else datetime.datetime(1969, 12, 30, 22, 15) + datetime.timedelta(hours=7 * key),
        }
        for key in range(start, stop)
    ]


NUMBERED = _fields(
    {
        "id": LongType(),
        "name": StringType(),
        "day": DateType(),
        "price": DecimalType(12, 2),
        "at": TimestampType(),
    }
)


def _partitions(file_format: str, catalog: Catalog, name: str) -> list[Row]:
    """Specs change twice, and files of each stay."""
    by_name = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "name"))
    table = _create(catalog, name, NUMBERED, 2, file_format, by_name)
    table.append(arrow(table, numbered(0, 10)))
    with table.update_spec() as update:
        update.remove_field("name")
        update.add_field("id", BucketTransform(3), "id_bucket")
        update.add_field("at", DayTransform(), "at_day")
    table.append(arrow(table, numbered(10, 20)))
    with table.update_spec() as update:
        update.remove_field("id_bucket")
        update.remove_field("at_day")
        update.add_field("price", TruncateTransform(1000), "price_trunc")
        update.add_field("day", YearTransform(), "day_year")
    table.append(arrow(table, numbered(20, 30)))
    return numbered(0, 30)


def _evolved(file_format: str, catalog: Catalog, name: str) -> list[Row]:
    """Columns are dropped, added anew under the same name, renamed, promoted and moved, also in a struct."""
    inner = StructType(NestedField(10, "x", IntegerType()), NestedField(11, "gone", StringType()))
    first = Schema(
        NestedField(1, "id", IntegerType()),
        NestedField(2, "ratio", FloatType()),
        NestedField(3, "price", DecimalType(7, 2)),
        NestedField(4, "name", StringType()),
        NestedField(5, "gone", StringType()),
        NestedField(6, "place", inner),
    )
    table = _create(catalog, name, first, 2, file_format)
    old = {"ratio": 0.5, "price": Decimal("12.34"), "name": "old", "gone": "away", "place": {"x": 1, "gone": "away"}}
    table.append(arrow(table, _whole(first, [{"id": 1, **old}, {"id": 2}])))
    with table.update_schema() as update:
        update.delete_column("gone")
        update.delete_column("place.gone")
        update.update_column("id", LongType())
        update.update_column("ratio", DoubleType())
        update.update_column("price", DecimalType(12, 2))
        update.update_column("place.x", LongType())
        update.rename_column("name", "title")
    with table.update_schema() as update:
        update.add_column("gone", LongType())
        update.add_column("name", StringType())
        update.add_column(("place", "label"), StringType())
        update.rename_column("place.x", "y")
        update.move_first("title")
    new = {"title": "t", "id": 2**40, "ratio": 0.1, "price": Decimal("1234567890.12"), "gone": 7, "name": "new"}
    rows = [
        {"title": "old", "id": 1, "ratio": 0.5, "price": Decimal("12.34"), "place": {"y": 1, "label": None}},
        {"id": 2},
        {**new, "place": {"y": 2**40, "label": "l"}},
    ]
    whole = _whole(table.schema(), rows)
    table.append(arrow(table, whole[2:]))
    return whole


def _defaults(file_format: str, catalog: Catalog, name: str) -> list[Row]:
    table = _create(catalog, name, _fields({"id": LongType()}), 3, file_format)
    table.append(arrow(table, [{"id": 1}, {"id": 2}]))
    added: list[tuple[str, IcebergType, Any]] = [
        ("small", IntegerType(), -7),
        ("score", DoubleType(), 1.5),
        ("price", DecimalType(9, 2), Decimal("12.30")),
        ("day", DateType(), datetime.date(1969, 12, 31)),
        ("at", TimestampType(), datetime.datetime(1969, 12, 31, 23, 59, 58, 500000)),
        ("name", StringType(), "ä"),
        ("flag", BooleanType(), True),
    ]
    with table.update_schema() as update:
        for column, kind, value in added:
            update.add_column(column, kind, default_value=value)
    filled = {column: value for column, _, value in added}
    nothing = dict.fromkeys(filled)
    table.append(arrow(table, [{"id": 3, **nothing}, {"id": 4, **nothing, "small": 1}]))
    return [{"id": 1, **filled}, {"id": 2, **filled}, {"id": 3, **nothing}, {"id": 4, **nothing, "small": 1}]


def _deleted(version: int, file_format: str, catalog: Catalog, name: str) -> list[Row]:
    """Rows of several files are deleted twice, and one updated; the spec has changed in between."""
    table = _create(catalog, name, NUMBERED, version, file_format)
    table.append(arrow(table, numbered(0, 10)))
    table.delete("id in (0, 3, 9)")
    with table.update_spec() as update:
        update.add_field("id", BucketTransform(2), "id_bucket")
    table.append(arrow(table, numbered(10, 20)))
    table.delete("id in (1, 10, 15)")
    table.update({"name": "changed"}, "id = 5")
    rows = [row for row in numbered(0, 20) if row["id"] not in (0, 3, 9, 1, 10, 15)]
    return [{**row, "name": "changed"} if row["id"] == 5 else row for row in rows]


def _equal(file_format: str, version: int, catalog: Catalog, name: str) -> list[Row]:
    """Keys of two columns with a null; a key deleted comes back later, with the delete and after it."""
    table = _create(catalog, name, NUMBERED, version, file_format)
    table.append(arrow(table, numbered(0, 14)))
    kind = pa.schema([("id", pa.int64()), ("name", pa.string())])
    keys = pa.Table.from_pylist(
        [{"id": 1, "name": None}, {"id": 4, "name": "plain"}, {"id": 5, "name": "x"}], schema=kind
    )
    with table.new_row_delta() as delta:
        delta.delete_equal(keys, ["id", "name"])
        delta.add_rows(arrow(table, numbered(1, 2)))
    with table.new_row_delta() as delta:
        delta.delete_equal(pa.table({"id": pa.array([6, 7], pa.int64())}), ["id"])
    table.append(arrow(table, numbered(6, 7)))
    return [row for row in numbered(0, 14) if row["id"] not in (4, 7)]


def _mixed(catalog: Catalog, name: str) -> list[Row]:
    """Files of all formats, positions and equality deletes of other formats than their data."""
    table = _create(catalog, name, NUMBERED, 2)
    for start, file_format in ((0, "parquet"), (10, "orc"), (20, "avro")):
        table.set_properties({"write.format.default": file_format})
        table.append(arrow(table, numbered(start, start + 10)))
    table.delete("id in (2, 12, 22)")
    table.set_properties({"write.format.default": "orc"})
    with table.new_row_delta() as delta:
        delta.delete_equal(pa.table({"id": pa.array([3, 13, 23], pa.int64())}), ["id"])
    return [row for row in numbered(0, 30) if row["id"] % 10 not in (2, 3)]


def _added(catalog: Catalog, name: str) -> list[Row]:
    """Files without field ids, as migration takes them: columns are found by a name mapping, times are INT96."""
    table = _create(catalog, name, NUMBERED, 2)
    rows = numbered(0, 10)
    path = f"{table.location().removeprefix('file:')}/data/part-0.parquet"
    os.makedirs(os.path.dirname(path), exist_ok=True)
    pq.write_table(arrow(table, rows), path, use_deprecated_int96_timestamps=True)
    table.add_files([path])
    with table.update_schema() as update:
        update.rename_column("name", "title")
    table = catalog.load_table(name)
    more = _whole(table.schema(), [{**row, "title": row["name"]} for row in numbered(10, 12)])
    table.append(arrow(table, more))
    return _whole(table.schema(), [{**row, "title": row["name"]} for row in numbered(0, 12)])


def _nanos(catalog: Catalog, name: str) -> list[Row]:
    table = _create(catalog, name, _fields({"id": LongType(), "at": TimestampNanoType()}), 3)
    values = [0, 1, -1, 1709210096789012345, -(10**18) - 7]
    schema = pa.schema([("id", pa.int64()), ("at", pa.timestamp("ns"))])
    table.append(pa.table([pa.array(range(5), pa.int64()), pa.array(values, pa.timestamp("ns"))], schema=schema))
    texts = ("1970-01-01T00:00:00", "1970-01-01T00:00:00.000000001", "1969-12-31T23:59:59.999999999")
    more = ("2024-02-29T12:34:56.789012345", "1938-04-24T22:13:19.999999993")
    return [{"id": number, "at": text} for number, text in enumerate((*texts, *more))]


def _time_of_day(catalog: Catalog, name: str) -> list[Row]:
    schema = _fields({"id": LongType(), "clock": TimeType()})
    rows = [{"id": 1, "clock": datetime.time(23, 59, 59, 999999)}, {"id": 2}, {"id": 3, "clock": datetime.time(0)}]
    return _plain(schema, rows, 2, "parquet", catalog, name)


def cases() -> Iterator[Case]:
    """All tables, in the order of the matrix."""
    formats = {"Parquet": "parquet", "ORC": "orc", "Avro": "avro"}
    values, times, odd = _fields(VALUES), _fields(TIMES), _fields(ODD)
    yield Case("Values of version 1", "Parquet", partial(_plain, values, VALUE_ROWS, 1, "parquet"))
    for title, each in formats.items():
        yield Case("Values", title, partial(_plain, values, VALUE_ROWS, 2, each))
    yield Case("Values of version 3", "Parquet", partial(_plain, values, VALUE_ROWS, 3, "parquet"))
    yield Case("UUID and fixed", "Parquet", partial(_plain, odd, ODD_ROWS, 2, "parquet"))
    yield Case("Time of day", "Parquet", _time_of_day)
    yield Case("Nanoseconds (version 3)", "Parquet", _nanos)
    for title, each in formats.items():
        yield Case("Nested columns", title, partial(_plain, NESTED, NESTED_ROWS, 2, each))
    for feature, texts in (
        ("Times after 1970", AFTER_1970),
        ("Times before 1970", BEFORE_1970),
        ("Before 1970 with less than a millisecond", UNDER_A_MILLISECOND),
        ("The last second before 1970", LAST_SECOND),
        ("Times before 1582", BEFORE_1582),
        ("Times of the years 1 to 9999", FAR),
    ):
        for title, each in formats.items():
            if texts is not LAST_SECOND or title != "ORC":  # ORC has no form of it
                yield Case(feature, title, partial(_plain, times, _times(texts), 2, each))
    for title, each in formats.items():
        yield Case("Changed partitions", title, partial(_partitions, each))
        yield Case("Changed schema", title, partial(_evolved, each))
    yield Case("Added files without ids", "Parquet", _added)
    for title, each in formats.items():
        yield Case("Position deletes", title, partial(_deleted, 2, each))
    for title, each in formats.items():
        yield Case("Equality deletes", title, partial(_equal, each, 2))
    yield Case("Deletes and data of several formats", "mixed", _mixed)
    for title, each in formats.items():
        yield Case("Deletion vectors (version 3)", title, partial(_deleted, 3, each))
    for title, each in formats.items():
        yield Case("Initial defaults (version 3)", title, partial(_defaults, each))


def write(catalog: Catalog, namespace: str) -> list[Written]:
    """Writes all tables into a namespace."""
    made = []
    for number, case in enumerate(cases()):
        name = f"{namespace}.t{number}"
        rows = case.build(catalog, name)
        table = catalog.load_table(name)
        columns = tuple(field.name for field in table.schema().fields)
        made.append(Written(case, name, table.metadata_location, columns, as_json(rows)))
    return made


def as_json(rows: Sequence[Row]) -> tuple[str, ...]:
    """Rows in the form of `tests.support.peer_rows`."""
    return tuple(sorted(json.dumps([encode(value) for value in row.values()]) for row in rows))
