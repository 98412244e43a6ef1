"""Rows of tables written by Apache Iceberg (Java), read through Spark SQL: a spread of the reads of every third table,
other ones for every commit, or all.

The Python API plans as Spark does here, and reads all of them in any run (`tests/golden/arrow`).
"""

from __future__ import annotations

import datetime as dt
import json
import re
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from hms_iceberg.spark import extend
from hms_iceberg.spec.data_types import TimeType
from hms_iceberg.spec.metadata_columns import LAST_UPDATED_SEQUENCE_NUMBER, ROW_ID
from hms_iceberg.spec.schema import Schema
from tests.support.golden_rows import comparable, encoded_rows
from tests.support.spark_tables import arrow_of, rows_of
from tests.support.spread import ALL, SEED

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from hms_iceberg.catalog import Catalog

GOLDEN = Path("/tmp/hms_iceberg_golden/public")
CASES = sorted(path.parent.name for path in GOLDEN.glob("*/expected.json"))

# What Spark's types cannot hold is refused, never misread: those of PySpark have no nanoseconds.
NANOSECONDS = "UnsupportedError: Cannot read the column n .* its type is timestamp_ns, which this Spark cannot hold"
REFUSED = {"c13_v3_types": NANOSECONDS, "c13_v3_types_parquet": NANOSECONDS}

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.generated_code,
]


@cache
def expected(case: str) -> dict[str, Any]:
    return json.loads((GOLDEN / case / "expected.json").read_text())


@pytest.fixture(scope="module")
def golden(catalog: Catalog, spark: SparkSession) -> str:
    """All golden tables, registered in one namespace; literals and casts of the type time are switched on."""
    catalog.create_namespace("golden")
    for case in CASES:
        catalog.register_table(("golden", case), f"file:{GOLDEN / case / expected(case)['metadata_file']}")
    spark.conf.set("spark.sql.timeType.enabled", "true")
    return "golden"


def table_text(name: str, read: dict[str, Any]) -> str:
    if read.get("ref"):
        return f"{name} version as of '{read['ref']}'"
    if read.get("as_of_timestamp_ms"):
        return f"{name} timestamp as of timestamp_millis({read['as_of_timestamp_ms']})"
    if read.get("snapshot_id"):
        return f"{name} version as of {read['snapshot_id']}"
    return name


def asked(read: dict[str, Any]) -> list[str]:
    """The columns that a read asks for, in the order of the result, which is that of the schema."""
    names = list(read.get("columns") or [])
    if any("." in name for name in names):
        return names
    order = [name for name, _ in read["schema"]] if "schema" in read else list(read["rows"][0])
    return sorted(names, key=order.index)


def select(frame: DataFrame, read: dict[str, Any]) -> DataFrame:
    columns = asked(read)
    lineage = [ROW_ID.name, LAST_UPDATED_SEQUENCE_NUMBER.name] if read.get("row_lineage") else []
    if columns:
        return frame.selectExpr(*(f"{quoted(name)} as `{name}`" for name in columns), *lineage)
    return frame.select("*", *lineage)


def quoted(name: str) -> str:
    return ".".join(f"`{part}`" for part in name.split("."))


def flat(row: dict[str, Any], read: dict[str, Any]) -> list[Any]:
    """The expected values; a nested column that was asked for stands for itself, not within its struct."""
    if not any("." in name for name in read.get("columns") or []):
        return list(row.values())
    values = []
    for name in asked(read):
        value: Any = row
        for part in name.split("."):
            value = None if value is None else value[part]
        values.append(value)
    return values


class Columns:
    """What encoded_rows asks of a schema: the types, in order; an id may be there twice."""

    def __init__(self, schema: Schema, read: dict[str, Any]) -> None:
        names = asked(read)
        self.fields = [schema.find_field(name) for name in names] if names else list(schema.fields)
        if read.get("row_lineage"):
            self.fields += [ROW_ID, LAST_UPDATED_SEQUENCE_NUMBER]


def text(values: list[Any]) -> str:
    return json.dumps(values, separators=(",", ":"), ensure_ascii=False)


def read_schema(catalog: Catalog, name: tuple[str, str], read: dict[str, Any]) -> Schema:
    scan = catalog.load_table(name).scan()
    if read.get("ref"):
        return scan.use_ref(read["ref"]).table_schema
    if read.get("as_of_timestamp_ms"):
        return scan.as_of(read["as_of_timestamp_ms"]).table_schema
    if read.get("snapshot_id"):
        return scan.use_snapshot(read["snapshot_id"]).table_schema
    return scan.table_schema


def chosen(case: str) -> list[dict[str, Any]]:
    """All reads, or the first of each kind and every twelfth of the others; tables in turn begin with another one."""
    kinds: Counter[str] = Counter()
    some = []
    for read in expected(case)["reads"]:
        kind = read["name"].partition("_")[0]
        if ALL or kinds[kind] == 0 or (kinds[kind] + CASES.index(case)) % 12 == 0:
            some.append(read)
        kinds[kind] += 1
    return some


def with_marks(case: str) -> Any:
    """A case with a column of the type time is not for every Spark."""
    has_time = '"time"' in (GOLDEN / case / "expected.json").read_text()
    return pytest.param(case, marks=pytest.mark.since_spark("4.1", "the type time")) if has_time else case


