"""INSERT and its kind: what Spark writes is what Spark selects, in files as the table wants them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hms_iceberg.spec.data_types import (
    BinaryType,
    DateType,
    DecimalType,
    FixedType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestamptzType,
    UUIDType,
)
from hms_iceberg.spec.partitions.partition_specs import PartitionField, PartitionSpec
from hms_iceberg.spec.schema import Schema
from tests.support.every_type import EVERY_TYPE, ROWS
from tests.support.file_content import content
from tests.support.hdfs_path import local_path
from tests.support.spark_tables import rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hms_iceberg.catalog import Catalog
    from hms_iceberg.table import Table

pytestmark = [pytest.mark.spark, pytest.mark.generated_code]


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_rows_of_every_type_are_read_back_by_spark_and_by_arrow(
    file_format: str, spark: SparkSession, catalog: Catalog, namespace: str
) -> None:
    properties = {"write.format.default": file_format}
    table = catalog.create_table(f"{namespace}.every", EVERY_TYPE, properties=properties)
    columns = ", ".join(f"`{field.name}`" for field in EVERY_TYPE.fields)
    selected = f"select * from values {ROWS} as v({columns})"
    spark.sql(f"insert into {namespace}.every {selected}")
    expected = [[str(value) for value in row] for row in rows_of(spark, f"{selected} order by id")]
    assert [[str(v) for v in row] for row in rows_of(spark, f"select * from {namespace}.every order by id")] == expected

    found = table.refresh().scan().to_arrow().sort_by("id").to_pylist()
    assert str(found[0]["u"]) == "123e4567-e89b-12d3-a456-426614174000" and found[0]["fx"] == b"\x01\x02\x03"
    assert str(found[0]["st"]["u"]) == "ffffffff-ffff-ffff-ffff-ffffffffffff"
    assert found[0]["m"] == [("k", b"\x01\x02"), ("n", None)] and found[1]["l"] == []
    assert all(value is None for value in found[2].values())
    file = next(iter(table.scan().plan_files())).file
    assert file.file_format == file_format.upper()
    assert file_format != "parquet" or footer_ids(file.file_path) == set(EVERY_TYPE.index_by_id)


def footer_ids(location: str) -> set[int]:
    """All field ids in a file's schema."""
    found: set[int] = set()

    def collect(field: pa.Field) -> None:
        if (field.metadata or {}).get(b"PARQUET:field_id"):
            found.add(int(field.metadata[b"PARQUET:field_id"]))
        children = [field.type.field(at) for at in range(field.type.num_fields)]
        if pa.types.is_map(field.type):
            children = [field.type.key_field, field.type.item_field]
        for child in children:
            collect(child)

    for field in pq.read_schema(content(location)):
        collect(field)
    return found


def unsigned_zeros(metrics: list[tuple[int, Any]]) -> list[tuple[int, Any]]:
    """Metrics of columns, -0.0 as 0.0: Arrow's bounds take one for the other."""
    zeros = {b"\0\0\0\x80": bytes(4), b"\0\0\0\0\0\0\0\x80": bytes(8)}
    return [(field_id, zeros.get(value, value) if isinstance(value, bytes) else value) for field_id, value in metrics]


@pytest.mark.parametrize("file_format", ["parquet", "orc"])
def test_metrics_are_those_of_the_same_rows_written_by_python(
    file_format: str, spark: SparkSession, catalog: Catalog, namespace: str
) -> None:
    properties = {"write.format.default": file_format}
    table = catalog.create_table(f"{namespace}.every", EVERY_TYPE, properties=properties)
    columns = ", ".join(f"`{field.name}`" for field in EVERY_TYPE.fields)
    spark.sql(f"insert into {namespace}.every select /*+ coalesce(1) */ * from values {ROWS} as v({columns})")
    other = catalog.create_table(f"{namespace}.other", EVERY_TYPE, properties=properties)
    other.append(table.refresh().scan().to_arrow())
    (ours,), (theirs,) = (each.inspect.files().to_pylist() for each in (table, other))
    for name in ("value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds"):
        assert unsigned_zeros(ours[name]) == unsigned_zeros(theirs[name]), name
        assert ours[name], name
    assert [field_id for field_id, _ in ours["column_sizes"]] == [field_id for field_id, _ in theirs["column_sizes"]]
    assert ours["record_count"] == 3 and ours["sort_order_id"] == 0
    assert ours["split_offsets"] == theirs["split_offsets"]


@pytest.fixture
def parts(catalog: Catalog, namespace: str) -> Table:
    """A table partitioned by every transform that a string, number, binary and time has."""
    schema = Schema(
        NestedField(1, "id", LongType()),
        NestedField(2, "s", StringType()),
        NestedField(3, "dec", DecimalType(12, 2)),
        NestedField(4, "bin", BinaryType()),
        NestedField(5, "ts", TimestamptzType()),
        NestedField(6, "day", DateType()),
        NestedField(7, "u", UUIDType()),
        NestedField(8, "st", StructType(NestedField(9, "n", IntegerType()))),
    )
    fields = [
        (1, "bucket[7]"), (1, "truncate[4]"), (2, "bucket[5]"), (2, "truncate[2]"), (2, "identity"), (3, "bucket[3]"),
        (3, "truncate[50]"), (4, "bucket[3]"), (4, "truncate[1]"), (5, "hour"), (5, "bucket[4]"), (6, "month"),
        (7, "bucket[8]"), (9, "identity"), (9, "void"),
    ]  # fmt: skip
    spec = PartitionSpec(
        *(PartitionField(source, 1000 + at, kind, f"p{at}") for at, (source, kind) in enumerate(fields))
    )
    return catalog.create_table(f"{namespace}.parts", schema, partition_spec=spec)


