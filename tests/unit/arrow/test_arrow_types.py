"""What Apache Iceberg 1.12 (Java, on Spark) reads of files of other writers, and what tables take in."""

from __future__ import annotations

import pyarrow as pa
import pytest

from hms_iceberg.arrow.columns.arrow_types import stands_for
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
    StringType,
    TimestampNanoType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

I8, I16, I32, I64 = pa.int8(), pa.int16(), pa.int32(), pa.int64()
UNSIGNED = [pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
TEXT, BYTES, FIX4, FIX16 = pa.string(), pa.binary(), pa.binary(4), pa.binary(16)
D9_1, D9_2, D20_2 = pa.decimal128(9, 1), pa.decimal128(9, 2), pa.decimal128(20, 2)
DAY, TIME = pa.date32(), pa.time64("us")
MS, US, NS = (pa.timestamp(unit) for unit in ("ms", "us", "ns"))
MS_UTC, US_UTC, NS_UTC = (pa.timestamp(unit, "UTC") for unit in ("ms", "us", "ns"))
NONE = pa.null()
EVERY = [
    *(I8, I16, I32, I64, *UNSIGNED, pa.float16(), pa.float32(), pa.float64(), pa.bool_(), TEXT, BYTES, FIX4, FIX16),
    *(D9_1, D9_2, D20_2, DAY, TIME, pa.time32("ms"), pa.time64("ns"), MS, US, NS, MS_UTC, US_UTC, NS_UTC, NONE),
]
# What Java reads as the same value, by format and table type; it refuses the others, or reads other values.
SAME: dict[str, dict[IcebergType, list[pa.DataType]]] = {
    "PARQUET": {
        IntegerType(): [I8, I16, I32],
        LongType(): [I8, I16, I32, I64],
        FloatType(): [pa.float32()],
        DoubleType(): [pa.float32(), pa.float64()],
        BooleanType(): [pa.bool_()],
        DecimalType(9, 2): [D9_2],
        DecimalType(20, 2): [D9_2, D20_2],
        StringType(): [TEXT],
        BinaryType(): [BYTES, FIX4, FIX16],
        FixedType(4): [FIX4],
        UUIDType(): [FIX16],
        DateType(): [DAY],
        TimestampType(): [US, US_UTC],
        TimestamptzType(): [US, US_UTC],
        TimeType(): [TIME],
        TimestampNanoType(): [NS, NS_UTC],
    },
    "ORC": {
        IntegerType(): [I8, I16, I32],
        LongType(): [I32, I64],
        FloatType(): [pa.float32()],
        DoubleType(): [pa.float32(), pa.float64()],
        BooleanType(): [pa.bool_()],
        DecimalType(9, 2): [D9_2],
        DecimalType(20, 2): [D9_2, D20_2],
        StringType(): [TEXT],
        BinaryType(): [BYTES],
        FixedType(4): [BYTES],
        UUIDType(): [BYTES],
        DateType(): [DAY],
        TimestampType(): [NS],
        TimestamptzType(): [NS_UTC],
    },
    "AVRO": {
        IntegerType(): [I32],
        LongType(): [I32, I64],
        FloatType(): [pa.float32()],
        DoubleType(): [pa.float32(), pa.float64()],
        BooleanType(): [pa.bool_()],
        DecimalType(9, 2): [D9_2],
        DecimalType(20, 2): [D9_2, D20_2],
        StringType(): [TEXT],
        BinaryType(): [BYTES, FIX4, FIX16],
        FixedType(4): [FIX4],
        UUIDType(): [FIX16],
        DateType(): [DAY],
        TimestampType(): [MS, US, MS_UTC, US_UTC],
        TimestamptzType(): [MS, US, MS_UTC, US_UTC],
        TimeType(): [TIME],
        TimestampNanoType(): [NS, NS_UTC],
    },
}


@pytest.mark.parametrize("file_format", SAME)
def test_tables_take_in_what_java_reads_as_the_same_value(file_format: str) -> None:
    kinds = [kind for kind in EVERY if file_format != "AVRO" or kind not in (I8, I16)]
    for wanted, same in SAME[file_format].items():
        assert [kind for kind in kinds if stands_for(kind, wanted, file_format)] == same, wanted


def test_int96_is_a_timestamp_of_any_unit_but_not_one_of_nanoseconds() -> None:
    for kind in (NS, US):
        assert stands_for(kind, TimestampType(), "parquet", int96=True)
        assert not stands_for(kind, TimestampNanoType(), "parquet", int96=True)
