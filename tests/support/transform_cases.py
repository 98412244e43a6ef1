"""Partition transforms at the extremes of every type, and their results as PyIceberg computes them.

One table for the three that compute them here: values one by one, Arrow columns, and Spark's functions in Java.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
TIMES = [
    EPOCH + dt.timedelta(microseconds=each) for each in (0, -1, 1, 3_599_999_999, -3_600_000_001, 1_700_000_000_123_456)
]
TIMES += [dt.datetime(1, 1, 1, tzinfo=dt.timezone.utc), dt.datetime(9999, 12, 31, 23, 59, 59, tzinfo=dt.timezone.utc)]
LONGS = [0, 1, -1, 9, 10, -10, 34, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63) + 100]
VALUES: dict[str, list[Any]] = {
    "int": [each for each in LONGS if -(2**31) + 100 <= each < 2**31],
    "bigint": LONGS,
    "string": ["", "a", "iceberg", "äöü€", "𐐷b𐐷", "0123456789abcdef"],
    "binary": [b"", b"\x00", b"\xff\xfe\xfd", b"0123456789"],
    "decimal(9,2)": [Decimal("0.00"), Decimal("14.20"), Decimal("-14.21"), Decimal("99999.99"), Decimal("-0.01")],
    "decimal(38,10)": [
        Decimal("0E-10"),
        Decimal("9" * 27 + ".0123456789"),
        Decimal("-12345678901234567890.5000000000"),
    ],
    "date": [each.date() for each in TIMES],
    "timestamp": TIMES,
    "timestamp_ntz": [each.replace(tzinfo=None) for each in TIMES],
}
CALLS = [
    *[("bucket", number, type_name) for number in (1, 16, 2**31 - 1) for type_name in VALUES],
    *[("truncate", width, each) for width in (1, 3, 100) for each in VALUES if "time" not in each and each != "date"],
    *[(name, 0, each) for name in ("years", "months", "days", "hours") for each in VALUES if "time" in each],
    *[(name, 0, "date") for name in ("years", "months", "days")],
]


def of_pyiceberg(name: str, number: int, type_name: str, value: Any) -> Any:
    from pyiceberg import transforms, types
    from pyiceberg.utils.datetime import date_to_days, datetime_to_micros

    kinds = {
        "int": types.IntegerType(),
        "bigint": types.LongType(),
        "string": types.StringType(),
        "binary": types.BinaryType(),
        "decimal(9,2)": types.DecimalType(9, 2),
        "decimal(38,10)": types.DecimalType(38, 10),
        "date": types.DateType(),
        "timestamp": types.TimestamptzType(),
        "timestamp_ntz": types.TimestampType(),
    }
    stored = {"date": date_to_days, "timestamp": datetime_to_micros, "timestamp_ntz": datetime_to_micros}
    value = stored[type_name](value) if type_name in stored else value
    plain = {"years": "Year", "months": "Month", "days": "Day", "hours": "Hour"}
    if name in plain:
        transform = getattr(transforms, f"{plain[name]}Transform")()
    else:
        transform = getattr(transforms, f"{name.title()}Transform")(number)
    result = transform.transform(kinds[type_name])(value)
    return EPOCH.date() + dt.timedelta(days=result) if name == "days" else result
