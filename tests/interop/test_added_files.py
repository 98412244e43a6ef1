"""Apache Iceberg (Java) reads files of other writers that tables took in where they are as this project does."""

from __future__ import annotations

import datetime as dt
import json
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from hms_iceberg.arrow.columns.arrow_schema import to_arrow
from hms_iceberg.arrow.columns.arrow_types import stands_for
from hms_iceberg.catalog import load_catalog
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
    LongType,
    NestedField,
    StringType,
    TimestampType,
    TimestamptzType,
    UUIDType,
)
from hms_iceberg.spec.manifests.avro_container import parsed_schema, write_container
from hms_iceberg.spec.schema import Schema

pytestmark = [pytest.mark.interop, pytest.mark.slow]

AT = dt.datetime(2020, 1, 2, 3, 4, 5, 123456)
ONE = uuid.UUID(int=5).bytes
TABLE: list[IcebergType] = [
    *(IntegerType(), LongType(), FloatType(), DoubleType(), BooleanType(), DecimalType(9, 2), DecimalType(20, 2)),
    *(StringType(), BinaryType(), FixedType(4), UUIDType(), DateType(), TimestampType(), TimestamptzType()),
]
VALUES: dict[pa.DataType, Any] = {
    **dict.fromkeys([pa.int8(), pa.int16(), pa.int32(), pa.int64()], 7),
    **dict.fromkeys([pa.float32(), pa.float64()], 1.5),
    pa.bool_(): True,
    **dict.fromkeys([pa.decimal128(9, 2), pa.decimal128(20, 2)], Decimal("1.50")),
    pa.string(): "abcd",
    pa.binary(): b"abcd",
    pa.binary(4): b"abcd",
    pa.binary(16): ONE,
    pa.date32(): AT.date(),
    **dict.fromkeys([pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.timestamp("ns"), pa.timestamp("ns", "UTC")], AT),
}


@pytest.mark.parametrize("file_format", ["parquet", "orc"])
def test_every_type_that_is_taken_in_is_read_by_java(iceberg_java: Any, tmp_path: Path, file_format: str) -> None:
    pairs = [
        (kind, wanted)
        for wanted in TABLE
        for kind in VALUES
        if stands_for(kind, wanted, file_format)
        and not (file_format == "orc" and isinstance(wanted, UUIDType))  # the bytes are of another length
    ]
    if file_format == "orc":
        pairs.append((pa.binary(), UUIDType()))
    columns = {
        f"c{number}": pa.array([ONE if wanted == UUIDType() else VALUES[kind], None], kind)
        for number, (kind, wanted) in enumerate(pairs)
    }
    path = tmp_path / f"f.{file_format}"
    (pq if file_format == "parquet" else orc).write_table(pa.table(columns), str(path))
    _compare(iceberg_java, path, [wanted for _, wanted in pairs])


def test_every_type_of_avro_that_is_taken_in_is_read_by_java(iceberg_java: Any, tmp_path: Path) -> None:
    decimal = {"logicalType": "decimal", "precision": 9, "scale": 2}
    date, millis = {"type": "int", "logicalType": "date"}, {"type": "long", "logicalType": "timestamp-millis"}
    micros = {"type": "long", "logicalType": "timestamp-micros"}
    fixed = {"type": "fixed", "name": "f", "size": 4}
    enum = {"type": "enum", "name": "e", "symbols": ["abcd"]}
    cases: list[tuple[IcebergType, Any, Any]] = [
        *((IntegerType(), "int", 7), (LongType(), "int", 7), (LongType(), "long", 7), (BooleanType(), "boolean", True)),
        *((FloatType(), "float", 1.5), (DoubleType(), "float", 1.5), (DoubleType(), "double", 1.5)),
        *((StringType(), "string", "abcd"), (StringType(), enum, "abcd"), (BinaryType(), "bytes", b"abcd")),
        (UUIDType(), {"type": "fixed", "name": "u", "size": 16, "logicalType": "uuid"}, ONE),
        (FixedType(16), {"type": "fixed", "name": "v", "size": 16}, ONE),
        *((FixedType(4), fixed, b"abcd"), (DecimalType(9, 2), {"type": "bytes", **decimal}, b"\x00\x96")),
        (DecimalType(20, 2), {"type": "fixed", "name": "d", "size": 4, **decimal}, b"\0\0\x00\x96"),
        *((DateType(), date, 18_263), (TimestampType(), millis, 1_577_934_245_000)),
        *((TimestamptzType(), millis, 1_577_934_245_000), (TimestamptzType(), micros, 1_577_934_245_123_456)),
    ]
    fields = [{"name": f"c{number}", "type": ["null", kind]} for number, (_, kind, _) in enumerate(cases)]
    plain = json.loads(json.dumps(fields, default=str))
    for field in plain:
        if isinstance(field["type"][1], dict):
            field["type"][1].pop("logicalType", None)
    rows = [
        {f"c{number}": value for number, (_, _, value) in enumerate(cases)},
        dict.fromkeys(f["name"] for f in plain),
    ]
    record = {"type": "record", "name": "r"}
    path = tmp_path / "f.avro"
    decoder = parsed_schema(json.dumps({**record, "fields": plain}).encode())
    path.write_bytes(write_container(decoder, json.dumps({**record, "fields": fields}).encode(), rows, "null", {}))
    _compare(iceberg_java, path, [wanted for wanted, _, _ in cases])


def _compare(iceberg_java: Any, path: Path, kinds: list[IcebergType]) -> None:
    """Takes the file in and has Java select from it; both readings as text, which tells the types' values apart."""
    catalog = load_catalog("files", type="hadoop", warehouse=str(iceberg_java.files))
    namespace = f"n_{uuid.uuid4().hex[:8]}"
    catalog.create_namespace(namespace)
    schema = Schema(*(NestedField(number, f"c{number - 1}", kind) for number, kind in enumerate(kinds, 1)))
    table = catalog.create_table(f"{namespace}.t", schema)
    table.add_files([str(path)])
    ours = table.scan().to_arrow()
    assert ours.schema.equals(to_arrow(table.schema()))
    expected = sorted(([_text(value) for value in row.values()] for row in ours.to_pylist()), key=str)
    columns = ", ".join(
        f"hex(c{number})" if isinstance(kind, (BinaryType, FixedType)) else f"cast(c{number} as string)"
        for number, kind in enumerate(kinds)
    )
    assert sorted(iceberg_java.sql(f"select {columns} from files.{namespace}.t"), key=str) == expected


def _text(value: Any) -> str | None:
    if isinstance(value, bytes):
        return value.hex().upper()
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dt.datetime):
        return value.replace(tzinfo=None).isoformat(" ")
    return None if value is None else str(value)
