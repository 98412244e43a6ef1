"""Row groups of a Parquet file decoded by Polars, in a half to a fifth of pyarrow's time.

This is the one place that chooses who decodes: Polars where it is faster and gives the same values, pyarrow for all
else. Polars opens local files that are not encrypted; it has no INT96 times as pyarrow takes them, no slower structs
and lists, and no checksums, which are looked at here. A range that it refuses, or would give otherwise, is left to
pyarrow, which says what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from hms_iceberg.arrow.columns.nested import rows_only
from hms_iceberg.arrow.columns.projection import FileLeaf
from hms_iceberg.arrow.formats.page_checksums import is_intact
from hms_iceberg.arrow.formats.parquet_columns import ParquetColumns
from hms_iceberg.cached_properties import cached_property
from hms_iceberg.lazy import pl

# Polars takes longer than pyarrow to begin with a row group. Work is counted in numbers; text is so many times that.
_LEAST_WORK, _LEAST_FILTERED_WORK = 500_000, 100_000
_WORK_OF_TEXT = 10
_TEXT_WIDTH = 16
_BATCH_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True)
class FrameColumns:
    """Recipe for a file's columns where rows are wanted as frames: columns of names and types, and a test of these
    beside that of the file's columns."""

    columns: Sequence[pl.Expr]
    dtypes: Sequence[Any]
    test: pl.Expr | None


