"""Spark's tasks shred variants as Python's writer does: the same columns, bounds and rows of the same first rows."""

from __future__ import annotations

import datetime as dt
import math
import random
import uuid
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hms_iceberg.spec.data_types import ListType, LongType, NestedField, StringType, StructType, UUIDType, VariantType
from hms_iceberg.spec.schema import Schema
from hms_iceberg.variant import variant_column, variant_of, variants_to_json
from tests.support.spark_tables import data_files, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hms_iceberg.catalog import Catalog
    from hms_iceberg.table import Table

pytestmark = [pytest.mark.spark, pytest.mark.since_spark("4.0", "the type variant")]

PLAIN = {"format-version": "3"}
SHREDDED = {**PLAIN, "write.parquet.shred-variants": "true", "write.parquet.variant-inference-buffer-size": "40"}
NOON = dt.datetime(2024, 1, 2, 12, tzinfo=dt.timezone.utc)


def of_all_types(n: int) -> Any:
    """A value with a field of each type; some rows have others instead."""
    return {
        "byte": n % 100, "short": n + 1000, "int": n * 100_000, "long": n << 40, "yes": n % 3 == 0,
        "text": "é" * (n % 90), "real": math.nan if n == 150 else n / 4, "exact": Decimal(n * 7).scaleb(-2),
        "wide": Decimal(n + 10**14).scaleb(-1), "widest": -Decimal(n + 10**30), "day": NOON.date() + dt.timedelta(n),
        "zoned": NOON + dt.timedelta(hours=n), "at": NOON.replace(tzinfo=None), "bytes": bytes(n % 7),
        "list": [{"q": n, "r": [n, None]} for _ in range(n % 4)], "deep": {"a": {"b": n, f"rare{n}": n}, "b": None},
        "uuid": uuid.UUID(int=n), "mixed": n if n % 2 else "t", "null": None, f"rare{n % 50}": [n],
    }  # fmt: skip


OTHERS: list[Any] = [
    None, {}, [], 5, "text", {"byte": 2**40, "int": "text", "list": {"q": 1}, "deep": 5, "exact": Decimal("0.001")},
    {"text": 1, "yes": 0, "day": NOON, "at": NOON, "real": 5, "bytes": "x", "widest": Decimal(10**37)},
    {"list": [1, None, [2], {"q": "x", "other": 1}], "deep": {"a": [], "c": 1}, "exact": Decimal("10000000.00")},
]  # fmt: skip


def written_by_both(spark: SparkSession, catalog: Catalog, namespace: str, data: pa.Table, **more: str) -> list[Table]:
    """Tables with the same rows in the same order: not shredded, shredded by Python, and shredded by Spark."""
    schema = Schema(NestedField(1, "n", LongType()), NestedField(2, "v", VariantType()))
    tables = [
        catalog.create_table(f"{namespace}.{name}", schema, properties={**properties, **more})
        for name, properties in (("plain", PLAIN), ("python", SHREDDED), ("spark", SHREDDED))
    ]
    for table in tables[:2]:
        table.append(data)
    spark.sql(f"insert into {namespace}.spark select /*+ coalesce(1) */ * from {namespace}.plain")
    tables[2].refresh()
    return tables


def shape(path: str) -> list[tuple[str, str, str, int, int]]:
    """The leaves of a Parquet file, in the order of their paths."""
    schema = pq.read_metadata(path.removeprefix("file:")).schema
    whole = ("Int(bitWidth=32, isSigned=true)", "Int(bitWidth=64, isSigned=true)")  # as integers are without a name
    return sorted(
        (
            each.path,
            each.physical_type,
            "None" if str(each.logical_type) in whole else str(each.logical_type),
            each.max_definition_level,
            each.max_repetition_level,
        )
        for each in (schema.column(at) for at in range(len(schema)))
    )


@pytest.mark.since_spark("4.1", "a reader of Parquet files that name variants")
@pytest.mark.parametrize("limit", ["50", "100000"])
def test_columns_bounds_and_rows_are_those_of_python(
    spark: SparkSession, catalog: Catalog, namespace: str, limit: str
) -> None:
    chance = random.Random(5)
    values = [of_all_types(n) for n in range(200)]
    for value in OTHERS:
        values.insert(chance.randrange(60, 200), value)
    variants: list[Any] = [None, *map(variant_of, values), None]
    data = pa.table({"n": range(len(variants)), "v": variant_column(variants)})
    plain, python, by_spark = written_by_both(
        spark, catalog, namespace, data, **{"write.parquet.row-group-limit": limit}
    )
    (own,), (its,) = data_files(python), data_files(by_spark)
    assert shape(its.file_path) == shape(own.file_path)
    assert len(shape(own.file_path)) > 40
    for side in ("lower_bounds", "upper_bounds", "value_counts", "null_value_counts"):
        assert getattr(its, side) == getattr(own, side), side
    rows = plain.scan().to_arrow().sort_by("n")
    wanted = list(zip(rows["n"].to_pylist(), variants_to_json(rows["v"]).to_pylist(), strict=True))
    for table in (python, by_spark):
        found = table.scan().to_arrow().sort_by("n")
        assert list(zip(found["n"].to_pylist(), variants_to_json(found["v"]).to_pylist(), strict=True)) == wanted
    query = "select n, to_json(v), schema_of_variant(v) from {}"
    assert rows_of(spark, query.format(f"{namespace}.spark")) == rows_of(spark, query.format(f"{namespace}.plain"))
