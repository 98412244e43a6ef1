"""Casts of values within variants, and paths to them, are those of a running Spark: each value to each type.

Left out are a time of day alone, to which Spark adds the day of today, and doubles that Java before 19 writes with more
digits than tell them apart, of which it makes other decimals.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from hms_iceberg.errors import TypeMismatchError
from hms_iceberg.expressions import VariantGet
from hms_iceberg.spec.variant.casts import extractor
from hms_iceberg.spec.variant.paths import parse_path

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.since_spark("4.1", "the type variant")]

VALUES = r"""
true | false | null | 1Y | -1Y | 0Y | 127Y | 128S | 32768 | 2147483647 | 2147483648L | -2147483649L
9223372036854775807L | -9223372036854775808L | 16777217 | 9007199254740993L | 4611686155866341377L
0D | -0.0D | 1.5D | -1.5D | 2.5D | 0.1D | 1e10D | 1e300D | double('NaN') | double('Infinity') | double('-Infinity')
2147483647.5D | 2147483648.0D | -2147483648.9D | -2147483649.0D | 9.3e18D | 1e-7D | 100D | 1e7D
123456789.125D | 12345.675D | 0.001D | 1e22D | 1.5F | float('3.4e38') | float('NaN') | 0.1F | 16777216F | float('1e-10')
1.50BD | 2.5BD | -2.5BD | 0.001BD | 12345678901234567890.123BD | 99999999999999999999999999999999999999BD | 100BD
0.0000000001BD | 2147483647.9BD | 2147483648BD | 0.0BD | -0.5BD | 12345.675BD | 9007199254740993BD | 123456789012BD
'' | ' 12 ' | '+12' | '-12' | '12.5' | '1e3' | '1d' | '1.5D' | 'abc' | 'true' | ' TRUE ' | 'T' | 'yes' | 'n' | '1' | '0'
'2147483648' | '99999999999999999999' | 'NaN' | 'nan' | 'Infinity' | '-inf' | '+infinity' | '0x10' | '.5' | '5.' | '-'
'1_000' | '1e400' | '1 2' | '12345.675' | '0.000000000000000000001' | '\u0663' | '2024-02-30' | '2024'
'2024-01-02' | ' 2024-01-02 ' | '2024-1-2' | '2024-01' | '2024-01-02 03:04:05' | '2024-01-02T03:04:05.123456Z'
'2024-01-02T03:04:05+02:00' | '2024-01-02 x' | date'2024-01-02' | date'0001-01-01' | date'1960-05-05'
timestamp'2024-01-02 03:04:05.123456' | timestamp'1969-12-31 23:59:59.999999' | timestamp'2024-01-02 00:00:00'
timestamp_ntz'2024-01-02 03:04:05.12' | timestamp_ntz'1969-12-31 23:59:59.999999' | timestamp_ntz'0001-01-01 00:00:00'
X'616263' | X'FF' | X'' | array(1, 2) | array('a') | named_struct('b', 1)
"""
TYPES = (
    "boolean", "int", "bigint", "float", "double", "decimal(10,2)", "decimal(38,18)", "decimal(5,0)", "string", "date",
    "timestamp", "timestamp_ntz", "binary",
)  # fmt: skip
DOCUMENT = (
    r"""{"a":{"b":1,"c":[10,{"x":"t"}],"d.e":5,"":7},"k'q":2,"s p":3,"q\"r":4,"arr":[1,[2,3]],"n":null,"[0]":9}"""
)
PATHS = (
    "$;$.a;$.a.b;$['a']['b'];$[\"a\"][\"b\"];$.a['b'];$[0];$.a.c[0];$.a.c[1].x;$.a.c[2];$.a.c.x;$.a['d.e'];$.a.d.e;$.k'q;"
    "$[\"k'q\"];$['q\"r'];$.s p;$.arr[1][1];$.n;$.n.x;$.missing;$.a.b.c;$.arr[00];$['[0]'];;a;$.;$..a;$[;$['a';$[-1];"
    "$.a[*];$[99999999999];$[''];$ .a;$. a;$.a .b; $.a;$['a' ];$.a ;$[ 0 ];$.a.;$.arr[1]x;$['a?'];$.a?"
)


def stored(value: Any, kind: str) -> Any:
    """What Spark gave as text or number, as a stored value."""
    if value is None or kind in ("boolean", "int", "bigint", "string"):
        return value
    if kind in ("float", "double"):
        return "NaN" if math.isnan(value) else (value, math.copysign(1, value))
    return bytes(value) if kind == "binary" else Decimal(value) if kind.startswith("decimal") else int(value)


def test_values_are_cast_as_spark_casts_them(spark: SparkSession) -> None:
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    values = [each.strip() for line in VALUES.strip().splitlines() for each in line.split(" | ")]
    shown = {
        "date": "unix_date({})",
        "timestamp": "unix_micros({})",
        "timestamp_ntz": "unix_micros(cast({} as timestamp))",
    }
    columns = [shown.get(kind, "{}").format(f"try_variant_get(v, '$', '{kind}')") for kind in TYPES]
    variants = [
        f"to_variant_object({each})" if each.startswith(("array", "named")) else f"cast({each} as variant)"
        for each in values
    ]
    variants[values.index("null")] = "parse_json('null')"
    rows = " union all ".join(f"select {n} as n, {each} as v" for n, each in enumerate(variants))
    differences = []
    for n, variant, *found in spark.sql(f"select n, v, {', '.join(columns)} from ({rows})").collect():
        for kind, value in zip(TYPES, found, strict=True):
            own = extractor((), VariantGet("v", "$", kind).type)(bytes(variant.metadata), bytes(variant.value))
            if stored(own, kind) != stored(value, kind):
                differences.append((values[n], kind, own, value))
    assert not differences, "\n".join(map(str, differences))


def test_paths_lead_where_spark_s_lead(spark: SparkSession) -> None:
    frame = spark.range(1).selectExpr(f"parse_json({spark_text(DOCUMENT)}) as v")
    (variant,) = frame.collect()[0]
    differences = []
    for path in PATHS.split(";"):
        try:
            wanted = frame.selectExpr(f"try_variant_get(v, {spark_text(path)}, 'string')").collect()[0][0]
        except Exception:
            wanted = "refused"
        try:
            own = extractor(parse_path(path), VariantGet("v", path, "string").type)(
                bytes(variant.metadata), bytes(variant.value)
            )
        except (ValueError, TypeMismatchError):
            own = "refused"
        if own != wanted:
            differences.append((path, own, wanted))
    assert not differences, "\n".join(map(str, differences))


def spark_text(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
