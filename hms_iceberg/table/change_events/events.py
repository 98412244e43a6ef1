"""Events of a change stream, in memory: checked, and of each key the newest.

Operations have the names of Debezium (`c`, `r`, `u`, `d`), of databases (`I`, `U`, `D`) and of changelogs, such as
that of `Table.changelog_scan`: the row before an update is a delete, since its key may be another one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hms_iceberg.arrow.columns import nested
from hms_iceberg.arrow.columns.arrow_types import plain_field
from hms_iceberg.arrow.columns.casting import SchemaFit
from hms_iceberg.arrow.columns.nested import combine
from hms_iceberg.arrow.columns.plain import to_plain
from hms_iceberg.arrow.writing.given_rows import ArrowInput, batches_of
from hms_iceberg.errors import ChangeEventError, InvalidInputError, SchemaMismatchError, TypeMismatchError
from hms_iceberg.lazy import pl
from hms_iceberg.spec.data_types import NestedField
from hms_iceberg.spec.json_model import column_names
from hms_iceberg.spec.schema import Schema
from hms_iceberg.table.changes.key_columns import KeyColumn

DELETES = ("delete", "d", "update_before", "update_preimage")
UPSERTS = ("insert", "update", "upsert", "c", "r", "u", "i", "create", "read", "update_after", "update_postimage")


@dataclass(frozen=True)
class EventColumns:
    """The columns of a source that say what its events are."""

    keys: tuple[str, ...]
    operation: str | None = None
    order: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, keys: Sequence[str], operation: str | None, order: str | Sequence[str] | None, table: str
    ) -> EventColumns:
        """The columns by the arguments of a call; an InvalidInputError if they name no columns of the events."""
        refused = f"Cannot apply changes to table {table}"
        key_names = tuple(column_names(keys, f"{refused}: keys"))
        if not key_names:
            raise InvalidInputError(f"{refused}: keys names no columns. Give those that identify a row.")
        if operation is not None and not isinstance(operation, str):
            raise InvalidInputError(f"{refused}: operation: expected the name of a column, got {operation!r}.")
        ordered = (order,) if isinstance(order, str) else tuple(column_names(order or (), f"{refused}: order"))
        return cls(key_names, operation, ordered)

    @property
    def control(self) -> tuple[str, ...]:
        """The columns that are data only if the table has them."""
        return (*(() if self.operation is None else (self.operation,)), *self.order)

    def require_in(self, names: Sequence[str], table: str) -> None:
        """Refuses events that lack some of these columns; `names` are those that they have."""
        wanted = [*(key.split(".")[0] for key in self.keys), *self.control]
        missing = [name for name in dict.fromkeys(wanted) if name not in names]
        if missing:
            raise SchemaMismatchError(
                f"Cannot apply changes to table {table}: the events lack the column "
                f"{', '.join(map(repr, missing))}; they have {', '.join(names)}."
            )


class ChangeEvents:
    """The events of a source, read once and held in memory."""

    def __init__(self, source: ArrowInput, columns: EventColumns, table: str) -> None:
        """Reads the events, and checks that they have the columns and known operations."""
        batches, schema = batches_of(source)
        self.columns = columns
        self._table = table
        columns.require_in(schema.names, table)
        self.rows = _plain_rows(batches, schema, table)
        self.deletes = self._deletes()
        """Which events are deletes, as booleans."""

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    def _deletes(self) -> Any:
        name = self.columns.operation
        if name is None:
            return np.zeros(len(self), np.bool_)
        column = self.rows.column(name)
        if pa.types.is_null(column.type):
            column = column.cast(pa.string())
        if not pa.types.is_string(column.type):
            raise TypeMismatchError(
                f"Cannot apply changes to table {self._table}: the operation column {name!r} has type {column.type}; "
                "expected text such as insert, update, delete, or c, u, d."
            )
        said = pc.utf8_lower(column)
        deletes, upserts = (_numpy(pc.is_in(said, pa.array(names, said.type))) for names in (DELETES, UPSERTS))
        unknown = ~(deletes | upserts)
        if unknown.any():
            row = int(unknown.argmax())
            value = column[row].as_py()
            what = "has no operation" if value is None else f"has the unknown operation {value!r}"
            raise self.refused(row, f"{what} ({name}). Known are insert, update, upsert, delete, and c, r, u, i, d.")
        return deletes

    # ------------------------------------------------------------------------------------------ messages

    def refused(self, row: int, why: str) -> ChangeEventError:
        """The error for one event, which it names by its place, key and order."""
        names = dict.fromkeys((*(key.split(".")[0] for key in self.columns.keys), *self.columns.order))
        said = ", ".join(f"{name} {_shown(self.rows.column(name), row)}" for name in names)
        return ChangeEventError(f"Cannot apply changes to table {self._table}: event {row:,} ({said}) {why}", row)

    # ---------------------------------------------------------------------------------------------- rows

    def fitted(self, rows: pa.Table, schema: Schema, places: Any | None = None) -> pa.Table:
        """Rows of some events with the columns of a schema; an error names the event by its place. `places` are those
        of the rows among all events, if they are not all."""
        fit = SchemaFit(rows.schema, schema, self._table)
        fitted, start = [], 0
        for batch in rows.to_batches():
            try:
                fitted.append(fit.fit(batch))
            except InvalidInputError as error:
                inside = _first_failure(fit, batch)
                place = start + inside if places is None else int(places[start + inside])
                raise self.refused(place, f"does not fit: {error}") from error
            start += batch.num_rows
        return pa.Table.from_batches(fitted, fit.schema)

    def key_values(self, keys: Sequence[KeyColumn]) -> list[pa.ChunkedArray]:
        """The values of the key columns of all events, of the table's types; refuses nulls. Source: Iceberg
        specification, "Identifier Field IDs": what identifies a row is never null."""
        found = []
        for key in keys:
            raw = pa.table({key.name: key.values(self.rows)})
            if raw.column(0).null_count:
                row = int(_numpy(raw.column(0).is_null()).argmax())
                raise self.refused(row, f"has no key: {key.name!r} is null.")
            schema = Schema(NestedField(1, key.name, key.field.field_type, required=False))
            found.append(self.fitted(raw, schema).column(0))
        return found

    def order_values(self, fields: Sequence[NestedField | None]) -> list[pa.ChunkedArray]:
        """The values of the order columns of all events, of the table's types where it has such a column; refuses
        nulls and what has no order."""
        found = []
        for name, field in zip(self.columns.order, fields, strict=True):
            column = self.rows.column(name)
            if column.null_count:
                row = int(_numpy(column.is_null()).argmax())
                raise self.refused(row, f"has no order: {name!r} is null.")
            if field is not None:
                column = self.fitted(pa.table({name: column}), Schema(field)).column(0)
            if pa.types.is_nested(column.type):
                raise TypeMismatchError(
                    f"Cannot apply changes to table {self._table}: the order column {name!r} has type {column.type}, "
                    "whose values have no order. Use columns of primitive types."
                )
            found.append(sortable(column))
        return found


def is_of_spark(source: ArrowInput) -> bool:
    """Whether a source is a DataFrame of Spark, which applies it itself."""
    return type(source).__module__.startswith("pyspark.sql.") and type(source).__name__ == "DataFrame"


def newest(frame: pl.DataFrame, order: Sequence[pa.ChunkedArray]) -> Any:
    """The places of the newest event of each key, ascending: by the order, then by the place in the source."""
    frame = frame.with_row_index("event")
    keys = [name for name in frame.columns if name != "event"]
    if order:
        table = pa.table({f"o{place}": column for place, column in enumerate(order)})
        sorted_by = pc.sort_indices(table, sort_keys=[(name, "ascending") for name in table.column_names])
        frame = frame[sorted_by.to_numpy()]
    last = frame.unique(subset=keys, keep="last", maintain_order=False)["event"].to_numpy()
    return np.sort(last).astype(np.int64)


def sortable(column: Any) -> Any:
    """Values in a form that can be compared by `<`, in their order."""
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        column = (
            pa.chunked_array([each.storage for each in column.chunks], kind.storage_type)
            if isinstance(column, pa.ChunkedArray)
            else column.storage
        )
        kind = column.type
    if pa.types.is_fixed_size_binary(kind):
        return column.cast(pa.binary())
    return column.cast(pa.int8()) if pa.types.is_boolean(kind) else column


def _plain_rows(batches: Iterable[pa.RecordBatch], schema: pa.Schema, table: str) -> pa.Table:
    """All rows, each column in the plain form of its type, from which rows can be chosen."""
    plain = pa.schema([plain_field(field) for field in schema], schema.metadata)

    def convert(batch: pa.RecordBatch) -> pa.RecordBatch:
        columns = []
        for field, column in zip(plain, batch.columns, strict=True):
            try:
                columns.append(nested.conform(to_plain(column), field.type))
            except (pa.ArrowException, OverflowError) as error:
                raise TypeMismatchError(
                    f"Cannot apply changes to table {table}: the column {field.name!r} of type {column.type} cannot be "
                    f"read: {error}. Make the column anew, or cast it to a plain type."
                ) from error
        return pa.RecordBatch.from_arrays(columns, schema=plain)

    return pa.Table.from_batches([convert(batch) for batch in batches], plain)


def _first_failure(fit: SchemaFit, batch: pa.RecordBatch) -> int:
    """The place of the first row that does not fit, if one row is at fault."""
    start, stop = 0, batch.num_rows
    while stop - start > 1:
        middle = (start + stop) // 2
        try:
            fit.fit(batch.slice(start, middle - start))
        except InvalidInputError:
            stop = middle
        else:
            start = middle
    return start


def _shown(column: pa.ChunkedArray, row: int) -> str:
    try:
        return repr(column[row].as_py())
    except (ValueError, OverflowError, pa.ArrowException):  # a time that Python does not have
        return str(column[row])


def _numpy(array: pa.ChunkedArray) -> Any:
    return combine(array).to_numpy(zero_copy_only=False)
