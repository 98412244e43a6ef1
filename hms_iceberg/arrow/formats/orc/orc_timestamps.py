"""Timestamps of ORC files beyond the years 1677 to 2262, which pyarrow's nanoseconds cannot hold.

Source: Apache ORC specification v1, "Timestamp Columns".
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from hms_iceberg.arrow.formats.orc.orc_layout import DATA, DIRECT_V2, PRESENT, SECONDARY, UTC_NAMES, OrcLayout
from hms_iceberg.arrow.formats.orc.orc_runs import decode_bits, decode_integers
from hms_iceberg.arrow.storage.failures import decoding
from hms_iceberg.errors import UnsupportedError

_BASE_SECONDS = 1_420_070_400  # 2015-01-01T00:00:00 UTC, from which ORC counts


def read_timestamps(layout: OrcLayout, stripe_index: int, name: str, zoned: bool, location: str) -> pa.Array:
    """A top-level timestamp column of a stripe, in microseconds.

    Args:
        layout: the file's layout.
        stripe_index: which stripe.
        name: the column.
        zoned: whether the column is ``timestamp with local time zone``, which is stored in UTC.
        location: the file, for messages.

    Raises:
        CorruptDataFileError: the streams are damaged.
        UnsupportedError: the file was written in another time zone than UTC.
    """
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
