"""ORC and Avro files are written in the JVM as the Python API writes them: the same rows, and the same metrics."""

from __future__ import annotations

import json
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from hms_iceberg.spec.data_types import (
    DecimalType,
    DoubleType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    UnknownType,
)
from hms_iceberg.spec.schema import Schema
from tests.integration.spark.test_file_formats import every_type, plain
from tests.support.spark_tables import data_files, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hms_iceberg.catalog import Catalog
    from hms_iceberg.table import Table

pytestmark = [pytest.mark.spark, pytest.mark.generated_code]

FORMATS = ("orc", "avro")
METRICS = ("value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")


def local(path: str) -> str:
    return path.removeprefix("file:").replace("///", "/")


@pytest.fixture
def given(catalog: Catalog, namespace: str) -> pa.Table:
    """Rows of every type, in a Parquet table `given` too."""
    rows = every_type()
    catalog.create_table(f"{namespace}.given", rows.schema, properties={"format-version": "3"}).append(rows)
    return rows


def both(spark: SparkSession, catalog: Catalog, namespace: str, rows: pa.Table, **properties: str) -> list[Table]:
    """A table that the Python API wrote, and one that Spark wrote, of the rows that the table `given` has."""
    tables = [
        catalog.create_table(f"{namespace}.{side}", rows.schema, properties={"format-version": "3", **properties})
        for side in ("python", "spark")
    ]
    tables[0].append(rows)
    spark.sql(f"insert into {namespace}.spark select /*+ coalesce(1) */ * from {namespace}.given order by n")
    tables[1].refresh()
    return tables


@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize("metrics", ["truncate(3)", "full", "counts", "none"])
def test_every_type_is_written_and_described_as_the_python_api_does(
    spark: SparkSession, catalog: Catalog, namespace: str, given: pa.Table, file_format: str, metrics: str
) -> None:
    properties = {"write.format.default": file_format, "write.metadata.metrics.default": metrics}
    tables = both(spark, catalog, namespace, given, **properties)
    found = [plain(table.scan().to_arrow().sort_by("n")) for table in tables]
    assert repr(found[1]) == repr(found[0])
    theirs, ours = (table.inspect.files().to_pylist()[0] for table in tables)
    for name in ("file_format", "record_count", "sort_order_id", "spec_id", "equality_ids", "key_metadata"):
        assert ours[name] == theirs[name], name
    assert (ours["split_offsets"] is None) == (theirs["split_offsets"] is None) == (file_format == "avro")
    for name in METRICS:
        assert ours[name] == theirs[name], name
    assert bool(ours["value_counts"]) == (metrics != "none")
    assert bool(ours["lower_bounds"]) == (metrics in ("full", "truncate(3)"))


@pytest.mark.parametrize("file_format", FORMATS)
def test_files_have_the_columns_and_attributes_that_the_python_api_gives_them(
    spark: SparkSession, catalog: Catalog, namespace: str, given: pa.Table, file_format: str
) -> None:
    tables = both(spark, catalog, namespace, given, **{"write.format.default": file_format})
    (ours,), (theirs,) = ([local(each.file_path) for each in data_files(table)] for table in tables)
    if file_format == "orc":
        assert str(orc.ORCFile(theirs).schema) == str(orc.ORCFile(ours).schema)
        assert orc.ORCFile(theirs).writer == "ORC_JAVA"
        return
    headers = []
    for path in (ours, theirs):
        with open(path, "rb") as file:
            headers.append(fastavro.reader(file).metadata)
    assert json.loads(headers[1]["avro.schema"]) == json.loads(headers[0]["avro.schema"])
    assert json.loads(headers[1]["iceberg.schema"]) == json.loads(headers[0]["iceberg.schema"])
    assert headers[1]["avro.codec"] == headers[0]["avro.codec"] == "deflate"


