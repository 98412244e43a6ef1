"""Timestamps that pyarrow's ORC code stores or reads wrongly: before 1970, and beyond 1677 to 2262.

ORC holds a timestamp as seconds and nanoseconds, in two streams. Its writers cut seconds off towards 1970 unless the
fraction is less than a millisecond, and count nanoseconds upwards all the same; readers take a second off where
seconds are negative and nanoseconds a millisecond or more. pyarrow stores negative nanoseconds. Here it gets the whole
seconds only, and the stream of nanoseconds is made anew when the file is finished.

Source: Apache ORC, `TimestampTreeWriter` and `TimestampTreeReader` (Java), `TimestampColumnReader` (C++); Apache ORC
specification v1, "Timestamp Columns".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from hms_iceberg.arrow.columns.arrow_schema import child_fields
from hms_iceberg.arrow.columns.nested import children_of, with_children
from hms_iceberg.arrow.formats.orc.orc_layout import (
    BLOOM_FILTERS,
    DATA,
    DIRECT_V2,
    PRESENT,
    ROW_INDEX,
    SECONDARY,
    UTC_NAMES,
    OrcLayout,
    Stripe,
    encoded_message,
    message,
)
from hms_iceberg.arrow.formats.orc.orc_runs import decode_all, decode_bits, decode_integers, encode_unsigned
from hms_iceberg.arrow.storage.filesystems import decoding
from hms_iceberg.errors import UnsupportedError

_PER_SECOND = {"us": 1_000_000, "ns": 1_000_000_000}
# What readers take for a fraction of less than a millisecond.
_LEAST_MILLISECOND = 999_999
_PIECE_BYTES = 1 << 20
# Numbers of fields of ORC's messages.
_STREAMS, _LENGTH = 1, 3
_CONTENT_LENGTH, _STRIPES, _STATISTICS, _INDEX_STRIDE = 2, 3, 7, 8
_TIMESTAMP_STATISTICS = 9
_FOOTER_LENGTH, _METADATA_LENGTH = 1, 5


class EarlyTimes:
    """The fractions that were kept from pyarrow, by column and by the place of their value in it."""

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self._places: dict[int, list[Any]] = {}
        self._nanos: dict[int, list[Any]] = {}

    def __bool__(self) -> bool:
        return bool(self._places)

    def kept(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch as ORC lays it out, with whole seconds in place of early fractions, which pyarrow can write. A time
        in the last second before 1970 is refused, as ORC has no form of it."""
        numbers = iter(range(1, 1 << 31))
        columns = [
            self._of(column, numbers, field.name) for column, field in zip(batch.columns, batch.schema, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=batch.schema)

    def _of(self, array: pa.Array, numbers: Iterator[int], path: str) -> pa.Array:
        number = next(numbers)  # a column stands before those within it
        if pa.types.is_timestamp(array.type):
            return self._whole_seconds(array, number, path)
        fields = child_fields(array.type)
        if not fields:
            return array
        children = children_of(array)
        made = [self._of(child, numbers, f"{path}.{field.name}") for child, field in zip(children, fields, strict=True)]
        if all(new is old for new, old in zip(made, children, strict=True)):
            return array
        if pa.types.is_struct(array.type):  # with its nulls marked, as pyarrow wants it
            return pa.StructArray.from_arrays(made, fields=fields, mask=array.is_null())
        return with_children(array, made, fields)

    def _whole_seconds(self, array: pa.Array, number: int, path: str) -> pa.Array:
        unit = _PER_SECOND[array.type.unit]
        valid = array.is_valid().to_numpy(zero_copy_only=False)
        values = array.view(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
        before = self._counts.get(number, 0)
        self._counts[number] = before + int(np.count_nonzero(valid))
        early = (values < 0) & (values % unit != 0)
        if not early.any():
            return array
        seconds = values[early] // unit
        nanos = (values[early] - seconds * unit) * (1_000_000_000 // unit)
        cut_off = nanos > _LEAST_MILLISECOND
        if np.any(cut_off & (seconds == -1)):
            raise UnsupportedError(
                f"Cannot write column {path!r} to an ORC file: it has a time less than a second before 1970, which "
                "readers of ORC take for one a second later. Set write.format.default to parquet or avro."
            )
        changed = values.copy()
        changed[early] = (seconds + cut_off) * unit
        places = before + np.cumsum(valid) - 1
        self._places.setdefault(number, []).append(places[early])
        self._nanos.setdefault(number, []).append(nanos)
        return pa.array(changed, pa.int64(), mask=~valid).view(array.type)

    def put_into(self, file: Any, size: int, location: str) -> Iterator[bytes]:
        """A file that pyarrow finished, with the fractions in it; in pieces. It has no indices of rows, bloom filters,
        or statistics of the changed columns: pyarrow made them of other values."""
        changed = {number: self._changes(number) for number in self._places}
        return _rewritten(OrcLayout(file, size, location), changed)

    def _changes(self, number: int) -> tuple[Any, Any]:
        return np.concatenate(self._places[number]), _formatted(np.concatenate(self._nanos[number]))


def _formatted(nanos: Any) -> Any:
    """Nanoseconds as ORC stores them: without zeros at the end, whose number is in the three low bits."""
    found = nanos << 3
    for zeros in range(2, 9):
        whole, rest = np.divmod(nanos, 10**zeros)
        found = np.where(rest == 0, whole << 3 | (zeros - 1), found)
    return found


def _rewritten(layout: OrcLayout, changed: dict[int, tuple[Any, Any]]) -> Iterator[bytes]:
    at = len(layout.header)
    yield layout.header
    done = dict.fromkeys(changed, 0)
    stripes = []
    for stripe in layout.stripes:
        length = 0
        streams = []
        footer = layout.footer(stripe)
        for (kind, column), (first, stored) in footer.streams.items():
            if kind == ROW_INDEX or kind in BLOOM_FILTERS:
                continue
            if kind == SECONDARY and column in changed:
                data = layout.framed(_with_fractions(layout.stream(footer, kind, column) or b"", column, changed, done))
                pieces, size = iter((data,)), len(data)
            else:
                pieces, size = layout.pieces(first, stored, _PIECE_BYTES), stored
            yield from pieces
            length += size
            streams.append(encoded_message({1: [kind], 2: [column], _LENGTH: [size]}))
        ending = layout.framed(encoded_message({**layout.footer_fields(stripe), _STREAMS: streams}))
        yield ending
        stripes.append(Stripe(at, 0, length, len(ending), stripe.rows))
        at += length + len(ending)
    yield from _tail(layout, stripes, at, changed)


def _with_fractions(data: bytes, column: int, changed: dict[int, tuple[Any, Any]], done: dict[int, int]) -> bytes:
    values = decode_all(data, signed=False)
    places, nanos = changed[column]
    own = (places >= done[column]) & (places < done[column] + len(values))
    values[places[own] - done[column]] = nanos[own]
    done[column] += len(values)
    return encode_unsigned(values)


def _tail(layout: OrcLayout, stripes: list[Stripe], at: int, changed: dict[int, tuple[Any, Any]]) -> Iterator[bytes]:
    footer, postscript = layout.tail_fields()
    statistics = [
        encoded_message({key: found for key, found in message(raw).items() if key != _TIMESTAMP_STATISTICS})
        if number in changed
        else raw
        for number, raw in enumerate(footer.get(_STATISTICS, []))
    ]
    ending = layout.framed(
        encoded_message(
            {
                **footer,
                _CONTENT_LENGTH: [at - len(layout.header)],
                _STRIPES: [encoded_message(dict(enumerate(([each] for each in _numbers(one)), 1))) for one in stripes],
                _STATISTICS: statistics,
                _INDEX_STRIDE: [0],
            }
        )
    )
    yield ending
    last = encoded_message({**postscript, _FOOTER_LENGTH: [len(ending)], _METADATA_LENGTH: [0]})
    yield last + bytes([len(last)])


def _numbers(stripe: Stripe) -> tuple[int, ...]:
    return stripe.offset, stripe.index_length, stripe.data_length, stripe.footer_length, stripe.rows


_BASE_SECONDS = 1_420_070_400  # 2015-01-01T00:00:00 UTC, from which ORC counts


def read_timestamps(layout: OrcLayout, stripe_index: int, name: str, zoned: bool, location: str) -> pa.Array:
    """A top-level timestamp column of a stripe, in microseconds; without a zone only files written in UTC are read."""
    stripe = layout.stripes[stripe_index]
    footer = layout.footer(stripe)
    if not zoned and footer.timezone not in UTC_NAMES:
        raise UnsupportedError(
            f"Cannot read timestamps outside of 1677 to 2262 from column {name!r} of {location}: the file was written "
            f"in time zone {footer.timezone}, and only UTC is supported for them."
        )
    column = layout.top_level_columns()[name]
    version = 2 if footer.encodings[column] == DIRECT_V2 else 1
    with decoding(location, "ORC", f"column {name!r}"):
        present_stream = layout.stream(footer, PRESENT, column)
        present = None if present_stream is None else decode_bits(present_stream, stripe.rows)
        count = stripe.rows if present is None else int(np.count_nonzero(present))
        seconds = decode_integers(layout.stream(footer, DATA, column) or b"", count, True, version)
        fractions = decode_integers(layout.stream(footer, SECONDARY, column) or b"", count, False, version)
    micros = _micros(seconds + _BASE_SECONDS, fractions)
    if present is None:
        return pa.array(micros, pa.int64()).view(pa.timestamp("us"))
    values = np.zeros(stripe.rows, np.int64)
    values[present] = micros
    return pa.array(values, pa.int64(), mask=~present).view(pa.timestamp("us"))


def _micros(seconds: Any, fractions: Any) -> Any:
    """Microseconds since the epoch; the three low bits of a fraction count the zeros that were cut off."""
    zeros = fractions & 7
    nanos = (fractions >> 3) * np.where(zeros > 0, 10 ** (zeros + 1), 1)
    # Writers round seconds before the epoch towards zero if the fraction has a millisecond or more.
    seconds = np.where((seconds < 0) & (nanos > 999_999), seconds - 1, seconds)
    return seconds * 1_000_000 + nanos // 1_000
