"""A predicate that no value can fail is not true of null: no change of rows may take a row for which it is unknown."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hms_iceberg.arrow.columns.arrow_schema import to_arrow_type
from hms_iceberg.spec.data_types import (
    BinaryType,
    BooleanType,
    DecimalType,
    IcebergType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    TimeType,
)
from hms_iceberg.spec.schema import Schema
from hms_iceberg.table.table import Table
from tests.support.row_tables import MODES, create

TRUE_OF_EVERY_VALUE: list[tuple[IcebergType, Any, str]] = [
    (StringType(), "a", "v like '%'"),
    (StringType(), "a", "v >= ''"),
    (StringType(), "a", "not (v < '')"),
    (StringType(), "a", "v like '%' and k < 10"),
    (StringType(), "a", "v >= '' or k > 10"),
    (BinaryType(), b"a", "v >= X''"),
    (IntegerType(), 7, "v < 3000000000"),
    (IntegerType(), 7, "v != 3000000000"),
    (IntegerType(), 7, "v not in (3000000000)"),
    (IntegerType(), 7, "v >= -2147483648"),
    (LongType(), 7, "v <= 9223372036854775807"),
    (DecimalType(9, 2), Decimal("1.50"), "v <= 9999999.99"),
    (TimeType(), dt.time(1), "v >= '00:00:00'"),
    (BooleanType(), True, "v >= false"),
]


def table_of(folder: Path, kind: IcebergType, value: Any, version: int, mode: str, file_format: str) -> Table:
    """Two rows of one file: one with a value, one with null."""
    schema = Schema(NestedField(1, "k", IntegerType()), NestedField(2, "v", kind))
    table = create(folder, version, mode, schema=schema, **{"write.format.default": file_format})
    table.append(_rows(kind, [(0, value), (1, None)]))
    return table


def _rows(kind: IcebergType, rows: list[tuple[int, Any]]) -> pa.Table:
    plain = to_arrow_type(kind, field_ids=False)
    keys, values = zip(*rows, strict=True)
    return pa.table({"k": pa.array(keys, pa.int32()), "v": pa.array(values, plain)})


def keys(table: Table) -> list[int]:
    return sorted(table.scan().to_arrow()["k"].to_pylist())


@pytest.mark.parametrize(("kind", "value", "where"), TRUE_OF_EVERY_VALUE, ids=[each[2] for each in TRUE_OF_EVERY_VALUE])
def test_a_predicate_that_is_true_of_every_value_does_not_take_nulls(
    tmp_path: Path, kind: IcebergType, value: Any, where: str
) -> None:
    table = table_of(tmp_path, kind, value, 2, MODES[0], "parquet")
    table.delete(where)
    assert keys(table) == [1]


@pytest.mark.parametrize(
    ("version", "mode"), [(1, MODES[0]), (2, MODES[0]), (2, MODES[1]), (3, MODES[0]), (3, MODES[1])]
)
@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_neither_delete_nor_overwrite_nor_update_takes_nulls(
    tmp_path: Path, version: int, mode: str, file_format: str
) -> None:
    where, kind = "v like '%'", StringType()
    table = table_of(tmp_path / "a", kind, "a", version, mode, file_format)
    table.delete(where)
    assert keys(table) == [1]
    table = table_of(tmp_path / "b", kind, "a", version, mode, file_format)
    table.overwrite(_rows(kind, [(5, "e")]), where)
    assert keys(table) == [1, 5]
    table = table_of(tmp_path / "c", kind, "a", version, mode, file_format)
    with table.transaction() as transaction:
        transaction.append(_rows(kind, [(2, None), (3, "c")]))
        transaction.delete(where)
    assert keys(table) == [1, 2]
    table = table_of(tmp_path / "d", kind, "a", version, mode, file_format)
    assert table.update({"k": 9}, where).rows_updated == 1
    assert keys(table) == [1, 9]
