"""A scan as a polars LazyFrame, which pushes the columns and filters of a query down to it, and as a Dask data frame.

Expressions of polars are read from their JSON form. Predicates that are not understood are not pushed down, and polars'
own filter runs over the rows in any case, so that a predicate left out costs nothing but time.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hms_iceberg.arrow.columns.arrow_schema import to_arrow
from hms_iceberg.arrow.columns.frames import empty_frame, for_pandas, to_polars
from hms_iceberg.arrow.reading.read import read_frames
from hms_iceberg.arrow.reading.scan_context import WantedFrame
from hms_iceberg.errors import MissingDependencyError
from hms_iceberg.expressions.literals import Literal, Operator, literal, stored_literal
from hms_iceberg.expressions.terms import Reference
from hms_iceberg.expressions.tree import And, BooleanExpression, Or, predicate
from hms_iceberg.lazy import pl
from hms_iceberg.spec.data_types import DateType, TimestampNanoType, TimestampType, TimestamptzNanoType, TimestamptzType

if TYPE_CHECKING:
    import dask.dataframe as dd
    import pandas as pd

    from hms_iceberg.scan.splitting import ScanTaskGroup
    from hms_iceberg.table.reading.scan import TableScan


_COMPARISONS = {
    "Eq": Operator.EQ,
    "NotEq": Operator.NOT_EQ,
    "Lt": Operator.LT,
    "LtEq": Operator.LT_EQ,
    "Gt": Operator.GT,
    "GtEq": Operator.GT_EQ,
}
_TURNED = {"Lt": "Gt", "LtEq": "GtEq", "Gt": "Lt", "GtEq": "LtEq"}
_UNARY = {
    "IsNull": Operator.IS_NULL,
    "IsNotNull": Operator.NOT_NULL,
    "IsNan": Operator.IS_NAN,
    "IsNotNan": Operator.NOT_NAN,
}


def lazy_frame(scan: TableScan) -> pl.LazyFrame:
    """A frame that reads when it is collected, and then no more than its query needs."""
    from polars.io.plugins import register_io_source

    empty = empty_frame(scan.projection())

    def read(
        columns: list[str] | None, test: pl.Expr | None, rows: int | None, batch_rows: int | None
    ) -> Iterator[pl.DataFrame]:
        narrowed = scan if columns is None else replace(scan, selected_fields=_selected(scan, columns))
        # A filter below a limit would let other rows in.
        pushed = None if test is None or scan.limit is not None else pushed_down(test)
        if pushed is not None:
            narrowed = narrowed.filter(pushed)
        if test is None and rows is not None:
            narrowed = replace(narrowed, limit=rows if scan.limit is None else min(rows, scan.limit))
        if columns == [] and test is None:
            yield pl.DataFrame(height=narrowed.count())
            return
        found = False
        for frame in _frames(narrowed, test):
            found = True
            yield frame
        if not found:
            yield empty if columns is None else empty.select(columns)

    return register_io_source(read, schema=empty.schema)


def _frames(scan: TableScan, test: pl.Expr | None) -> Iterator[pl.DataFrame]:
    """The rows of a scan that match a test of its columns."""
    projection = scan.projection()
    if scan.limit is None:
        wanted = WantedFrame(empty_frame(projection).schema, test)
        tasks = scan.plan_files()
        yield from read_frames(tasks, scan.filter_schema, projection, scan.metadata, scan.storage, wanted)
        return
    for batch in scan.to_arrow_batch_reader():
        frame = to_polars(pa.Table.from_batches([batch]))
        yield frame if test is None else frame.filter(test)


def _selected(scan: TableScan, columns: list[str]) -> tuple[str, ...]:
    """The names to select for some of the scan's columns; of a struct no more than the scan selects."""
    if "*" in scan.selected_fields:
        return tuple(columns)
    return tuple(name for name in scan.selected_fields if any(f"{name}.".startswith(f"{each}.") for each in columns))


