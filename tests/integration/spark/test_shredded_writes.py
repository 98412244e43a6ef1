"""Spark's tasks shred variants as Python's writer does: the same columns, bounds and rows of the same first rows."""

from __future__ import annotations

import datetime as dt
import math
import random
import re
import uuid
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hms_iceberg.spec.data_types import (
    ListType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    UUIDType,
    VariantType,
)
from hms_iceberg.spec.schema import Schema
from hms_iceberg.variant import variant_column, variant_of, variants_to_json
from tests.support.spark_tables import data_files, plan_text, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hms_iceberg.catalog import Catalog
    from hms_iceberg.table import Table

pytestmark = [pytest.mark.spark, pytest.mark.generated_code, pytest.mark.since_spark("4.1", "shredded variants")]

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


def settings(properties: dict[str, str]) -> str:
    """Properties as SQL has them."""
    return ", ".join(f"'{name}' = '{value}'" for name, value in properties.items())


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
    (own,), (its,) = (table.inspect.files().to_pylist() for table in (python, by_spark))
    assert shape(its["file_path"]) == shape(own["file_path"])
    assert len(shape(own["file_path"])) > 40
    for name in ("lower_bounds", "upper_bounds", "value_counts", "null_value_counts", "record_count"):
        assert its[name] == own[name], name
    (bounds,) = [value for field_id, value in its["upper_bounds"] if field_id == 2]
    assert b"$['long']" in bounds and b"$['text']" not in bounds and b"$['real']" not in bounds
    rows = plain.scan().to_arrow().sort_by("n")
    wanted = list(zip(rows["n"].to_pylist(), variants_to_json(rows["v"]).to_pylist(), strict=True))
    for table in (python, by_spark):
        found = table.scan().to_arrow().sort_by("n")
        assert list(zip(found["n"].to_pylist(), variants_to_json(found["v"]).to_pylist(), strict=True)) == wanted
    query = "select n, to_json(v), schema_of_variant(v) from {}"
    assert rows_of(spark, query.format(f"{namespace}.spark")) == rows_of(spark, query.format(f"{namespace}.plain"))


MIXED = Schema(
    NestedField(1, "id", UUIDType()),
    NestedField(2, "v", VariantType()),
    NestedField(3, "s", StructType(NestedField(4, "a", LongType()), NestedField(5, "w", VariantType()))),
    NestedField(6, "n", LongType(), required=True),
    NestedField(7, "list", ListType(8, StringType(), False)),
    NestedField(9, "u", VariantType()),
    NestedField(10, "r", VariantType(), required=True),
    NestedField(11, "at", TimestampType()),
)  # fmt: skip


def test_other_columns_of_a_row_stay_beside_shredded_ones(
    spark: SparkSession, catalog: Catalog, namespace: str
) -> None:
    """Null structs and lists, which Parquet's writer keeps back until a value comes, are many and at every end."""
    name = f"{namespace}.mixed"
    table = catalog.create_table(name, MIXED, properties={**PLAIN, "write.parquet.row-group-limit": "100"})
    source = """
        select case when id % 3 = 0 then uuid_of end as id,
            parse_json('{"a": ' || id || ', "b": ["' || id || '"]}') as v,
            case when id between 150 and 440 then null else named_struct('a', id, 'w', parse_json('[' || id || ']')) end
                as s,
            id as n, case when id > 60 then null else array('x' || id, null) end as list,
            case when id % 2 = 0 then parse_json('"t' || id || '"') end as u,
            parse_json(case when id = 300 then 'null' else '{"k": ' || id || '}' end) as r,
            case when id % 5 > 0 then timestampadd(second, id, timestamp_ntz'1580-01-01') end as at
        from (select id, format_string('00000000-0000-0000-0000-%012d', id) as uuid_of from range(500))
    """
    spark.conf.set("spark.sql.iceberg.variant-inference-buffer-size", "7")
    try:
        spark.sql(source).coalesce(1).writeTo(name).option("shred-variants", "true").append()
    finally:
        spark.conf.unset("spark.sql.iceberg.variant-inference-buffer-size")
    table.refresh()
    (file,) = data_files(table)
    typed = [path for path, *_ in shape(file.file_path) if "typed_value" in path]
    assert typed == [
        "r.typed_value.k.typed_value", "r.typed_value.k.value", "u.typed_value", "v.typed_value.a.typed_value",
        "v.typed_value.a.value", "v.typed_value.b.typed_value.list.element.typed_value",
        "v.typed_value.b.typed_value.list.element.value", "v.typed_value.b.value",
    ]  # fmt: skip
    columns = "id, to_json(v), s.a, to_json(s.w), s is null, n, list, to_json(u), to_json(r), at"
    wanted = rows_of(spark, f"select {columns} from ({source})")
    assert rows_of(spark, f"select {columns} from {name}") == wanted
    spark.sql(f"delete from {name} where variant_get(v, '$.a', 'int') % 2 = 1")
    assert rows_of(spark, f"select {columns} from {name}") == [row for row in wanted if row[5] % 2 == 0]
    found = table.refresh().scan().to_arrow().sort_by("n")
    assert found["n"].to_pylist() == list(range(0, 500, 2))
    assert variants_to_json(found["u"]).to_pylist() == [f'"t{n}"' for n in range(0, 500, 2)]


def test_nine_of_ten_files_of_a_table_clustered_by_a_field_are_left_out(
    spark: SparkSession, catalog: Catalog, namespace: str
) -> None:
    name = f"{namespace}.clustered"
    spark.sql(f"create table {name} (n bigint, v variant) using iceberg tblproperties ({settings(SHREDDED)})")
    made = """parse_json('{"a": {"b": ' || id || '}, "t": "t' || id || '"}')"""
    spark.range(100_000, 102_000).repartitionByRange(20, "id").selectExpr("id as n", f"{made} as v").writeTo(
        name
    ).append()
    query = f"select n from {name} where variant_get(v, '$.a.b', 'int') >= 101950"
    assert rows_of(spark, query) == [(n,) for n in range(101_950, 102_000)]
    assert re.findall(r"(\d+) of (\d+) files", plan_text(spark.sql(query))) == [("1", "20")]
    spark.sql(f"call system.rewrite_data_files(table => '{name}', strategy => 'sort', sort_order => 'n desc')")
    assert rows_of(spark, query) == [(n,) for n in range(101_950, 102_000)]
    files = catalog.load_table(name).inspect.files().to_pylist()
    assert all([field_id for field_id, _ in file["lower_bounds"]][:2] == [1, 2] for file in files)
