"""Variants that Python or Spark writes, shredded and not, are read and changed by Apache Iceberg, and read here again.

In folders, since Apache Iceberg 1.12 tells a metastore of columns of type "unknown", which Hive's refuses.
"""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from hms_iceberg import load_catalog
from hms_iceberg.spec.data_types import LongType, NestedField, VariantType
from hms_iceberg.spec.schema import Schema
from hms_iceberg.variant import variant_column, variant_of, variants_to_json

pytestmark = [
    pytest.mark.interop,
    pytest.mark.slow,
    pytest.mark.generated_code,
    pytest.mark.since_spark("4.0", "the type variant"),
]

SCHEMA = Schema(NestedField(1, "n", LongType()), NestedField(2, "v", VariantType()))
UTC = dt.timezone.utc
VALUES: list[Any] = [
    {
        "n": n, "yes": n % 2 == 0, "text": "x" * n * 5, "real": n / 4, "exact": Decimal(n).scaleb(-2),
        "large": Decimal(n + 10**20), "day": dt.date(1970, 1, 1 + n), "at": dt.datetime(1969, 1, 1, 1, 1, 1, n),
        "zoned": dt.datetime(2020, 1, 1, tzinfo=UTC), "bytes": bytes(n), "list": [{"q": n}, {"q": None}],
        "deep": {"a": {"b": n}}, "mixed": n if n % 2 else "t", "null": None,
    }
    for n in range(20)
] + [None, {}, {"n": "text", "other": [1]}]  # fmt: skip
OTHERS: list[Any] = [True, 5, 2**40, "a" * 100, b"x", 1.5, [], [1, [None]], dt.date(1, 1, 1), Decimal("-0.001")]


@pytest.mark.parametrize(("writer", "shredded"), [("python", "false"), ("python", "true"), ("spark", "true")])
def test_java_reads_and_changes_variants_that_are_written_here(
    iceberg_java: Any, request: pytest.FixtureRequest, writer: str, shredded: str
) -> None:
    properties = {
        "format-version": "3",
        "write.parquet.shred-variants": shredded,
        "read.parquet.vectorization.enabled": "false",  # Java cannot read shredded variants so
    }
    catalog = load_catalog("files", type="hadoop", warehouse=str(iceberg_java.files))
    catalog.create_namespace_if_not_exists("variants")
    name = f"variants.{writer}_{shredded}"
    table = catalog.create_table(name, SCHEMA, properties=properties)
    for start, values in ((0, VALUES), (100, OTHERS)):
        column = variant_column(None if value is None else variant_of(value) for value in values)
        rows = pa.table({"n": range(start, start + len(values)), "v": column})
        if writer == "python":
            table.append(rows)
        else:
            source = catalog.create_table(f"variants.source_{start}", SCHEMA, properties={"format-version": "3"})
            source.append(rows)
            read = request.getfixturevalue("spark").read.format("iceberg").load(source.location())
            read.write.format("iceberg").mode("append").save(table.location())
            table.refresh()
    query = f"select n, to_json(v) from files.{name} order by n"
    assert iceberg_java.sql(query) == found(table)
    iceberg_java.sql(f"delete from files.{name} where n % 7 = 1")
    iceberg_java.sql(f"insert into files.{name} select 1000, parse_json('{{\"n\": 1000}}')")
    table.refresh()
    changed = found(table)
    assert iceberg_java.sql(query) == changed
    assert [n for n, _ in changed] == [n for n in (*range(23), *range(100, 110)) if n % 7 != 1] + [1000]
    large = iceberg_java.sql(f"select n from files.{name} where try_variant_get(v, '$.n', 'bigint') > 10 order by n")
    assert [n for (n,) in large] == [n for n, text in changed if number(text) > 10]


def found(table: Any) -> list[list[Any]]:
    rows = table.scan().to_arrow().sort_by("n")
    return [list(row) for row in zip(rows["n"].to_pylist(), variants_to_json(rows["v"]).to_pylist(), strict=True)]


def number(text: str | None) -> int:
    value = json.loads(text or "null")
    return value["n"] if isinstance(value, dict) and isinstance(value.get("n"), int) else 0
