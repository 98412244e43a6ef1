"""Tables that several tests of this folder read."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from hms_iceberg.spark import extend
from hms_iceberg.spec.data_types import DoubleType, LongType, NestedField, StringType, TimestampType
from hms_iceberg.spec.partitions.partition_specs import PartitionField, PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.transforms.partition_transforms import DayTransform, IdentityTransform
from hms_iceberg.updates.rows.row_delta import RowDelta
from tests.support.spark_tables import Rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hms_iceberg.catalog import Catalog
    from hms_iceberg.hms.embedded import EmbeddedMetastore
    from hms_iceberg.spec.manifests.manifest_values import DataFile
    from hms_iceberg.table import Table


@pytest.fixture
def ice(spark: SparkSession, metastore: EmbeddedMetastore) -> SparkSession:
    """A session with the same metastore as a named catalog, too."""
    return extend(spark, catalogs={"ice": {"uri": metastore.uri}})


@pytest.fixture
def orders(catalog: Catalog, namespace: str) -> Table:
    """Two appends of three orders each."""
    rows = Rows({"id": pa.int64(), "item": pa.string(), "price": pa.float64()})
    table = catalog.create_table(f"{namespace}.orders", rows.schema)
    table.append(rows([(1, "pen", 1.5), (2, "ink", 3.0), (3, None, None)]))
    table.append(rows([(4, "pad", 2.0), (5, "cap", 8.0), (6, "pen", 1.0)]))
    return table


@pytest.fixture
def events(catalog: Catalog, namespace: str) -> Table:
    """Events by kind (identity), day and bucket; one file for each kind and day."""
    schema = Schema(
        NestedField(1, "id", LongType(), True),
        NestedField(2, "kind", StringType()),
        NestedField(3, "at", TimestampType()),
        NestedField(4, "size", DoubleType()),
    )
    spec = PartitionSpec(
        PartitionField(2, 1000, IdentityTransform(), "kind"), PartitionField(3, 1001, DayTransform(), "day")
    )
    table = catalog.create_table(f"{namespace}.events", schema, partition_spec=spec)
    rows = Rows({"id": pa.int64(), "kind": pa.string(), "at": pa.timestamp("us"), "size": pa.float64()})
    start = dt.datetime(2024, 1, 1)
    arrow = rows(
        (n, ["click", "view", None][n % 3], start + dt.timedelta(days=n // 30, hours=n % 24), float(n))
        for n in range(90)
    )
    schema = pa.schema([arrow.schema.field(0).with_nullable(False), *list(arrow.schema)[1:]])
    table.append(arrow.cast(schema))
    return table


@pytest.fixture
def commit() -> Callable[..., None]:
    """Commits files as one snapshot."""

    def commit_files(table: Table, *files: DataFile) -> None:
        with table.transaction() as transaction:
            transaction._transaction.add(RowDelta(files))
        table.refresh()

    return commit_files