@pytest.mark.parametrize("file_format", FORMATS)
def test_values_of_narrower_types_become_those_of_the_table_and_unknown_columns_are_left_out(
    spark: SparkSession, catalog: Catalog, namespace: str, file_format: str
) -> None:
    schema = Schema(
        NestedField(1, "n", LongType(), True),
        NestedField(2, "nothing", UnknownType()),
        NestedField(3, "x y", DoubleType()),
        NestedField(4, "cents", DecimalType(30, 2)),
        NestedField(5, "some", ListType(6, LongType(), False)),
        NestedField(7, "small", IntegerType()),
        NestedField(8, "by", MapType(9, StructType(NestedField(10, "a", LongType())), 11, DecimalType(20, 1), False)),
    )
    name = f"{namespace}.wide"
    properties = {"format-version": "3", "write.format.default": file_format}
    table = catalog.create_table(name, schema, properties=properties)
    spark.createDataFrame(
        [(1, None, 1.5, Decimal("-1.25"), [1, None], -128, {(7,): Decimal("2.5")}), (2, *[None] * 6)],
        "n int, nothing void, `x y` float, cents decimal(25, 2), some array<int>, small tinyint, "
        "by map<struct<a: int>, decimal(3, 1)>",
    ).coalesce(1).writeTo(name).append()
    rows = table.refresh().scan().to_arrow().sort_by("n").to_pylist()
    assert [tuple(row.values()) for row in rows] == [
        (1, None, 1.5, Decimal("-1.25"), [1, None], -128, [({"a": 7}, Decimal("2.5"))]),
        (2, *[None] * 6),
    ]
    (file,) = table.inspect.files().to_pylist()
    assert dict(file["lower_bounds"])[1] == bytes([1, *[0] * 7]) and dict(file["null_value_counts"])[3] == 1
    assert rows_of(spark, f"select n, `x y`, cents, some, small from {name} where cents < 0") == [
        (1, 1.5, Decimal("-1.25"), [1, None], -128)
    ]


@pytest.mark.parametrize("file_format", FORMATS)
def test_values_that_have_no_form_in_a_file_are_refused_and_leave_none(
    spark: SparkSession, catalog: Catalog, namespace: str, file_format: str
) -> None:
    name = f"{namespace}.refused"
    schema = Schema(
        NestedField(1, "n", LongType(), True),
        NestedField(2, "at", StructType(NestedField(3, "t", TimestampType()))),
        NestedField(4, "by", MapType(5, StringType(), 6, LongType())),
    )
    table = catalog.create_table(name, schema, properties={"write.format.default": file_format})
    options = {"check-nullability": "false"}
    refused = {
        "null, null, null": "(?i)null value appeared in non-nullable|InvalidInputError: the column n is required"
    }
    times = ["1969-12-31 23:59:59.001", "1969-12-31 23:59:59.999999"]
    fine = ["1969-12-31 23:59:59", "1969-12-31 23:59:59.000999", "1969-12-31 23:59:58.999999", "1970-01-01 00:00:00.5"]
    if file_format == "orc":
        for time in times:
            refused[f"1, named_struct('t', timestamp_ntz'{time}'), null"] = (
                r"UnsupportedError: Cannot write column 'at\.t' to an ORC file: it has a time less than a second before"
            )
    else:
        fine += times
    for values, message in refused.items():
        rows = spark.sql(f"select {values}").toDF("n", "at", "by")
        rows = rows.selectExpr(
            "cast(n as long) n", "cast(at as struct<t: timestamp_ntz>) at", "cast(by as map<string, bigint>) by"
        )
        with pytest.raises(Exception, match=message):
            rows.writeTo(name).options(**options).append()
    assert not list(Path(local(table.location())).rglob(f"*.{file_format}"))
    for n, time in enumerate(fine):
        spark.sql(f"insert into {name} select {n}L, named_struct('t', timestamp_ntz'{time}'), map('a', 1L, 'b', 2L)")
    found = table.refresh().scan().to_arrow().sort_by("n").column("at").to_pylist()
    assert [row["t"] for row in found] == [datetime.fromisoformat(time) for time in fine]