@dataclass(frozen=True)
class DecodedRows:
    """Rows of row groups as Polars holds them: all from `start` on, those of `positions`, or some whose place nobody
    needs. `kinds` are the columns' Arrow types."""

    frame: pl.DataFrame
    kinds: Sequence[pa.DataType]
    start: int
    positions: Any | None
    count: int

    def batches(self, batch_rows: int) -> Iterator[tuple[Any, pa.RecordBatch]]:
        """The rows as batches, each with the positions of its rows, or of the first one if they come in turn."""
        batch_rows = min(batch_rows, self._rows_within_bytes())
        for first in range(0, self.count, batch_rows):
            where: Any = self.start + first
            if self.positions is not None:
                where = self.positions[first : first + batch_rows].astype(np.int64)
            if not self.kinds:
                yield where, pa.RecordBatch.from_struct_array(rows_only(min(batch_rows, self.count - first)))
                continue
            part = self.frame.slice(first, batch_rows)
            arrays = [_to_arrow(series, kind) for series, kind in zip(part.get_columns(), self.kinds, strict=True)]
            yield where, pa.RecordBatch.from_arrays(arrays, names=part.columns)

    def _rows_within_bytes(self) -> int:
        """The number of rows whose text takes about `_BATCH_BYTES`: text that repeats is once in a frame, and each time
        in Arrow, which has no room for much more in a batch."""
        size = 0
        for series in self.frame.get_columns() if self.kinds else ():
            if series.dtype == pl.String:
                size += int(series.str.len_bytes().sum())
            elif series.dtype == pl.Binary:
                size += int(series.bin.size().sum())
        return max(1, _BATCH_BYTES * self.count // max(size, 1))


def are_among(positions: Any, others: Any) -> Any:
    """A mask of the ascending positions that are among other ascending ones."""
    if not len(positions):
        return np.zeros(0, np.bool_)
    start, end = int(positions[0]), int(positions[-1]) + 1
    first, last = np.searchsorted(others, (start, end))
    is_other = np.zeros(end - start, np.bool_)
    is_other[others[first:last] - start] = True
    return is_other[positions - positions.dtype.type(start)]


class FrameReader:
    """Reads row groups of a local file by Polars."""

    def __init__(self, path: str, columns: ParquetColumns) -> None:
        self._path = path
        self._footer = columns.footer.metadata
        self._intact = columns.footer.intact
        self._columns = columns

    @property
    def schema(self) -> pa.Schema:
        """The file's schema, with field ids and without dictionaries."""
        return self._columns.schema

    @property
    def _leaves(self) -> Sequence[FileLeaf]:
        return self._columns.leaves

    @property
    def may_be_quick(self) -> bool:
        """Whether the file is so large that Polars may be the quicker reader of some of it."""
        rows, work = self._footer.num_rows, sum(_work_of(leaf.type) for leaf in self._leaves)
        return rows * work >= min(_LEAST_WORK, _LEAST_FILTERED_WORK)

    def is_like(self, other: FrameReader) -> bool:
        """Whether another file has the same columns, and values that mean the same."""
        return self._columns.are_like(other._columns)

    def leaf_of(self, field_id: int) -> FileLeaf | None:
        """The leaf of a top-level column, if Polars gives its values as pyarrow does."""
        leaf = self._columns.by_id.get(field_id)
        return leaf if leaf is not None and self._is_told(leaf) else None

    def _is_told(self, leaf: FileLeaf) -> bool:
        """Whether Polars gives a leaf's values as pyarrow does: those of a top-level column of a name of its own."""
        return (
            len(leaf.path) == 1
            and self._columns.names[leaf.path[0]] == 1
            and _frame_type(leaf.type) is not None
            and leaf.index not in self._columns.rules
            and not self._columns.is_int96(leaf.index)
        )

    @cached_property
    def _row(self) -> str:
        """A name that no column has."""
        return max(self.schema.names, key=len, default="") + "#"

    def is_quick(self, groups: Sequence[int], leaves: Sequence[int], tested: Collection[int], most_bytes: int) -> bool:
        """Whether row groups are better read by Polars than by pyarrow, and take at most so many bytes when they are
        decoded whole."""
        needed = {*leaves, *tested}
        if not self.reads_all(needed):
            return False
        return (
            self.is_enough(self._rows_in(groups), leaves, tested) and self.decoded_bytes(groups, needed) <= most_bytes
        )

    def reads_all(self, leaves: Collection[int]) -> bool:
        """Whether Polars gives the values of some leaves as pyarrow does; False for none."""
        return bool(leaves) and all(self._is_told(self._leaves[leaf]) for leaf in leaves)

    def is_enough(self, rows: int, leaves: Collection[int], tested: Collection[int]) -> bool:
        """Whether so many rows are worth what it costs Polars to begin."""
        work = rows * sum(_work_of(self._leaves[leaf].type) for leaf in {*leaves, *tested})
        return work >= (_LEAST_FILTERED_WORK if tested else _LEAST_WORK)

    def decoded_bytes(self, groups: Sequence[int], leaves: Collection[int], others: Sequence[FrameReader] = ()) -> int:
        """Bytes of memory that leaves of row groups, and of all of other files like this one, take when they are
        decoded, about."""
        files = ((self, groups), *((each, each.groups) for each in others))
        found = [each._footer.row_group(group) for each, its in files for group in its]
        rows = sum(group.num_rows for group in found)
        size = 0
        for leaf in leaves:
            kind = self._leaves[leaf].type
            if _is_text(kind):
                size += rows * _TEXT_WIDTH + sum(group.column(leaf).total_uncompressed_size for group in found)
            else:
                size += rows * max(kind.bit_width // 8, 1)
        return size

    @property
    def groups(self) -> range:
        """All row groups."""
        return range(self._footer.num_row_groups)

    @property
    def rows(self) -> int:
        """The number of rows of all row groups."""
        return self._rows_in(self.groups)

    def read(
        self,
        groups: Sequence[int],
        start: int,
        leaves: Sequence[int],
        test: pl.Expr | None,
        tested: Collection[int],
        removed: Any | None = None,
        made: FrameColumns | None = None,
        numbered: bool = True,
        most_rows: int | None = None,
        others: Sequence[FrameReader] = (),
    ) -> DecodedRows | None:
        """The rows of consecutive row groups from position `start` on for which a test of `tested` leaves is true,
        without the ascending positions `removed`; None if pyarrow has to read them. Columns are the file's, or those
        that are `made` of them; rows that are not `numbered` may come without positions. Of rows without tests, the
        first `most_rows` are enough. Behind the last row group come all rows of `others`, files that are like this one,
        with positions that go on."""
        needed = sorted({*leaves, *tested})
        rows_in_groups = self._rows_in(groups) + sum(each.rows for each in others)
        rows_in_files = self._footer.num_rows + sum(each._footer.num_rows for each in others)
        whole = rows_in_groups if most_rows is None else min(most_rows, rows_in_groups)
        kinds = [self._leaves[leaf].type for leaf in leaves]
        columns: list[pl.Expr] = [pl.col(self._leaves[leaf].path[0]) for leaf in leaves]
        dtypes: Sequence[Any] = [_frame_type(kind) for kind in kinds]
        last = None
        if made is not None:
            columns, dtypes, last = list(made.columns), made.dtypes, made.test
        kept = None if removed is None else _kept(removed, start, whole)
        is_part = test is not None or last is not None or kept is not None
        numbers = [self._row] if is_part and numbered else []
        try:
            if not self._is_intact(groups, needed) or not all(each._is_intact(each.groups, needed) for each in others):
                return None
            rows = pl.scan_parquet(
                [self._path, *(each._path for each in others)],
                glob=False,
                hive_partitioning=False,
                use_statistics=False,
                row_index_name=self._row if numbers or kept is not None else None,
            )
            if whole < rows_in_files:
                rows = rows.slice(start, whole)
            if test is not None:
                rows = rows.filter(test)
            if kept is not None:
                rows = rows.filter(kept(pl.col(self._row)))
            rows = rows.select(*columns, *numbers) if columns or numbers else rows.select(pl.len())
            frame = (rows if last is None else rows.filter(last)).collect()
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError):
            return None
        count, positions = frame.height, None
        if numbers:
            positions = frame.drop_in_place(self._row).to_numpy()
        elif not columns:
            count = frame.drop_in_place("len").item()
        elif not is_part and count != whole:
            return None
        if list(dtypes) != frame.dtypes:
            return None
        return DecodedRows(frame, kinds, start, positions, count)

    def _rows_in(self, groups: Sequence[int]) -> int:
        return sum(self._footer.row_group(group).num_rows for group in groups)

    def _is_intact(self, groups: Sequence[int], leaves: Sequence[int]) -> bool:
        """Whether the checksums of all pages are right; those of a file are looked at once."""
        chunks = [(group, leaf) for group in groups for leaf in leaves if (group, leaf) not in self._intact]
        if not chunks:
            return True
        # As Polars sees them, and without a copy. The map goes with its last view.
        pages = memoryview(pa.memory_map(self._path).read_buffer()).cast("B")
        for group, leaf in chunks:
            if not is_intact(pages, self._footer.row_group(group).column(leaf)):
                return False
        self._intact.update(chunks)
        return True


def _kept(removed: Any, start: int, count: int) -> Callable[[pl.Expr], pl.Expr] | None:
    """A test of `count` positions from `start` on that the ascending ones of `removed` do not pass; None if all pass.
    Polars decodes other columns only of rows that pass."""
    first, last = np.searchsorted(removed, (start, start + count))
    if first == last:
        return None
    are_kept = np.ones(count, np.bool_)
    are_kept[removed[first:last] - start] = False

    def test(positions: pl.Series) -> pl.Series:
        return pl.Series(are_kept[positions.to_numpy() - start])

    return lambda positions: positions.map_batches(test, pl.Boolean(), is_elementwise=True)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind))


