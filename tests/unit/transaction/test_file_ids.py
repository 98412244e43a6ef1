"""Files that were written for columns by name keep their values, whatever happened to the columns meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hms_iceberg.errors import CommitConflictError
from hms_iceberg.spec.data_types import IntegerType, ListType, LongType, NestedField, StringType, StructType
from hms_iceberg.spec.schema import Schema
from hms_iceberg.table.table import Table, TableTransaction
from tests.support.row_tables import create, data_files_on_disk, other_writer

SCHEMA = Schema(
    NestedField(1, "a", IntegerType()),
    NestedField(2, "b", StringType()),
    NestedField(3, "places", ListType(4, StructType(NestedField(5, "x", LongType())))),
)
PLACES = pa.list_(pa.struct([("x", pa.int64())]))
OLD = {"a": 1, "b": "old", "places": [{"x": 1}]}
NEW = {"a": 2, "b": "new", "places": [{"x": 2}]}
WIDER = pa.schema([("a", pa.int64()), ("b", pa.string()), ("places", PLACES)])
UNIONS = {
    "a wider type": WIDER,
    "a column before": pa.schema([("c", pa.int64()), *WIDER]),
    "a column after": pa.schema([*WIDER, ("c", pa.int64())]),
}


def evolved(table: Table, *changes: Callable[[Any], Any]) -> None:
    """The table after changes of its columns, a commit each."""
    for change in changes:
        with other_writer(table).update_schema() as update:
            change(update)


def begun(folder: Path, union: pa.Schema) -> tuple[Table, TableTransaction]:
    """A table of one row, and a transaction that unites its columns with others and appends a row of all."""
    table = create(folder, schema=SCHEMA)
    table.append(pa.Table.from_pylist([OLD], schema=pa.schema([("a", pa.int32()), *list(WIDER)[1:]])))
    transaction = other_writer(table).transaction()
    transaction.update_schema().union_by_name(union).commit()
    new = {name: NEW.get(name, 3) for name in union.names}
    transaction.append(pa.Table.from_pylist([new], schema=union))
    return table, transaction


TAKEN_AWAY: dict[str, tuple[Callable[[Any], Any], ...]] = {
    "dropped": (lambda update: update.delete_column("b"),),
    "renamed": (lambda update: update.rename_column("b", "b2"),),
    "another one in its place": (
        lambda update: update.rename_column("b", "b2"),
        lambda update: update.add_column("b", "string"),
    ),
    "a nested one dropped": (
        lambda update: update.add_column("places.y", "long"),
        lambda update: update.delete_column("places.x"),
    ),
}


@pytest.mark.parametrize("union", UNIONS.values(), ids=list(UNIONS))
@pytest.mark.parametrize("changes", TAKEN_AWAY.values(), ids=list(TAKEN_AWAY))
def test_a_union_does_not_bring_back_a_column_that_files_know_by_its_former_id(
    tmp_path: Path, union: pa.Schema, changes: tuple[Callable[[Any], Any], ...]
) -> None:
    table, transaction = begun(tmp_path, union)
    evolved(table, *changes)
    now = other_writer(table).scan().to_arrow()
    with pytest.raises(CommitConflictError, match=r"table db\.events.*'(b|places\.element\.x)' as id [25]"):
        transaction.commit_transaction()
    assert other_writer(table).scan().to_arrow().equals(now)
    assert len(data_files_on_disk(table)) == 1


def test_the_name_of_another_case_is_the_same_column_to_a_union_without_regard_to_case(tmp_path: Path) -> None:
    table = create(tmp_path, schema=SCHEMA)
    transaction = other_writer(table).transaction()
    transaction.update_schema(case_sensitive=False).union_by_name(WIDER).commit()
    transaction.append(pa.Table.from_pylist([NEW], schema=WIDER))
    evolved(table, lambda update: update.delete_column("b"), lambda update: update.add_column("B", "string"))
    with pytest.raises(CommitConflictError, match="'b' as id 2"):
        transaction.commit_transaction()


KEPT: dict[str, tuple[Callable[[Any], Any], ...]] = {
    "moved": (lambda update: update.move_first("b"),),
    "described": (lambda update: update.update_column("b", doc="text"),),
    "renamed for a while": (
        lambda update: update.rename_column("b", "b2"),
        lambda update: update.rename_column("b2", "b"),
    ),
    "widened as well": (lambda update: update.update_column("a", "long"),),
}


@pytest.mark.parametrize("union", UNIONS.values(), ids=list(UNIONS))
@pytest.mark.parametrize("changes", KEPT.values(), ids=list(KEPT))
def test_a_union_is_replayed_over_columns_that_kept_their_ids_with_all_values(
    tmp_path: Path, union: pa.Schema, changes: tuple[Callable[[Any], Any], ...]
) -> None:
    table, transaction = begun(tmp_path, union)
    evolved(table, *changes)
    transaction.commit_transaction()
    rows = sorted(other_writer(table).scan().to_arrow().to_pylist(), key=lambda row: row["a"])
    more = {"c": 3} if "c" in union.names else {}
    assert rows == [{**OLD, **dict.fromkeys(more)}, {**NEW, **more}]
