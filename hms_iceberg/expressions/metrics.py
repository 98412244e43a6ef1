"""Whether the rows of a data file match, from the metrics that its manifest entry holds.

A column may be missing from the metrics because none were written or because the file lacks the column (its rows then
have the column's initial default). Both count as unknown, so that no row is ever lost. Source: Iceberg specification,
"Scan Planning"; the rules are in `bounds`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from hms_iceberg.errors import CorruptFileError
from hms_iceberg.expressions.binding import Columns, bind
from hms_iceberg.expressions.bound import BoundReference
from hms_iceberg.expressions.bounds import Decision, MightMatchVisitor, ValueSummary
from hms_iceberg.expressions.complement import complement
from hms_iceberg.expressions.tree import BooleanExpression
from hms_iceberg.expressions.visitors import fold
from hms_iceberg.spec.types import DoubleType, FloatType, IcebergType, PrimitiveType, UUIDType
from hms_iceberg.spec.values.single_values import from_bytes


class ContentMetrics(Protocol):
    """The part of a data file that metrics are read from; `spec.manifests.DataFile` has it."""

    @property
    def record_count(self) -> int:
        """Rows in the file."""

    @property
    def value_counts(self) -> Mapping[int, int] | None:
        """Field id to number of values, nulls and NaN included."""

    @property
    def null_value_counts(self) -> Mapping[int, int] | None:
        """Field id to number of nulls."""

    @property
    def nan_value_counts(self) -> Mapping[int, int] | None:
        """Field id to number of NaN."""

    @property
    def lower_bounds(self) -> Mapping[int, bytes] | None:
        """Field id to lower bound as single-value bytes."""

    @property
    def upper_bounds(self) -> Mapping[int, bytes] | None:
        """Field id to upper bound as single-value bytes."""


class InclusiveMetrics:
    """Says which files may hold a row that matches.

    Args:
        schema: the columns that the expression names.
        expression: bound or unbound.
        case_sensitive: how column names are matched.

    Raises:
        UnknownColumnError: there is no such column.
        TypeMismatchError: a literal does not compare with its column.
    """

    def __init__(self, schema: Columns, expression: BooleanExpression, case_sensitive: bool = True) -> None:
        self._decide: Decision = fold(bind(schema, expression, case_sensitive), MightMatchVisitor())

    def eval(self, file: ContentMetrics) -> bool:
        """False only where certainly no row of the file matches."""
        if file.record_count == 0:
            return False
        return self._decide(lambda ref: summarize(file, ref))


class StrictMetrics:
    """Says which files hold only rows that match. Arguments and errors as of `InclusiveMetrics`."""

    def __init__(self, schema: Columns, expression: BooleanExpression, case_sensitive: bool = True) -> None:
        others = complement(bind(schema, expression, case_sensitive))
        self._other_might_match: Decision = fold(others, MightMatchVisitor())

    def eval(self, file: ContentMetrics) -> bool:
        """True only where certainly every row of the file matches."""
        if file.record_count == 0:
            return True
        return not self._other_might_match(lambda ref: summarize(file, ref))


def summarize(file: ContentMetrics, ref: BoundReference) -> ValueSummary:
    """What the metrics of a file say about a column.

    Nulls of a field in an optional struct are only counted by some writers where the struct itself is null (ORC files
    of Java do not), so that "no nulls" needs a value counted for every row. Bounds of UUIDs are only used for files of
    one row group: Java merges those of several by an order in which half of all UUIDs are negative.
    """
    field_id = ref.field_id
    values = _count(file.value_counts, field_id)
    nulls = _count(file.null_value_counts, field_id)
    every_row_counted = values == file.record_count or all(not parent.optional for parent in ref.path[:-1])
    no_nulls = nulls == 0 and every_row_counted
    only_nulls = nulls is not None and nulls == values
    if not isinstance(ref.type, PrimitiveType):
        return ValueSummary(no_nulls=no_nulls, only_nulls=only_nulls)
    no_nans = only_nans = False
    if isinstance(ref.type, (FloatType, DoubleType)):
        nans = _count(file.nan_value_counts, field_id)
        no_nans = nans == 0
        only_nans = nans is not None and values is not None and nans > 0 and nans == values - (nulls or 0)
    else:
        no_nans = True
    if isinstance(ref.type, UUIDType) and len(getattr(file, "split_offsets", None) or ()) > 1:
        return ValueSummary(no_nulls=no_nulls, only_nulls=only_nulls, no_nans=True)
    return ValueSummary(
        no_nulls=no_nulls,
        only_nulls=only_nulls,
        no_nans=no_nans,
        only_nans=only_nans,
        lower=read_bound(ref.type, file.lower_bounds, field_id),
        upper=read_bound(ref.type, file.upper_bounds, field_id),
    )


def _count(counts: Mapping[int, int] | None, field_id: int) -> int | None:
    """A count, or None where it is missing or senseless."""
    found = counts.get(field_id) if counts else None
    return None if found is None or found < 0 else found


def read_bound(kind: IcebergType, bounds: Mapping[int, bytes] | None, field_id: int) -> Any:
    """The bound of a column; None where there is none, or none that can be used.

    NaN is no bound (old writers put it there), nor are bytes that hold no value of the type.
    """
    data = bounds.get(field_id) if bounds else None
    return None if data is None else bound_value(kind, data)


def bound_value(kind: IcebergType, data: bytes) -> Any:
    """The value of a bound's bytes; None where they hold none that can be compared with."""
    try:
        value = from_bytes(kind, data)
    except CorruptFileError:
        return None
    return None if value != value else value
