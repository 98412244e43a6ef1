"""Random tables through Spark: the rows are those of the Python API, and filters find those that the reference says."""

from __future__ import annotations

import re
import uuid
from collections import defaultdict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st

from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.catalog import Catalog
from hms_iceberg.spec.data_types import TimestampNanoType, TimestamptzNanoType, TimeType
from hms_iceberg.spec.schema import Schema
from tests.support.expression_strategies import (
    EXAMPLES,
    KINDS,
    expressions,
    matches,
    own_literals,
    predicates,
)
from tests.support.memory_metastore import InMemoryMetastore
from tests.support.random_tables import COLUMNS, RandomTable, random_tables
from tests.support.spark_conditions import condition
from tests.support.spark_tables import arrow_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

# PySpark has no nanoseconds; of times, older versions have no literals.
HELD = tuple(kind for kind in KINDS if not isinstance(kind, (TimestampNanoType, TimestamptzNanoType, TimeType)))


def on_disk(folders: pytest.TempPathFactory) -> Callable[[Schema], RandomTable]:
    def create(schema: Schema) -> RandomTable:
        catalog = Catalog("files", InMemoryMetastore(), ArrowStorage(), {})
        catalog.create_namespace("db", {"location": str(folders.mktemp("random"))})
        return RandomTable(catalog, "db.t", schema)

    return create


def comparable(table: pa.Table) -> list[tuple[Any, ...]]:
    """Rows by number, with values that are equal where they are the same: of times the numbers, of floats the text."""
    columns = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_date32(column.type):
            column = column.cast(pa.int32())
        elif pa.types.is_timestamp(column.type):
            column = column.cast(pa.int64())
        elif pa.types.is_floating(column.type):
            column = pc.cast(column, pa.string())
        columns[name] = [str(each) if isinstance(each, bytes) else each for each in map(_plain, column.to_pylist())]
    return sorted(zip(columns["n"], *(columns[name] for name in sorted(columns)), strict=True), key=lambda row: row[0])


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, uuid.UUID) else value


def spark_takes(expression: Any) -> bool:
    """Whether Spark can translate a condition for any source, plain Parquet too: not with one of the first times or
    days that its types hold ("long overflow", "integer overflow").
    """
    text = condition(expression)
    times = re.findall(r"timestamp_micros\(cast\('(-?\d+)'", text)
    days = re.findall(r"date_from_unix_date\((-?\d+)\)", text)
    return all(int(each) > -(2**63) + 10 * 86_400_000_000 for each in times) and all(
        int(each) > -(2**31) + 50_000 for each in days
    )


@settings(
    max_examples=max(1, EXAMPLES // 8),
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
)
@given(st.data())
def test_spark_reads_any_table_as_the_python_api_and_filters_it_as_the_reference(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    made = data.draw(random_tables(on_disk(tmp_path_factory), HELD, ("parquet", "parquet", "orc", "avro"), evolve=True))
    leaves = st.one_of(*(predicates(name, kind, own_literals) for name, kind in made.kinds.items()))
    asked = [data.draw(expressions(leaves).filter(spark_takes)) for _ in range(4)]
    frame = spark.read.format("iceberg").load(made.table.metadata_location)
    frame.createOrReplaceTempView("random_table")

    columns = [name for name in COLUMNS if name in made.kinds]
    named = arrow_of(frame.selectExpr("n", *(f"{name} as `{name}`" for name in columns)))
    arrow = made.table.scan(selected_fields=("n", *columns)).to_arrow()
    flat = {"n": arrow["n"]}
    for name in columns:
        flat[name] = pc.struct_field(arrow["s"], ["c"]) if name == "s.c" else arrow[name]
    assert comparable(named) == comparable(pa.table(flat))

    conditions = [condition(each) for each in asked]
    note("\n".join(conditions))
    selects = [f"select {place} q, n from random_table where {text}" for place, text in enumerate(conditions)]
    found = defaultdict(list)
    for row in spark.sql(" union all ".join(selects)).collect():
        found[row.q].append(row.n)
    for place, expression in enumerate(asked):
        wanted = [number for number, row in made.rows.items() if matches(expression, row, made.kinds) is True]
        assert sorted(found[place]) == sorted(wanted), conditions[place]
        if place == 0:
            (known,) = spark.sql(f"select count(*), min(n), max(n) from random_table where {conditions[0]}").collect()
            assert tuple(known) == (len(wanted), min(wanted, default=None), max(wanted, default=None))