def pushed_down(test: pl.Expr) -> BooleanExpression | None:
    """A filter that is true for every row for which polars' boolean expression is true; None if not understood."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the form may change, and then nothing is pushed down
            tree = json.loads(test.meta.serialize(format="json"))
        return _expression(tree)
    except (TypeError, ValueError, KeyError, AttributeError):
        return None


def _expression(node: Any) -> BooleanExpression | None:
    if not isinstance(node, dict):
        return None
    if "BinaryExpr" in node:
        return _binary(node["BinaryExpr"])
    if "Function" in node:
        return _function(node["Function"])
    column = _column(node)
    return None if column is None else predicate(Operator.EQ, column, literal(True))


def _binary(node: dict[str, Any]) -> BooleanExpression | None:
    name, left, right = node["op"], node["left"], node["right"]
    if name in ("And", "LogicalAnd"):
        parts = [each for each in (_expression(left), _expression(right)) if each is not None]
        return And(*parts) if parts else None
    if name in ("Or", "LogicalOr"):
        first, second = _expression(left), _expression(right)
        return None if first is None or second is None else Or(first, second)
    if "Literal" in left:
        left, right, name = right, left, _TURNED.get(name, name)
    column, value = _column(left), _literal(right)
    if name not in _COMPARISONS or column is None or value is None:
        return None
    return predicate(_COMPARISONS[name], column, value)


def _function(node: dict[str, Any]) -> BooleanExpression | None:
    column, function = _column(node["input"][0]), node["function"]
    if column is None:
        return None
    if function == {"StringExpr": "StartsWith"}:
        prefix = _literal(node["input"][1])
        return None if prefix is None else predicate(Operator.STARTS_WITH, column, prefix)
    kind = function.get("Boolean")
    if isinstance(kind, str):
        return predicate(_UNARY[kind], column) if kind in _UNARY else None
    if isinstance(kind, dict) and "IsBetween" in kind:
        low, high = (_literal(each) for each in node["input"][1:3])
        if low is not None and high is not None:
            return And(predicate(Operator.GT_EQ, column, low), predicate(Operator.LT_EQ, column, high))
    return None


def _column(node: Any) -> Reference | None:
    """A column, or a field of a struct column."""
    if not isinstance(node, dict):
        return None
    if "Column" in node:
        return Reference(node["Column"])
    function = node.get("Function")
    if function is not None and isinstance(function["function"], dict):
        struct = function["function"].get("StructExpr")
        parent = _column(function["input"][0])
        if isinstance(struct, dict) and "FieldByName" in struct and parent is not None:
            return Reference(f"{parent.name}.{struct['FieldByName']}")
    return None


def _literal(node: Any) -> Literal | None:
    found = node.get("Literal") if isinstance(node, dict) else None
    while isinstance(found, dict) and set(found) & {"Scalar", "Dyn"}:
        (found,) = found.values()
    if not isinstance(found, dict) or len(found) != 1:
        return None
    ((kind, value),) = found.items()
    if kind.startswith(("Int", "UInt", "Float", "String", "Boolean", "Str")) and isinstance(value, (int, float, str)):
        return literal(value)
    if kind == "Date" and isinstance(value, int):
        return stored_literal(value, DateType())
    if kind == "Datetime":
        return _datetime(*value)
    return None


def _datetime(value: int, unit: str, zone: Any) -> Literal:
    if unit == "Nanoseconds":
        return stored_literal(value, TimestampNanoType() if zone is None else TimestamptzNanoType())
    micros = value * 1000 if unit == "Milliseconds" else value
    return stored_literal(micros, TimestampType() if zone is None else TimestamptzType())


@contextmanager
def needing(method: str, library: str, package: str) -> Iterator[None]:
    """Turns a failed import in the block into an error that says how to install the library for the method."""
    try:
        yield
    except ImportError as error:
        raise MissingDependencyError(f"{method} needs {library}: pip install {package}") from error


def dask_frame(scan: TableScan) -> dd.DataFrame:
    """A lazy data frame, each partition of which reads a group of files; one partition if the scan has a limit."""
    with needing("to_dask", "Dask", "'dask[dataframe]'"):
        import dask.dataframe as dd
    empty = _frame(pa.Table.from_batches([], to_arrow(scan.projection())))
    if scan.limit is not None:
        return dd.from_pandas(_frame(scan.to_arrow()), npartitions=1)
    groups = list(scan.plan_tasks())
    return dd.from_map(partial(_read, scan), groups, meta=empty) if groups else dd.from_pandas(empty, npartitions=1)


def _read(scan: TableScan, group: ScanTaskGroup) -> pd.DataFrame:
    return _frame(scan.read(group.tasks).read_all())


def _frame(rows: pa.Table) -> pd.DataFrame:
    frame: pd.DataFrame = for_pandas(rows).to_pandas(types_mapper=_kept)
    return frame


def _kept(kind: pa.DataType) -> Any:
    """The type of a column that Dask would make text of, as it does of all objects."""
    import pandas as pd

    is_bytes = pa.types.is_binary(kind) or pa.types.is_fixed_size_binary(kind)
    return pd.ArrowDtype(kind) if is_bytes or pa.types.is_nested(kind) else None
