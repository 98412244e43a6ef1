"""Reading one ORC data file: stripes to Arrow batches.

Source: Iceberg specification, "Appendix A: Format-specific Requirements" (ORC).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyarrow import orc

from hms_iceberg.arrow.columns.arrow_schema import has_field_ids
from hms_iceberg.arrow.columns.projection import identified
from hms_iceberg.arrow.formats.avro.avro_reader import top_level
from hms_iceberg.arrow.formats.orc.orc_early_times import read_timestamps
from hms_iceberg.arrow.formats.orc.orc_layout import OrcLayout
from hms_iceberg.arrow.formats.orc.orc_statistics import problems_of
from hms_iceberg.arrow.formats.parquet_reader import RowRange, WholeRanges, empty_batches
from hms_iceberg.arrow.storage.arrow_storage import open_for_arrow
from hms_iceberg.arrow.storage.filesystems import decoding
from hms_iceberg.errors import CorruptDataFileError, UnsupportedError
from hms_iceberg.spec.field_mapping import NameMapping
from hms_iceberg.storage import Storage

# Rows that are decoded at once if a stripe is streamed.
_STREAMED_ROWS = 1 << 14
_BEYOND = "out of range for nanosecond"


class _Stream:
    """The rows of some columns of a file, in order and a few at a time; stripes are decoded one by one if some are left
    out, or have timestamps beyond pyarrow's nanoseconds."""

    def __init__(self, file: pa.NativeFile, names: Sequence[str], batch_rows: int) -> None:
        from pyarrow import dataset

        fragment = dataset.OrcFileFormat().make_fragment(file)
        scanner = fragment.scanner(columns=list(names), batch_size=batch_rows, use_threads=False)
        self.position = 0
        self._batches = scanner.to_batches()
        self._rest: pa.RecordBatch | None = None

    def up_to(self, end: int) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The rows from the present position to another, with the position of each batch."""
        while self.position < end:
            batch = self._rest or next(self._batches, None)
            if batch is None:
                return
            taken = batch.slice(0, end - self.position)
            self._rest = batch.slice(taken.num_rows) if taken.num_rows < batch.num_rows else None
            start = self.position
            self.position += taken.num_rows
            yield start, taken


class OrcReader(WholeRanges):
    def __init__(self, storage: Storage, location: str, mapping: NameMapping | None) -> None:
        self._location = location
        self._file = open_for_arrow(storage, location)
        try:
            with self._decoding():
                self._orc = orc.ORCFile(self._file)
                self.schema = identified(self._orc.schema, mapping)
                self._stripes = self._found_stripes()
            self._streams: dict[tuple[str, ...], _Stream] = {}
        except BaseException:
            self.close()
            raise

    def ranges(self) -> list[RowRange]:
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

    def read(
        self, rows: RowRange, leaves: Sequence[int], batch_rows: int, use_threads: bool
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The rows of a stripe, with whole top-level columns."""
        if not leaves:
            yield from empty_batches(rows.start, rows.start + rows.rows, batch_rows)
            return
        names = tuple(self.schema.names[index] for index in top_level(self.schema, leaves))
        start = 0
        if rows.rows > batch_rows and not _is_dotted(names):
            for position, batch in self._streamed(rows, names, batch_rows):
                yield position, batch
                start = position + batch.num_rows - rows.start
        if start < rows.rows:
            yield from self._decoded(rows, names, batch_rows, start)

    def _streamed(
        self, rows: RowRange, names: tuple[str, ...], batch_rows: int
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The rows of a stripe, decoded step by step. It may stop early; the caller reads the rest at once (see
        `_Stream`)."""
        if names not in self._streams:
            with self._decoding():
                self._streams[names] = _Stream(self._file, names, min(batch_rows, _STREAMED_ROWS))
        stream = self._streams[names]
        if stream.position == rows.start:
            with self._decoding():
                try:
                    yield from stream.up_to(rows.start + rows.rows)
                except pa.ArrowInvalid as error:
                    if _BEYOND not in str(error):
                        raise

    def _decoded(
        self, rows: RowRange, names: tuple[str, ...], batch_rows: int, start: int
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The rows of a stripe that is decoded at once, from one of them on."""
        try:
            batch = self._stripe(rows.index, list(names))
        except pa.ArrowCapacityError as error:  # more than 2 GiB of text, decoded
            if _is_dotted(names):
                raise UnsupportedError(
                    f"Cannot read {self._location}: a stripe is too large to be decoded at once, and pyarrow streams "
                    f"no columns of names with a dot ({', '.join(names)}). Rewrite the file as Parquet."
                ) from error
            with self._decoding():
                stream = _Stream(self._file, names, min(batch_rows, _STREAMED_ROWS))
                for _ in stream.up_to(rows.start + start):
                    pass
                yield from stream.up_to(rows.start + rows.rows)
                if stream.position < rows.start + rows.rows:
                    raise ValueError(f"it ends at row {stream.position:,}") from error
            return
        if batch.num_rows != rows.rows:
            raise CorruptDataFileError(
                f"Cannot read {self._location}: stripe {rows.index} should hold {rows.rows:,} rows, found "
                f"{batch.num_rows:,}."
            )
        for first in range(start, rows.rows, batch_rows):
            yield rows.start + first, batch.slice(first, batch_rows)

    def _stripe(self, stripe: int, names: list[str]) -> pa.RecordBatch:
        with self._decoding():
            try:
                columns = None if _is_dotted(names) else names
                return self._orc.read_stripe(stripe, columns=columns).select(names)
            except pa.ArrowInvalid as error:
                if _BEYOND not in str(error):
                    raise
        return self._stripe_beyond_nanoseconds(stripe, names)

    def _stripe_beyond_nanoseconds(self, stripe: int, names: list[str]) -> pa.RecordBatch:
        """A stripe with timestamps outside of 1677 to 2262, which pyarrow cannot hold: those are decoded here."""
        layout = OrcLayout(self._file, self._file.size(), self._location)
        kinds = {name: self.schema.field(name).type for name in names}
        others = [name for name in names if not pa.types.is_timestamp(kinds[name])]
        with self._decoding():
            try:
                read = self._orc.read_stripe(stripe, columns=others) if others else None
            except pa.ArrowInvalid as error:
                if _BEYOND not in str(error):
                    raise
                raise UnsupportedError(
                    f"Cannot read {self._location}: a nested column holds timestamps outside of 1677 to 2262, which "
                    f"can be read from ORC files in top-level columns only. Rewrite the file as Parquet."
                ) from error
        arrays = []
        for name in names:
            if read is not None and name in others:
                arrays.append(read.column(name))
            else:
                zone = kinds[name].tz
                times = read_timestamps(layout, stripe, name, zone is not None, self._location)
                arrays.append(times.cast(pa.timestamp("us", zone)))
        return pa.RecordBatch.from_arrays(arrays, names=names)

    def is_uuid(self, path: tuple[str, ...]) -> None:
        """Java's readers need no mark."""
        return

    def problems(self) -> list[str]:
        """Days that the writer counted in the Julian calendar, and times that only Java reads."""
        layout = OrcLayout(self._file, self._file.size(), self._location)
        return problems_of(layout, has_field_ids(self._orc.schema))

    def close(self) -> None:
        with contextlib.suppress(OSError, pa.ArrowException):
            self._file.close()

    def _decoding(self) -> contextlib.AbstractContextManager[None]:
        return decoding(self._location, "ORC")


def _is_dotted(names: Sequence[str]) -> bool:
    """Whether pyarrow would mistake a name with dots for a field in a struct."""
    return any("." in name for name in names)
