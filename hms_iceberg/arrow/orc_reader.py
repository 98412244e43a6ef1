"""Reading one ORC data file: stripes to Arrow batches.

Source: Iceberg specification, "Appendix A: Format-specific Requirements" (ORC).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
from pyarrow import orc

from hms_iceberg.arrow.avro_reader import top_level
from hms_iceberg.arrow.file_schema import identified
from hms_iceberg.arrow.orc_layout import OrcLayout
from hms_iceberg.arrow.orc_timestamps import read_timestamps
from hms_iceberg.arrow.parquet_reader import RangeMetrics, RowRange, empty_batches
from hms_iceberg.arrow.storage import open_for_arrow
from hms_iceberg.errors import CorruptDataFileError, UnsupportedError
from hms_iceberg.spec.name_mapping import NameMapping
from hms_iceberg.spec.schema import Schema
from hms_iceberg.storage import Storage

# Rows of a batch where a stripe is too large to be decoded at once.
_STREAMED_ROWS = 1 << 14


class OrcReader:
    """An open ORC file; its methods are those of ``readers.FileReader``.

    Args:
        storage: where the file is.
        location: the file.
        mapping: the table's name mapping, for files without field ids.

    Raises:
        MissingFileError: there is no such file.
        CorruptDataFileError: it is not ORC, or damaged.
    """

    reads_nested_fields = False

    def __init__(self, storage: Storage, location: str, mapping: NameMapping | None) -> None:
        self._location = location
        self._file = open_for_arrow(storage, location)
        try:
            with self._damaged():
                self._orc = orc.ORCFile(self._file)
                self.schema = identified(self._orc.schema, mapping)
            self._stripes = self._found_stripes()
        except BaseException:
            self.close()
            raise

    def ranges(self) -> list[RowRange]:
        """All stripes."""
        return self._stripes

    def _found_stripes(self) -> list[RowRange]:
        """The stripes with their rows, of which pyarrow only says how many there are before it reads them."""
        found: list[RowRange] = []
        start = 0
        try:
            for index, stripe in enumerate(OrcLayout(self._file, self._file.size(), self._location).stripes):
                found.append(RowRange(index, start, stripe.rows, stripe.data_length, stripe.offset))
                start += stripe.rows
        except UnsupportedError:  # LZO, whose footer only pyarrow can read
            for index in range(self._orc.nstripes):
                rows = self._orc.read_stripe(index, columns=[]).num_rows
                found.append(RowRange(index, start, rows, self._orc.content_length // self._orc.nstripes))
                start += rows
        if start != self._orc.nrows or len(found) != self._orc.nstripes:
            raise CorruptDataFileError(
                f"Cannot read {self._location}: its {len(found)} stripes hold {start:,} rows, its footer says "
                f"{self._orc.nrows:,} rows in {self._orc.nstripes} stripes. The file is damaged; restore it."
            )
        return found

    def matching(
        self, ranges: Sequence[RowRange], schema: Schema, field_ids: set[int], may_match: Callable[[RangeMetrics], bool]
    ) -> list[RowRange]:
        """All ranges: pyarrow does not show ORC's statistics."""
        return list(ranges)

    def read(
        self, rows: RowRange, leaves: Sequence[int], batch_rows: int, use_threads: bool
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The rows of a stripe, with whole top-level columns."""
        if not leaves:
            yield from empty_batches(rows.start, rows.start + rows.rows, batch_rows)
            return
        names = [self.schema.names[index] for index in top_level(self.schema, leaves)]
        try:
            batch = self._stripe(rows.index, names)
        except pa.ArrowCapacityError:  # more than 2 GiB of text, decoded
            yield from self._streamed(rows, names, batch_rows)
            return
        if batch.num_rows != rows.rows:
            raise CorruptDataFileError(
                f"Cannot read {self._location}: stripe {rows.index} should hold {rows.rows:,} rows, found "
                f"{batch.num_rows:,}."
            )
        for start in range(0, rows.rows, batch_rows):
            yield rows.start + start, batch.slice(start, batch_rows)

    def _streamed(self, rows: RowRange, names: list[str], batch_rows: int) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The rows of a stripe, a batch at a time; all stripes before it are decoded on the way."""
        from pyarrow import dataset

        fragment = dataset.OrcFileFormat().make_fragment(self._file)
        scanner = fragment.scanner(columns=names, batch_size=min(batch_rows, _STREAMED_ROWS), use_threads=False)
        start, end = 0, rows.start + rows.rows
        with self._damaged():
            for batch in scanner.to_batches():
                first, last = max(start, rows.start), min(start + batch.num_rows, end)
                if first < last:
                    yield first, batch.slice(first - start, last - first)
                start += batch.num_rows
                if start >= end:
                    return

    def _stripe(self, stripe: int, names: list[str]) -> pa.RecordBatch:
        try:
            return self._orc.read_stripe(stripe, columns=names).select(names)
        except pa.ArrowInvalid as error:
            if "out of range for nanosecond" not in str(error):
                raise self._damage(error) from error
        except pa.ArrowCapacityError:
            raise
        except (pa.ArrowException, OSError, ValueError) as error:
            raise self._damage(error) from error
        return self._stripe_beyond_nanoseconds(stripe, names)

    def _stripe_beyond_nanoseconds(self, stripe: int, names: list[str]) -> pa.RecordBatch:
        """A stripe with timestamps outside of 1677 to 2262, which pyarrow cannot hold: those are decoded here."""
        layout = OrcLayout(self._file, self._file.size(), self._location)
        kinds = {name: self.schema.field(name).type for name in names}
        others = [name for name in names if not pa.types.is_timestamp(kinds[name])]
        try:
            read = self._orc.read_stripe(stripe, columns=others) if others else None
        except pa.ArrowInvalid as error:
            raise UnsupportedError(
                f"Cannot read {self._location}: a nested column holds timestamps outside of 1677 to 2262, which can be "
                f"read from ORC files in top-level columns only. Rewrite the file as Parquet."
            ) from error
        arrays = []
        for name in names:
            if read is not None and name in others:
                arrays.append(read.column(name))
            else:
                zoned = kinds[name].tz is not None
                arrays.append(read_timestamps(layout, stripe, name, zoned, self._location).cast(_micros(kinds[name])))
        return pa.RecordBatch.from_arrays(arrays, names=names)

    def bytes_of(self, rows: RowRange, leaves: Sequence[int]) -> int:
        """The bytes of the whole stripe."""
        return rows.bytes

    def close(self) -> None:
        """Closes the file."""
        with contextlib.suppress(OSError, pa.ArrowException):
            self._file.close()

    @contextlib.contextmanager
    def _damaged(self) -> Iterator[None]:
        try:
            yield
        except (pa.ArrowException, OSError, ValueError) as error:
            raise self._damage(error) from error

    def _damage(self, error: Exception) -> CorruptDataFileError:
        return CorruptDataFileError(
            f"Cannot read {self._location}: {error}. The file is damaged or is no ORC file; restore it, or remove it "
            f"from the table."
        )


def _micros(kind: pa.DataType) -> pa.DataType:
    return pa.timestamp("us", kind.tz)
