"""Random tables with a history, for property tests of whole scans.

Tables have columns of all types and a deeply nested one, files of all formats, partitions by all transforms, specs and
schemas that change between commits (columns added with defaults, promoted, renamed so that they swap their names),
several row groups, and deletes of every kind.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from hms_iceberg.arrow.columns.arrow_schema import from_stored, to_arrow_type, to_stored
from hms_iceberg.catalog import Catalog
from hms_iceberg.spec.data_types import (
    DecimalType,
    DoubleType,
    IcebergType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
)
from hms_iceberg.spec.partitions.partition_specs import UNPARTITIONED
from hms_iceberg.spec.promotion import can_promote
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.transforms.partition_transforms import Transform, TruncateTransform
from hms_iceberg.table import Table
from tests.support.arrow_tables import arrow_rows
from tests.support.expression_strategies import FLOATS, KINDS, TIMESTAMPS, TRANSFORMS, near_values, table_rows, tables
from tests.support.python_values import to_python
from tests.support.tables import QUICK

Row = tuple[Any, ...]
COLUMNS = ("a", "b", "s.c", "e")
NUMBER = NestedField(99, "n", LongType())
DEEP = NestedField(
    90,
    "deep",
    ListType(
        91,
        StructType(
            NestedField(92, "x", DoubleType()), NestedField(93, "m", MapType(94, StringType(), 95, LongType(), False))
        ),
        False,
    ),
)
WIDER = (LongType(), DoubleType(), DecimalType(9, 2))


def deep_values() -> st.SearchStrategy[Any]:
    """Values of the nested column, as Arrow gives them to Python."""
    pair = st.tuples(st.sampled_from("kl"), st.none() | st.integers(-2, 2))
    entries = st.lists(pair, max_size=2, unique_by=lambda each: each[0])
    numbers = st.sampled_from([None, math.nan, -0.0, 0.0, 1.5])
    element = st.builds(lambda x, m: {"x": x, "m": m}, numbers, st.none() | entries)
    return st.none() | st.lists(st.none() | element, max_size=2)


class RandomTable:
    """A table, and its rows as the reference knows them: with the number in `n` and a value of every column.

    Args:
        catalog: where the table is made.
        name: its name.
        schema: its columns, to which the number is added.
        version: of the table's format.
        deep: whether it also has the column `deep`.
    """

    def __init__(self, catalog: Catalog, name: str, schema: Schema, version: int = 3, deep: bool = False) -> None:
        properties = {
            **QUICK,
            "format-version": str(version),
            "write.parquet.row-group-limit": "2",
            "write.delete.mode": "merge-on-read",
        }
        self.table: Table = catalog.create_table(
            name,
            Schema(*schema.fields, *([DEEP] if deep else []), NUMBER),
            partition_spec=UNPARTITIONED,
            properties=properties,
        )
        self.kinds: dict[str, IcebergType] = {column: schema.find_type(column) for column in COLUMNS[:3]}
        self.rows: dict[int, Row] = {}
        self.deep: dict[int, Any] = {}

    def __repr__(self) -> str:
        files = [(task.file.file_format, str(task.file.partition)) for task in self.table.scan().plan_files()]
        specs = [str(spec) for spec in self.table.specs().values()]
        return f"RandomTable({self.kinds}, rows {self.rows}, files {files}, specs {specs})"

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

    def promote(self) -> None:
        """Widens every column that can be, but for those that a partition would not let."""
        for name in COLUMNS[:3]:
            sources = {field.source_id for spec in self.table.specs().values() for field in spec.fields}
            if self.table.schema().find_id(name) in sources:
                continue
            for wider in WIDER:
                if wider != self.kinds[name] and can_promote(self.kinds[name], wider, self.table.format_version):
                    with self.table.update_schema() as update:
                        update.update_column(name, wider)
                    self.kinds[name] = wider

    def swap(self) -> None:
        """The columns `a` and `b` swap their names."""
        for old, new in (("a", "between"), ("b", "a"), ("between", "b")):
            with self.table.update_schema() as update:
                update.rename_column(old, new)
        self.kinds["a"], self.kinds["b"] = self.kinds["b"], self.kinds["a"]
        self.rows = {number: (row[1], row[0], *row[2:]) for number, row in self.rows.items()}

    def append(self, rows: Sequence[Row], deep: Sequence[Any] = ()) -> None:
        """Appends rows of all columns that there are, and numbers them."""
        start = max(self.rows, default=-1) + 1
        numbered = dict(enumerate(rows, start))
        self.rows |= numbered
        names = [name for name in ("a", "b", "s", "e") if name in self.table.schema().index_by_name]
        schema = Schema(*(self.table.schema().find_field(name) for name in names), NUMBER)
        made = arrow_rows([(*row, number) for number, row in numbered.items()], schema)
        if "deep" in self.table.schema().index_by_name:
            self.deep |= dict(enumerate(deep, start))
            kind = to_arrow_type(DEEP.field_type, field_ids=False, extensions=False)
            made = made.append_column("deep", pa.array(deep, kind))
        self.table.append(made)

    def delete(self, numbers: Sequence[int], by_key: bool) -> None:
        """Deletes rows by their numbers, with equality deletes or by position."""
        if by_key:
            with self.table.new_row_delta() as delta:
                delta.delete_equal(pa.table({"n": pa.array(numbers, pa.int64())}), ["n"], UNPARTITIONED)
        else:
            self.table.delete(f"n in ({', '.join(map(str, numbers))})")
        for number in numbers:
            self.rows.pop(number, None)

    def delete_like(self, number: int) -> None:
        """Deletes the rows that hold in `a` what a row holds, null like null; floats can be no key."""
        key, kind = self.rows[number][0], self.kinds["a"]
        file_format = self.table.properties.get("write.format.default", "parquet")
        if isinstance(kind, FLOATS) or _writable(key, kind, file_format) != key:
            return
        with self.table.new_row_delta() as delta:
            delta.delete_equal(pa.table({"a": from_stored([key], kind)}), ["a"], UNPARTITIONED)
        self.rows = {each: row for each, row in self.rows.items() if repr(row[0]) != repr(key)}

    def described(self, number: int) -> str:
        """All that a row holds, in a form that tells -0.0 from 0.0 and equals itself where there is a NaN."""
        return repr((*self.rows[number], self.deep[number], number))


def described(rows: pa.Table, schema: Schema) -> list[str]:
    """Rows that were read, in the same form and by their number."""
    columns: dict[str, list[Any]] = {name: [] for name in rows.column_names}
    for batch in rows.to_batches():
        for name, array in zip(rows.column_names, batch.columns, strict=True):
            columns[name] += _stored(array, schema.find_field(name))
    names = [name for name in ("a", "b", "s", "e", "deep", "n") if name in columns]
    return [repr(row) for row in sorted(zip(*(columns[name] for name in names), strict=True), key=lambda row: row[-1])]


def _stored(array: pa.Array, field: NestedField) -> list[Any]:
    array = array.storage if isinstance(array, pa.ExtensionArray) else array
    kind = field.field_type
    if isinstance(kind, StructType):
        (child,) = kind.fields
        inner = _stored(array.field(0), child)
        return [(value,) if ok else None for ok, value in zip(array.is_valid().to_pylist(), inner, strict=True)]
    return array.to_pylist() if isinstance(kind, ListType) else to_stored(array, kind)


def can_be_default(kind: IcebergType, value: Any) -> bool:
    """Whether a value can be given as a default: JSON has no infinity, and Python no dates beyond the year 9999."""
    if isinstance(value, float):
        return math.isfinite(value)
    try:
        to_python(kind, value)
    except OverflowError:
        return False
    return True


def _writable(value: Any, kind: IcebergType | None, file_format: str) -> Any:
    """A value that pyarrow can write: in ORC, times after 1970 that nanoseconds hold."""
    if file_format != "orc" or value is None or not isinstance(kind, TIMESTAMPS):
        return value
    return abs(value) % 2**53


@st.composite
def _specs(draw: st.DrawFn, kinds: dict[str, IcebergType]) -> list[tuple[str, Transform]]:
    """Up to two partition fields, of different columns."""
    possible = [
        (name, each)
        for name, kind in kinds.items()
        for each in TRANSFORMS
        # Truncating the least of 38 digits gives one of 39, which cannot be written.
        if each.can_transform(kind) and not (isinstance(each, TruncateTransform) and kind == DecimalType(38, 0))
    ]
    return draw(st.lists(st.sampled_from(possible), max_size=2, unique_by=lambda each: each[0]))


@st.composite
def random_tables(
    draw: st.DrawFn,
    create: Callable[[Schema], RandomTable],
    kinds: tuple[IcebergType, ...] = KINDS,
    formats: Sequence[str] = ("parquet",),
    evolve: bool = False,
) -> RandomTable:
    """A table with a history.

    Args:
        draw: hypothesis's.
        create: makes an empty table of some columns.
        kinds: the types of columns.
        formats: the formats of data and delete files.
        evolve: whether columns are promoted and renamed as well, and rows deleted by any of their values.
    """
    schema = draw(tables(kinds))
    made = create(schema)
    own = schema.find_type("a"), schema.find_type("b"), schema.find_type("s.c")
    swapped = False

    def append() -> None:
        chosen = draw(st.sampled_from(formats))
        made.write(chosen)
        rows: list[Row] = []
        for a, b, s in draw(st.lists(table_rows(schema), min_size=1, max_size=5)):
            a, b = _writable(a, own[0], chosen), _writable(b, own[1], chosen)
            s = None if s is None else (_writable(s[0], own[2], chosen),)
            rows.append((b, a, s) if swapped else (a, b, s))
        if "e" in made.kinds:
            kind = made.kinds["e"]
            rows = [(*row, _writable(draw(st.none() | near_values(kind)), kind, chosen)) for row in rows]
        made.append(rows, [draw(deep_values()) for _ in rows])

    made.partition(draw(_specs(made.kinds)))
    append()
    if draw(st.booleans()):
        kind = draw(st.sampled_from(kinds))
        defaults = near_values(kind).filter(lambda each: can_be_default(kind, each))
        made.add_column(kind, draw(st.none() | defaults) if made.table.format_version >= 3 else None)
    if evolve and draw(st.booleans()):
        made.promote()
    if evolve and draw(st.booleans()):
        made.swap()
        swapped = True
    if draw(st.booleans()):
        made.partition(draw(_specs(made.kinds)))
    append()
    if evolve and made.rows and draw(st.booleans()):
        made.write(draw(st.sampled_from(formats)))
        made.delete_like(draw(st.sampled_from(sorted(made.rows))))
    for by_key in (True, False):
        gone = draw(st.lists(st.sampled_from(sorted(made.rows)), max_size=2, unique=True)) if made.rows else []
        if gone:
            made.write(draw(st.sampled_from(formats)))
            made.delete(gone, by_key)
    return made