def test_a_map_that_has_a_key_twice_is_refused_where_a_format_cannot_hold_it(
    spark: SparkSession, catalog: Catalog, namespace: str, tmp_path: Path
) -> None:
    kind = pa.map_(pa.string(), pa.int64())
    rows = pa.table({"by": pa.array([[("a", 1), ("b", 2)], [("k", 1), ("k", 2)]], kind)})
    pq.write_table(rows, tmp_path / "twice.parquet")
    for file_format in FORMATS:
        name = f"{namespace}.twice_{file_format}"
        table = catalog.create_table(name, rows.schema, properties={"write.format.default": file_format})
        writer = spark.read.parquet(str(tmp_path)).writeTo(name)
        if file_format == "avro":
            with pytest.raises(Exception, match="TypeMismatchError: Cannot write a map that has the key 'k' twice"):
                writer.append()
        else:
            writer.append()
            assert table.refresh().scan().to_arrow()["by"].to_pylist() == rows["by"].to_pylist()


@pytest.mark.parametrize(
    ("file_format", "codec"),
    [
        ("orc", "snappy"),
        ("orc", "zstd"),
        ("orc", "none"),
        ("orc", "lz4"),
        ("avro", "snappy"),
        ("avro", "zstd"),
        ("avro", "uncompressed"),
    ],
)
def test_files_end_at_their_size_and_have_the_codec_and_stripes_of_the_tables_properties(
    spark: SparkSession, catalog: Catalog, namespace: str, file_format: str, codec: str
) -> None:
    name, count = f"{namespace}.sized", 60_000
    properties = {
        "write.format.default": file_format,
        f"write.{file_format}.compression-codec": codec,
        "write.orc.stripe-size-bytes": "300000",
        "write.orc.bloom.filter.columns": "id,missing",
        "write.target-file-size-bytes": "1000000",
    }
    inner = pa.struct([("a", pa.int64()), ("b", pa.list_(pa.int64()))])
    schema = pa.schema([("id", pa.int64()), ("text", pa.string()), ("many", pa.list_(inner))])
    table = catalog.create_table(name, schema, properties=properties)
    many = "transform(sequence(0L, id % 4), each -> named_struct('a', id + each, 'b', sequence(0L, id % 3)))"
    spark.sql(f"insert into {name} select id, sha2(cast(id as string), 256), {many} from range(0, {count}, 1, 1)")
    files = table.refresh().inspect.files().to_pylist()
    assert sum(file["record_count"] for file in files) == count and len(files) > 1
    assert all(file["file_size_in_bytes"] < 1_700_000 for file in files)
    for file in files:
        path = local(file["file_path"])
        assert Path(path).stat().st_size == file["file_size_in_bytes"]
        if file_format == "orc":
            layout = orc.ORCFile(path)
            assert layout.compression == ("UNCOMPRESSED" if codec == "none" else codec.upper())
            assert layout.nstripes == len(file["split_offsets"])
        else:
            with open(path, "rb") as opened:
                found = fastavro.reader(opened).metadata["avro.codec"]
            assert found == {"zstd": "zstandard", "uncompressed": "null"}.get(codec, codec)
    if file_format == "orc":
        assert max(len(file["split_offsets"]) for file in files) > 1
    assert rows_of(spark, f"select count(*), sum(id), count(distinct text) from {name}") == [
        (count, count * (count - 1) // 2, count)
    ]
    found = table.scan(selected_fields=("id", "many")).to_arrow().sort_by("id")["many"].to_pylist()
    assert found == [[{"a": n + each, "b": list(range(n % 3 + 1))} for each in range(n % 4 + 1)] for n in range(count)]


@pytest.mark.parametrize("file_format", FORMATS)
def test_no_file_is_written_by_python(
    spark: SparkSession, catalog: Catalog, namespace: str, given: pa.Table, file_format: str
) -> None:
    name = f"{namespace}.written"
    spark.sql(
        f"create table {name} using iceberg tblproperties ('write.format.default' = '{file_format}') as "
        f"select n, text, nested from {namespace}.given"
    )
    assert rows_of(spark, f"select n from {name}") == [(n,) for n in range(5)]
    assert all(file.file_format == file_format.upper() for file in data_files(catalog.load_table(name)))