def test_partitions_are_those_that_python_makes_of_the_rows(
    spark: SparkSession, catalog: Catalog, namespace: str, parts: Table
) -> None:
    spark.sql(f"""
        insert into {namespace}.parts
        select id - 5, if(id = 3, null, concat('ä€', id % 3, '/ x')), cast(id * 37.31 - 100 as decimal(12, 2)),
          if(id = 4, null, cast(concat('b', id) as binary)), timestamp_micros((id - 4) * 5000000000001),
          date_add(date'1969-12-20', cast(id * 17 as int)), uuid(),
          if(id = 2, null, named_struct('n', cast(id % 2 as int)))
        from range(8)""")
    other = catalog.create_table(f"{namespace}.other", parts.schema(), partition_spec=parts.spec())
    other.append(parts.refresh().scan().to_arrow())
    ours, theirs = (
        sorted((repr(task.file.partition), Path(task.file.file_path).parent.as_posix().split("/data/")[1])
               for task in each.scan().plan_files())
        for each in (parts, other)
    )  # fmt: skip
    assert ours == theirs


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_a_write_that_fails_leaves_no_file(spark: SparkSession, parts: Table, namespace: str, file_format: str) -> None:
    spark.sql(f"alter table {namespace}.parts set tblproperties ('write.format.default' = '{file_format}')")
    before = parts.refresh().metadata_location
    with pytest.raises(Exception, match="too late"):
        spark.sql(f"""
            insert into {namespace}.parts select id, if(id = 7, raise_error('too late'), 'a'), null, null, null, null,
            null, null from range(8)""")
    assert parts.refresh().metadata_location == before
    assert list(local_path(parts.location()).rglob(f"*.{file_format}")) == []


def test_a_value_that_a_fixed_column_cannot_hold_is_refused(
    spark: SparkSession, catalog: Catalog, namespace: str
) -> None:
    schema = Schema(NestedField(1, "fx", FixedType(3)), NestedField(2, "u", UUIDType()))
    for file_format in ("parquet", "orc", "avro"):
        catalog.create_table(f"{namespace}.{file_format}", schema, properties={"write.format.default": file_format})
        with pytest.raises(Exception, match=r"InvalidInputError: a value of 1 bytes .* column fx of type fixed\[3\]"):
            spark.sql(f"insert into {namespace}.{file_format} values (X'01', null)")
        with pytest.raises(Exception, match="InvalidInputError: 'no uuid' does not fit the column u of type uuid"):
            spark.sql(f"insert into {namespace}.{file_format} values (null, 'no uuid')")


def test_a_setting_of_hadoop_counts_as_long_as_it_is_set(spark: SparkSession, catalog: Catalog, namespace: str) -> None:
    table = catalog.create_table(f"{namespace}.t", pa.schema([("s", pa.string())]))
    settings, name = spark.sparkContext._jsc.hadoopConfiguration(), "parquet.compression.codec.zstd.level"
    text = " ".join(str(number * number % 7919) for number in range(20_000))
    sizes, before = [], set()
    for level in (None, "-50", "19", None):
        if level is None:
            settings.unset(name)
        else:
            settings.set(name, level)
        spark.sql(f"insert into {namespace}.t values ('{text}')")
        assert spark.table(f"{namespace}.t").count() == len(before) + 1
        now = {task.file.file_path for task in table.refresh().scan().plan_files()}
        (new,), before = now - before, now
        sizes.append(pq.read_metadata(content(new)).row_group(0).column(0).total_compressed_size)
    assert sizes[1] > 30_000 and max(sizes[0], sizes[2], sizes[3]) < 20_000


def test_zeros_of_both_signs_that_spark_leaves_among_one_another_are_two_partitions(
    spark: SparkSession, namespace: str
) -> None:
    name = f"{namespace}.zeros"
    spark.sql(f"create table {name} (id bigint, d double) using iceberg partitioned by (d)")
    spark.sql(f"insert into {name} select id, cast(id % 3 as double) * (1 - 2 * (id % 2)) from range(200)")
    assert rows_of(spark, f"select count(*), count(distinct id), sum(id) from {name}") == [(200, 200, 19900)]
    negative = sum(each % 3 == 0 and each % 2 == 1 for each in range(200))
    assert rows_of(spark, f"select count(*) from {name} where cast(d as string) = '-0.0'") == [(negative,)]


def test_names_of_files_do_not_depend_on_the_locale(spark: SparkSession, namespace: str) -> None:
    name, locale = f"{namespace}.local", spark._jvm.java.util.Locale
    spark.sql(f"create table {name} (day date, ts timestamp) using iceberg partitioned by (months(day), hours(ts))")
    before = locale.getDefault()
    locale.setDefault(locale.forLanguageTag("ar-EG"))  # which has digits of its own
    try:
        spark.sql(f"insert into {name} values (date'2024-02-29', timestamp'2024-02-29 07:00:00')")
    finally:
        locale.setDefault(before)
    ((path,),) = spark.sql(f"select file_path from {name}.files").collect()
    assert path.isascii() and "/day_month=2024-02/ts_hour=2024-02-29-07/00000-" in path
