"""Rows that Spark writes, as the columns of a table and of its files."""

from __future__ import annotations

import pytest

from hms_iceberg.errors import InvalidSchemaError
from hms_iceberg.spark.schemas import spark_schema
from hms_iceberg.spark.writing.row_schema import Checks, RowSchema
from hms_iceberg.spec.data_types import IntegerType, ListType, NestedField, StructType
from hms_iceberg.spec.schema import Schema


@pytest.mark.parametrize("nested", [False, True])
def test_columns_that_would_have_one_name_in_files_are_refused(nested: bool) -> None:
    fields = [NestedField(at, name, IntegerType()) for at, name in enumerate(("a b", "x", "a_x20b"), 10)]

    def written(*columns: NestedField) -> RowSchema:
        struct = ListType(2, StructType(*columns), False)
        schema = Schema(NestedField(1, "l", struct)) if nested else Schema(*columns)
        return RowSchema.of(spark_schema(schema, "db.t"), schema, Checks("db.t"))

    told = "the table db.t: its columns 'a b' and 'a_x20b' would have the same name in files, 'a_x20b'"
    with pytest.raises(InvalidSchemaError, match=told):
        written(*fields)
    assert "a_x20b" in str(written(*fields[:2]).files)
