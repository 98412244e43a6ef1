"""What INSERT of our Spark writes, its peers read, and describe as Apache Iceberg describes its own."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from hms_iceberg.spec.data_types import NestedField, StringType
from hms_iceberg.spec.partitions.partition_specs import PartitionField, PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.transforms.partition_transforms import IdentityTransform
from tests.support.every_type import COLUMNS, EVERY_TYPE, ROWS
from tests.support.java_peer import encode
from tests.support.peer_rows import arrow_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hms_iceberg.catalog import Catalog

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.spark]

FORMATS = ("parquet", "orc", "avro")
METRICS = ("value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")


def answers(rows: list[Any]) -> list[str]:
    return sorted(json.dumps(encode(row)) for row in rows)


@pytest.mark.parametrize("version", ["1", "2", "3"])
def test_java_and_pyiceberg_read_rows_of_every_type_in_every_format(
    spark: SparkSession, iceberg_java: Any, pyiceberg_catalog: Any, catalog: Catalog, namespace: str, version: str
) -> None:
    name = f"{namespace}.every"
    schema = Schema(*EVERY_TYPE.fields, NestedField(24, "kept_as", StringType()))
    spec = PartitionSpec(PartitionField(24, 1000, IdentityTransform(), "kept_as"))
    table = catalog.create_table(name, schema, partition_spec=spec, properties={"format-version": version})
    for file_format in FORMATS:
        spark.sql(f"alter table {name} set tblproperties ('write.format.default' = '{file_format}')")
        spark.sql(f"insert into {name} select *, '{file_format}' from values {ROWS} as v({COLUMNS})")
    expected = answers(spark.sql(f"select * from values {ROWS} as v({COLUMNS})").collect())
    for file_format in FORMATS:
        query = f"select {COLUMNS} from {{}} where kept_as = '{file_format}'"
        assert answers(spark.sql(query.format(name)).collect()) == expected, file_format
        assert answers(iceberg_java.sql(query.format(f"ice.{name}"))) == expected, file_format
    # PyIceberg makes an empty list of a list of structs that is null.
    columns = tuple(field.name for field in schema.fields if field.name != "l")
    theirs = pyiceberg_catalog.load_table(name).scan("kept_as == 'parquet'", selected_fields=columns).to_arrow()
    ours = table.refresh().scan("kept_as = 'parquet'", selected_fields=columns).to_arrow()
    assert arrow_rows(theirs) == arrow_rows(ours)


@pytest.mark.parametrize("file_format", FORMATS)
def test_files_are_described_key_by_key_as_java_describes_them(
    spark: SparkSession, iceberg_java: Any, catalog: Catalog, namespace: str, file_format: str
) -> None:
    rows = f"select /*+ coalesce(1) */ * from values {ROWS} as v({COLUMNS})"
    files = []
    for side in ("ours", "theirs"):
        name = f"{namespace}.{side}"
        properties = {"write.format.default": file_format, "write.metadata.metrics.column.bin": "counts"}
        table = catalog.create_table(name, EVERY_TYPE, properties=properties)
        with table.update_sort_order() as order:
            order.asc("id")
        if side == "ours":
            spark.sql(f"insert into {name} {rows}")
        else:
            iceberg_java.sql(f"insert into ice.{name} {rows}")
        files += table.refresh().inspect.files().to_pylist()
    ours, theirs = files
    for name in ("record_count", "sort_order_id", "spec_id"):
        assert ours[name] == theirs[name], name
    assert ours["sort_order_id"] != 0
    if file_format != "parquet":  # Java counts the fields of structs otherwise in ORC files, and nothing in Avro files
        return
    assert ours["split_offsets"] == theirs["split_offsets"]
    for name in METRICS:
        assert dict(ours[name]) == dict(theirs[name]) != {}, name
    assert dict(ours["column_sizes"]).keys() == dict(theirs["column_sizes"]).keys()


def test_snapshots_of_overwrites_have_the_operation_that_java_gives_them(
    spark: SparkSession, iceberg_java: Any, catalog: Catalog, namespace: str
) -> None:
    statements = [
        "create table {t} (k int, v string) using iceberg partitioned by (k)",
        "insert into {t} replace where false values (1, 'a'), (2, 'b')",
        "insert into {t} replace where k = 7 values (7, 'c')",
        "insert into {t} replace where k = 1 and k = 2 values (8, 'd')",
        "insert into {t} replace where k = 7 select * from {t} where false",
        "insert into {t} replace where false select * from {t} where false",
        "insert overwrite {t} values (9, 'e')",
        "insert overwrite {t} select * from {t} where false",
    ]
    found = []
    for run, name in ((spark.sql, f"{namespace}.ours"), (iceberg_java.sql, f"ice.{namespace}.theirs")):
        for statement in statements:
            run(statement.format(t=name))
        table = catalog.load_table(name.removeprefix("ice."))
        summaries = [snapshot.summary for snapshot in table.snapshots()]
        keys = ("operation", "added-records", "deleted-records", "total-records")
        found.append([[summary.get(key) for key in keys] for summary in summaries])
        found.append(sorted(tuple(row.values()) for row in table.scan().to_arrow().to_pylist()))
    assert found[:2] == found[2:]
