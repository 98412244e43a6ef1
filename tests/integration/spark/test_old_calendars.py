"""Files that Spark wrote in the calendar of Java's old classes: Python and our session read what plain Spark does."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from hms_iceberg.arrow.metrics.footer_metrics import data_file_from_parquet
from hms_iceberg.spec.field_mapping import create_name_mapping
from tests.support.spark_tables import rows_of

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from hms_iceberg.catalog import Catalog
    from hms_iceberg.table import Table

pytestmark = pytest.mark.spark

ROWS = """
    select id, d, cast(t as timestamp) as t, cast(t as timestamp_ntz) as local, array(d, null) as l,
           map(id, cast(t as timestamp)) as m, named_struct('d', d, 't', cast(t as timestamp)) as s
    from values (1, date'0002-03-01', '0002-03-01 00:00:00.000001'), (2, date'1500-01-01', '1500-01-01 12:00:00'),
                (3, date'1582-10-04', '1582-10-04 23:59:59'), (4, date'1582-10-15', '1582-10-15 00:00:00'),
                (5, null, null), (6, date'1890-05-05', '1890-05-05 01:02:03.5'), (7, date'2024-02-29', '2024-02-29')
           as rows(id, d, t)
"""
PUSHDOWN = "spark.sql.parquet.filterPushdown"
CONDITIONS = (
    "d = date'1500-01-01'", "d = date'1500-01-10'", "d < date'1582-10-05'", "d >= date'1582-10-15'", "d is null",
    "t = timestamp'1500-01-01 12:00:00'", "t < timestamp'1582-10-05'", "t > timestamp'1890-05-05 01:02:03'",
    "s.d <= date'1500-01-01'", "s.t = timestamp'1582-10-04 23:59:59'", "local < timestamp_ntz'1501-01-01'",
)  # fmt: skip


@pytest.mark.parametrize("form", ["INT96", "TIMESTAMP_MICROS", "TIMESTAMP_MILLIS"])
def test_legacy_files_have_the_rows_that_plain_spark_reads(
    spark: SparkSession, catalog: Catalog, namespace: str, tmp_path: Path, form: str
) -> None:
    table, name = _table_of_legacy_files(spark, catalog, namespace, tmp_path, form), f"{namespace}.t"
    expected = rows_of(spark, "select * from plain")
    assert [str(row[1]) for row in expected[:2]] == ["0002-03-01", "1500-01-01"]
    assert rows_of(spark, f"select * from {name}") == expected
    columns = "id, unix_date(d) as d, unix_micros(t) as t, unix_date(l[0]) as l, unix_micros(m[id]) as m"
    plain = [row.asDict() for row in spark.sql(f"select {columns} from plain order by id").collect()]
    assert _numbers(table.scan().to_arrow()) == plain
    for condition in CONDITIONS:
        spark.conf.set(PUSHDOWN, "false")  # with it, plain Spark loses rows of such files
        ids = rows_of(spark, f"select id from plain where {condition}")
        spark.conf.unset(PUSHDOWN)
        assert rows_of(spark, f"select id from {name} where {condition}") == ids, condition
        if "timestamp'" not in condition and "_ntz" not in condition:
            found = table.scan(row_filter=condition.replace("date'", "'"), selected_fields=("id",)).to_arrow()
            assert [(each,) for each in sorted(found["id"].to_pylist())] == ids, condition
    early = table.scan(row_filter="t < '1582-10-06T00:00:00+00:00'").to_arrow()
    assert sorted(early["id"].to_pylist()) == [1, 2, 3]


@pytest.mark.parametrize("conversion", ["false", "true"])
def test_files_with_hives_marks_are_read_as_hive_meant_them(
    spark: SparkSession, catalog: Catalog, namespace: str, tmp_path: Path, conversion: str
) -> None:
    marks = {"writer.date.proleptic": "false", "writer.time.zone": "America/New_York"}
    times = pa.array([dt.datetime(1500, 1, 10, 6), dt.datetime(1890, 1, 1), None], pa.timestamp("us"))
    rows = pa.table({"d": pa.array([dt.date(1500, 1, 10), dt.date(2020, 1, 1), None]), "t": times})
    marked = rows.replace_schema_metadata({**marks, "writer.zone.conversion.legacy": conversion})
    pq.write_table(marked, tmp_path / "f.parquet", use_deprecated_int96_timestamps=True)
    table = catalog.create_table(f"{namespace}.h", pa.schema({"d": pa.date32(), "t": pa.timestamp("us", "UTC")}))
    mapping = create_name_mapping(table.schema())
    location = str(tmp_path / "f.parquet")
    with table.transaction() as transaction:
        transaction.set_properties({"schema.name-mapping.default": mapping.to_json()})
        file = data_file_from_parquet(table.storage, location, table.schema(), name_mapping=mapping)
        transaction.new_append().append_file(file).commit()

    python = table.scan().to_arrow()
    micros = python["t"].cast(pa.int64()).to_pylist()

    assert python["d"].to_pylist() == [dt.date(1500, 1, 1), dt.date(2020, 1, 1), None]
    if conversion == "false":
        assert python["t"].cast(pa.timestamp("us")).to_pylist() == [dt.datetime(1500, 1, 1, 6), *times.to_pylist()[1:]]
    found = spark.sql(f"select unix_date(d), unix_micros(t) from {namespace}.h").collect()
    assert {tuple(row) for row in found} == set(zip(python["d"].cast(pa.int32()).to_pylist(), micros, strict=True))


def _table_of_legacy_files(spark: SparkSession, catalog: Catalog, namespace: str, folder: Path, form: str) -> Table:
    """An Iceberg table of one file a row, written in Los Angeles, and the view `plain` of the same files."""
    spark.conf.set("spark.sql.session.timeZone", "America/Los_Angeles")
    spark.conf.set("spark.sql.parquet.outputTimestampType", form)
    for kind in ("datetime", "int96"):
        spark.conf.set(f"spark.sql.parquet.{kind}RebaseModeInWrite", "LEGACY")
    try:
        spark.sql(ROWS).repartitionByRange(4, "id").write.parquet(str(folder / "files"))
    finally:
        for key in ("outputTimestampType", "datetimeRebaseModeInWrite", "int96RebaseModeInWrite"):
            spark.conf.unset(f"spark.sql.parquet.{key}")
    spark.read.parquet(str(folder / "files")).createOrReplaceTempView("plain")
    instant = pa.timestamp("us", "UTC")
    table = catalog.create_table(
        f"{namespace}.t",
        pa.schema(
            {"id": pa.int32(), "d": pa.date32(), "t": instant, "local": pa.timestamp("us")}
            | {"l": pa.list_(pa.date32()), "m": pa.map_(pa.int32(), instant)}
            | {"s": pa.struct({"d": pa.date32(), "t": instant})}
        ),
    )
    mapping = create_name_mapping(table.schema())
    with table.transaction() as transaction:
        transaction.set_properties({"schema.name-mapping.default": mapping.to_json()})
        append = transaction.new_append()
        for path in sorted((folder / "files").glob("*.parquet")):
            append.append_file(data_file_from_parquet(table.storage, str(path), table.schema(), name_mapping=mapping))
        append.commit()
    return table


def _numbers(rows: pa.Table) -> list[dict[str, int | None]]:
    """Days and microseconds of the columns, as Spark counts them."""
    (batch,) = rows.sort_by("id").combine_chunks().to_batches()
    numbers = {
        "id": batch["id"],
        "d": batch["d"].cast(pa.int32()),
        "t": batch["t"].cast(pa.int64()),
        "l": pc.list_element(batch["l"], 0).cast(pa.int32()),
        "m": batch["m"].items.cast(pa.int64()),
    }
    return pa.table(numbers).to_pylist()
