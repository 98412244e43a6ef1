"""Random tables with a history, for property tests of whole scans.

Tables have columns of all types, partitions by all transforms, specs and schemas that change between commits, columns
with defaults, several row groups, and deletes of every kind.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from hms_iceberg.catalog import Catalog
from hms_iceberg.errors import UnsupportedError
from hms_iceberg.spec.partitioning import UNPARTITIONED
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.transforms import Transform
from hms_iceberg.spec.types import IcebergType, LongType, NestedField
from hms_iceberg.spec.values import to_python
from hms_iceberg.table import Table
from tests.support.arrow_tables import arrow_rows
from tests.support.expression_strategies import KINDS, TRANSFORMS, near_values, table_rows, tables
from tests.support.tables import QUICK

Row = tuple[Any, ...]
COLUMNS = ("a", "b", "s.c", "e")
NUMBER = NestedField(99, "n", LongType())


class RandomTable:
    """A table, and its rows as the reference knows them: with the number in `n` and a value of every column.

    Args:
        catalog: where the table is made.
        name: its name.
        schema: its columns, to which the number is added.
    """

    def __init__(self, catalog: Catalog, name: str, schema: Schema) -> None:
        properties = {
            **QUICK,
            "format-version": "3",
            "write.parquet.row-group-limit": "2",
            "write.delete.mode": "merge-on-read",
        }
        self.table: Table = catalog.create_table(
            name, Schema(*schema.fields, NUMBER), partition_spec=UNPARTITIONED, properties=properties
        )
        self.kinds: dict[str, IcebergType] = {column: schema.find_type(column) for column in COLUMNS[:3]}
        self.rows: dict[int, Row] = {}

    def write(self, file_format: str) -> None:
        """Sets the format of the files that are written from now on."""
        if self.table.properties.get("write.format.default", "parquet") != file_format:
            with self.table.transaction() as transaction:
                transaction.set_properties({"write.format.default": file_format})

    def partition(self, fields: Sequence[tuple[str, Transform]]) -> None:
        """Replaces the partition spec; void fields count as removed already, and stay."""
        with self.table.update_spec() as update:
            void = {field.source_id for field in self.table.spec().fields if field.transform.is_void}
            for field in self.table.spec().fields:
                if not field.transform.is_void:
                    update.remove_field(field.name)
            for place, (name, transform) in enumerate(fields):
                if transform.is_void and self.table.schema().find_id(name) in void:
                    continue
                update.add_field(name, transform, f"p{len(self.table.specs())}_{place}")

    def add_column(self, kind: IcebergType, default: Any) -> None:
        """Adds the column `e`; rows so far hold the default."""
        with self.table.update_schema() as update:
            update.add_column("e", kind, default_value=None if default is None else to_python(kind, default))
        self.kinds["e"] = kind
        self.rows = {number: (*row, default) for number, row in self.rows.items()}

    def append(self, rows: Sequence[Row]) -> None:
        """Appends rows of all columns that there are, and numbers them."""
        start = max(self.rows, default=-1) + 1
        numbered = dict(enumerate(rows, start))
        self.rows |= numbered
        own = [field for field in self.table.schema().fields if field.name != "n"]
        schema = Schema(*own, NUMBER)
        self.table.append(arrow_rows([(*row, number) for number, row in numbered.items()], schema))

    def delete(self, numbers: Sequence[int], by_key: bool) -> None:
        """Deletes rows by their numbers, with equality deletes or by position."""
        if by_key:
            with self.table.new_row_delta() as delta:
                delta.delete_equal(pa.table({"n": pa.array(numbers, pa.int64())}), ["n"], UNPARTITIONED)
        else:
            self.table.delete(f"n in ({', '.join(map(str, numbers))})")
        for number in numbers:
            self.rows.pop(number, None)


def _can_be_default(kind: IcebergType, value: Any) -> bool:
    """Whether a value can be given as a default: JSON has no infinity, and Python no dates beyond the year 9999."""
    if isinstance(value, float):
        return math.isfinite(value)
    try:
        to_python(kind, value)
    except UnsupportedError:
        return False
    return True


@st.composite
def _specs(draw: st.DrawFn, kinds: dict[str, IcebergType]) -> list[tuple[str, Transform]]:
    """Up to two partition fields, of different columns."""
    possible = [(name, each) for name, kind in kinds.items() for each in TRANSFORMS if each.can_transform(kind)]
    return draw(st.lists(st.sampled_from(possible), max_size=2, unique_by=lambda each: each[0]))


@st.composite
def random_tables(
    draw: st.DrawFn,
    create: Callable[[Schema], RandomTable],
    kinds: tuple[IcebergType, ...] = KINDS,
    formats: Sequence[str] = ("parquet",),
) -> RandomTable:
    """A table with a history.

    Args:
        draw: hypothesis's.
        create: makes an empty table of some columns.
        kinds: the types of columns.
        formats: the formats of data files.
    """
    schema = draw(tables(kinds))
    made = create(schema)
    own_rows = st.lists(table_rows(schema), min_size=1, max_size=5)
    made.partition(draw(_specs(made.kinds)))
    made.write(draw(st.sampled_from(formats)))
    made.append(draw(own_rows))
    if draw(st.booleans()):
        kind = draw(st.sampled_from(kinds))
        made.add_column(kind, draw(st.none() | near_values(kind).filter(lambda each: _can_be_default(kind, each))))
    if draw(st.booleans()):
        made.partition(draw(_specs(made.kinds)))
    more = draw(own_rows)
    if "e" in made.kinds:
        more = [(*row, draw(st.none() | near_values(made.kinds["e"]))) for row in more]
    made.write(draw(st.sampled_from(formats)))
    made.append(more)
    for by_key in (True, False):
        gone = draw(st.lists(st.sampled_from(sorted(made.rows)), max_size=2, unique=True)) if made.rows else []
        if gone:
            made.delete(gone, by_key)
    return made
