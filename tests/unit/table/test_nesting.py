"""Types as deep as they may be: written, changed and read in every format; deeper ones are refused at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hms_iceberg.errors import InvalidSchemaError, UnsupportedError
from hms_iceberg.spec.data_types import MAX_NESTING, IcebergType, ListType, LongType, NestedField, StructType
from hms_iceberg.spec.schema import Schema
from tests.support.row_tables import create

# The columns of a table are a struct themselves.
DEEPEST = MAX_NESTING - 1
# Beyond so many lists, Arrow cannot read Parquet files.
DEEPEST_LIST_IN_PARQUET = 49


def nested(levels: int, in_lists: bool) -> tuple[IcebergType, pa.DataType, Any]:
    """A type of so many levels, in Arrow, and a value of it."""
    kind: IcebergType = LongType()
    arrow, value = pa.int64(), 7
    for level in range(levels):
        if in_lists:
            kind, arrow, value = ListType(level + 10, kind, False), pa.list_(arrow), [value]
        else:
            kind, arrow, value = StructType(NestedField(level + 10, "f", kind)), pa.struct([("f", arrow)]), {"f": value}
    return kind, arrow, value


@pytest.mark.parametrize("in_lists", [False, True], ids=["structs", "lists"])
@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_the_deepest_column_is_written_changed_and_read(tmp_path: Path, file_format: str, in_lists: bool) -> None:
    levels = DEEPEST_LIST_IN_PARQUET if in_lists and file_format == "parquet" else DEEPEST
    kind, arrow, value = nested(levels, in_lists)
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "deep", kind))
    table = create(tmp_path, 2, "copy-on-write", schema=schema, **{"write.format.default": file_format})
    table.append(pa.table({"id": [1, 2, 3], "deep": pa.array([value, value, None], arrow)}))
    table.delete("id = 1")
    assert table.refresh().scan().to_arrow().to_pylist() == [{"id": 2, "deep": value}, {"id": 3, "deep": None}]


def test_lists_that_no_parquet_reader_takes_are_not_written(tmp_path: Path) -> None:
    kind, arrow, value = nested(DEEPEST_LIST_IN_PARQUET + 1, True)
    table = create(tmp_path, schema=Schema(NestedField(1, "deep", kind)))
    with pytest.raises(UnsupportedError, match="'deep': it makes a Parquet schema of 102 levels"):
        table.append(pa.table({"deep": pa.array([value], arrow)}))
    assert not list(tmp_path.rglob("*.parquet"))


@pytest.mark.parametrize("levels", [MAX_NESTING + 1, 150, 5000])
@pytest.mark.parametrize("in_lists", [False, True], ids=["structs", "lists"])
def test_deeper_types_are_refused(levels: int, in_lists: bool) -> None:
    with pytest.raises(InvalidSchemaError, match="81 deep in one another, at most 80"):
        nested(levels, in_lists)
