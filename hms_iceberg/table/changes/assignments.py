"""Updates of rows: new values of columns, which are constants or expressions over the rows as they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hms_iceberg.arrow.columns.arrow_schema import from_stored, to_arrow, to_arrow_type
from hms_iceberg.arrow.columns.casting import SchemaFit
from hms_iceberg.arrow.columns.nested import combine
from hms_iceberg.arrow.reading.row_rewrites import AffectedRows
from hms_iceberg.errors import IcebergError, InvalidInputError, NullValueError, TypeMismatchError, UnsupportedError
from hms_iceberg.expressions.tree import AlwaysFalse, BooleanExpression
from hms_iceberg.lazy import pl
from hms_iceberg.scan.manifests.manifest_source import named_table
from hms_iceberg.spec.data_types import IcebergType, NestedField
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.values.single_values import from_python, is_null
from hms_iceberg.table.changes.row_change import ChangeOptions, RowChange, as_expression, rows_in
from hms_iceberg.transaction.transaction import Transaction

Evaluate = Callable[[pa.RecordBatch], pa.Array]


class Assignments:
    """The new values of top-level columns: a constant (Python or `pyarrow.Scalar`), a `pyarrow.compute.Expression`, a
    polars expression, or a function from a `pyarrow.RecordBatch` to an array of as many values."""

    def __init__(self, schema: Schema, assignments: Mapping[str, Any], table: str, case_sensitive: bool = True) -> None:
        if not assignments:
            raise InvalidInputError(f"Cannot update table {table}: no column is assigned a value. Name one at least.")
        self._table = table
        self._fields: dict[int, NestedField] = {}
        self._values: dict[int, Evaluate] = {}
        places = {field.field_id: place for place, field in enumerate(schema.fields)}
        for name, value in assignments.items():
            with named_table("", table):
                field = schema.find_field(name, case_sensitive)
            place = places.get(field.field_id)
            if place is None:
                raise InvalidInputError(
                    f"Cannot update column {name!r} of table {table}: it lies inside another. Assign a value to the "
                    f"whole column {name.split('.')[0]!r}."
                )
            if place in self._fields:
                raise InvalidInputError(f"Cannot update table {table}: column {field.name!r} is assigned twice.")
            self._fields[place] = field
            self._values[place] = self._evaluator(field, value)
        self._schema = Schema(*self._fields.values())
        self.new_values(_no_rows(to_arrow(schema)))  # what cannot be evaluated fails before anything is read

    def replacement(self, affected: AffectedRows, rows: pa.RecordBatch, which: slice) -> Mapping[int, pa.Array]:
        """The new values of some rows; a `row_rewrites.Replacement`."""
        return self.new_values(rows)

    def new_values(self, rows: pa.RecordBatch) -> dict[int, pa.Array]:
        """The new values, by the column's place in the table's schema."""
        arrays = {place: evaluate(rows) for place, evaluate in self._values.items()}
        for place, array in arrays.items():
            if len(array) != rows.num_rows:
                raise InvalidInputError(
                    f"Cannot update column {self._fields[place].name!r} of table {self._table}: its expression gave "
                    f"{len(array):,} values for {rows.num_rows:,} rows."
                )
        names = [field.name for field in self._fields.values()]
        batch = pa.RecordBatch.from_arrays(list(arrays.values()), names=names)
        fitted = SchemaFit(batch.schema, self._schema, self._table).fit(batch)
        return dict(zip(arrays, fitted.columns, strict=True))

    def _evaluator(self, field: NestedField, value: Any) -> Evaluate:
        if isinstance(value, pc.Expression):
            return self._guarded(field, lambda rows: _project(value, rows))
        if _is_polars(value):
            return self._guarded(field, lambda rows: _select(value, rows))
        if callable(value):
            return self._guarded(field, lambda rows: _called(value, rows))
        if isinstance(value, pa.Scalar):
            return lambda rows: _repeated(value, rows.num_rows)
        if field.required and is_null(value):
            raise NullValueError(
                f"Cannot update column {field.name!r} of table {self._table} to null: it is required. Make it optional "
                f"first, or use another value."
            )
        try:
            scalar = _scalar(field.field_type, value)
        except (IcebergError, pa.ArrowException, TypeError, ValueError) as error:
            raise TypeMismatchError(
                f"Cannot update column {field.name!r} of table {self._table}: {value!r} is no {field.field_type} "
                f"({error})."
            ) from error
        return lambda rows: _repeated(scalar, rows.num_rows)

    def _guarded(self, field: NestedField, evaluate: Callable[[pa.RecordBatch], Any]) -> Evaluate:
        def guarded(rows: pa.RecordBatch) -> pa.Array:
            try:
                result = evaluate(rows)
                if isinstance(result, pa.Scalar):
                    return _repeated(result, rows.num_rows)
                return combine(result)
            except IcebergError:
                raise
            except Exception as error:  # whatever the caller's own code raises
                raise InvalidInputError(
                    f"Cannot update column {field.name!r} of table {self._table}: its expression failed with "
                    f"{type(error).__name__}: {error}. It is evaluated over the table's columns."
                ) from error

        return guarded


@dataclass(frozen=True)
class UpdateResult:
    """The result of an update.

    Attributes:
        rows_updated: how many rows matched its filter.
    """

    rows_updated: int = 0


def update_rows(
    transaction: Transaction,
    assignments: Mapping[str, Any],
    row_filter: str | BooleanExpression,
    options: ChangeOptions,
) -> UpdateResult:
    change = RowChange(transaction, "update", options)
    expression = as_expression(row_filter)
    values = Assignments(change.metadata.schema(), assignments, change.table, options.case_sensitive)
    if isinstance(expression, AlwaysFalse):
        return UpdateResult()
    affected = change.rewriter.matching(list(change.plan(expression).tasks()))
    if affected:
        change.commit(affected, expression, replacement=values.replacement)
    else:
        change.commit_nothing(expression)
    return UpdateResult(rows_in(affected))


def _project(expression: pc.Expression, rows: pa.RecordBatch) -> pa.ChunkedArray:
    from pyarrow import acero

    source = acero.Declaration("table_source", acero.TableSourceNodeOptions(pa.Table.from_batches([rows])))
    project = acero.Declaration("project", acero.ProjectNodeOptions([expression], ["value"]), [source])
    return project.to_table(use_threads=False).column(0)


def _scalar(kind: IcebergType, value: Any) -> pa.Scalar:
    with suppress(UnsupportedError):  # variants and shapes, which are given as Arrow has them
        stored = from_python(kind, value)
        if kind.is_primitive:
            return from_stored([stored], kind)[0]
    # pyarrow leaves out what a struct has no field for, and ends the process at a null entry of a map: both are refused
    # above.
    return pa.array([value], to_arrow_type(kind, field_ids=False, extensions=False))[0]


def _repeated(value: pa.Scalar, rows: int) -> pa.Array:
    if rows and not pa.types.is_nested(value.type):
        return pa.repeat(value, rows)
    if not value.is_valid:
        return pa.nulls(rows, value.type)
    one = pa.array([value], value.type)  # pyarrow repeats nested values by no other means
    return one.take(pa.repeat(pa.scalar(0), rows))


def _is_polars(value: Any) -> bool:
    return type(value).__module__.split(".")[0] == "polars"


def _select(expression: Any, rows: pa.RecordBatch) -> pa.ChunkedArray:
    frame = pl.from_arrow(pa.Table.from_batches([rows]))
    assert isinstance(frame, pl.DataFrame)
    selected = frame.select(expression.alias("value"))
    if selected.height == 1 and frame.height != 1:  # a literal
        selected = frame.with_columns(value=expression).select("value")
    return selected.to_arrow().column(0)


def _called(function: Callable[[pa.RecordBatch], Any], rows: pa.RecordBatch) -> Any:
    result = function(rows)
    if not isinstance(result, (pa.Array, pa.ChunkedArray, pa.Scalar)):
        raise TypeError(f"expected a pyarrow.Array, got {type(result).__name__}")
    return result


def _no_rows(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)