@pytest.mark.parametrize("case", [with_marks(case) for case in (CASES if ALL else CASES[SEED % 3 :: 3])])
def test_every_read_gives_the_rows_that_java_wrote(
    case: str, golden: str, spark: SparkSession, catalog: Catalog
) -> None:
    def differences(read: dict[str, Any]) -> str | None:
        from pyspark.errors import PySparkException

        wanted = comparable(case, read, sorted(text(flat(row, read)) for row in read["rows"]))
        try:
            found = spark_rows(spark, catalog, (golden, case), read)
        except PySparkException as error:
            refused = case in REFUSED and re.search(REFUSED[case], str(error))
            return None if refused else f"{read['name']}: {str(error)[:500]}"
        rows = comparable(case, read, found)
        if rows == wanted:
            return None
        extra, missing = sorted(set(rows) - set(wanted))[:3], sorted(set(wanted) - set(rows))[:3]
        return f"{read['name']}: {len(rows)} rows, expected {len(wanted)}; extra {extra}, missing {missing}"

    with ThreadPoolExecutor(3) as pool:
        assert [each for each in pool.map(differences, chosen(case)) if each] == []


def spark_rows(spark: SparkSession, catalog: Catalog, name: tuple[str, str], read: dict[str, Any]) -> list[str]:
    """The rows of a read, in the form of the expected ones."""
    frame = spark.sql(f"select * from {table_text('.'.join(name), read)}")
    if read.get("filter"):
        frame = frame.where(read["filter"])
    columns: Any = Columns(read_schema(catalog, name, read), read)
    times = [field.name for field in columns.fields if isinstance(field.field_type, TimeType)]
    selected = select(frame, read)
    for time in times:  # PySpark turns them into Python's, but not into Arrow's
        selected = selected.withColumn(time, selected[time].cast("string"))
    table = arrow_of(selected)
    for time in times:
        values = [None if value is None else dt.time.fromisoformat(value) for value in table[time].to_pylist()]
        table = table.set_column(table.column_names.index(time), time, pa.array(values, pa.time64("us")))
    return encoded_rows(table, columns)


@pytest.mark.since_spark("4.0", "the type variant")
@pytest.mark.parametrize("case", ["unshredded", "primitives", "objects"])
def test_variants_are_the_json_that_spark_makes_of_javas_rows(spark: SparkSession, case: str) -> None:
    folder = GOLDEN.parent / "variants" / case
    rows = spark.read.format("iceberg").load(str(folder)).selectExpr("n", "to_json(v)").orderBy("n").collect()
    assert [tuple(row) for row in rows] == [(n, text) for n, text, _ in json.loads((folder / "rows.json").read_text())]


@pytest.mark.parametrize("case", ["copied", "vectors", "upgraded", "evolved"])
def test_tables_of_format_version_4_are_previewed_as_java_wrote_them(spark: SparkSession, case: str) -> None:
    folder = GOLDEN.parent / "v4" / case
    wanted = json.loads((folder / "rows.json").read_text())
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    drafts = {"type": "hadoop", "warehouse": f"file:{GOLDEN.parent}", "preview.format-v4": "true"}
    extend(spark, catalogs={"drafts": drafts})
    table = f"drafts.v4.{case}"
    as_json = "to_json(struct(*), map('ignoreNullFields', 'false'))"
    rows = spark.sql(f"select id, {as_json} from {table} order by id").collect()
    assert [list(row) for row in rows] == wanted["rows"]
    for snapshot_id, numbers in wanted["snapshots"]:
        found = spark.sql(f"select id from {table} version as of {snapshot_id} order by id").collect()
        assert [row.id for row in found] == numbers
    for text, numbers in wanted["filters"].items():
        found = spark.sql(f"select id from {table} where {text} order by id").collect()
        assert [row.id for row in found] == numbers, text
    files = spark.sql(f"select file_path, content, record_count, spec_id from {table}.files").collect()
    assert sorted([row[0].rpartition("/")[2], *row[1:]] for row in files) == sorted(wanted["files"])
    before = sorted(folder.rglob("*"))
    for statement in (
        f"insert into {table} select * from {table}",
        f"delete from {table} where id = 1",
        f"update {table} set s = 'x' where id = 4",
        f"insert overwrite {table} select * from {table}",
        f"alter table {table} add column more int",
        f"call drafts.system.rewrite_data_files(table => 'v4.{case}', options => map('rewrite-all', 'true'))",
        f"call drafts.system.set_current_snapshot('v4.{case}', {wanted['snapshots'][0][0]})",
    ):
        with pytest.raises(Exception, match=r"Cannot change table.*format version 4"):
            spark.sql(statement).collect()
    assert sorted(folder.rglob("*")) == before


@pytest.mark.since_spark("4.1", "the type geometry")
@pytest.mark.parametrize("case", ["written", "deleted"])
def test_shapes_are_those_that_java_reads(spark: SparkSession, case: str) -> None:
    folder = GOLDEN.parent / "shapes" / case
    spark.conf.set("spark.sql.geospatial.enabled", "true")
    spark.read.format("iceberg").load(f"file:{folder}").createOrReplaceTempView("java_shapes")
    columns = ", ".join(f"hex(st_asbinary({each}))" for each in ("geom", "metres", "geog", "s.g"))
    found = rows_of(spark, f"select id, {columns} from java_shapes")
    assert [list(row) for row in found] == json.loads((folder / "rows.json").read_text())