def _work_of(kind: pa.DataType) -> int:
    return _WORK_OF_TEXT if _is_text(kind) or pa.types.is_decimal(kind) else 1


def _to_arrow(series: pl.Series, kind: pa.DataType) -> pa.Array:
    if series.dtype in (pl.String, pl.Binary):
        with suppress(pa.ArrowNotImplementedError):  # views cannot be cast yet; Polars takes longer for it
            return series.to_arrow(compat_level=pl.CompatLevel.newest()).cast(kind)
    return series.to_arrow(compat_level=pl.CompatLevel.oldest()).cast(kind)


def _frame_type(kind: pa.DataType) -> Any | None:
    """The type as which Polars reads a column of a file's; None if it may give other values."""
    if isinstance(kind, pa.BaseExtensionType):  # such as shapes
        return None
    types = pa.types
    if types.is_decimal128(kind):
        return pl.Decimal(kind.precision, kind.scale)
    if types.is_timestamp(kind) and kind.unit != "s" and kind.tz in (None, "UTC"):
        return pl.Datetime(kind.unit, kind.tz)
    if types.is_time64(kind):
        return pl.Time()
    if types.is_fixed_size_binary(kind):
        return pl.Binary()
    return {
        pa.bool_(): pl.Boolean(),
        pa.int8(): pl.Int8(),
        pa.int16(): pl.Int16(),
        pa.int32(): pl.Int32(),
        pa.int64(): pl.Int64(),
        pa.float32(): pl.Float32(),
        pa.float64(): pl.Float64(),
        pa.date32(): pl.Date(),
        pa.string(): pl.String(),
        pa.binary(): pl.Binary(),
    }.get(kind)
