"""Answers to the JVM: a JSON header, then arrays, as the bridge's class Answer takes them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from hms_iceberg.lazy import pl


class AnswerWriter:
    """Puts an answer together. Everything is little endian; each array starts at a multiple of eight."""

    def __init__(self, header: Any) -> None:
        text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
        self._parts: list[bytes] = [len(text).to_bytes(4, "little"), text]
        self._length = 4 + len(text)

    def longs(self, values: pl.Series) -> AnswerWriter:
        return self._array(values.cast(pl.Int64).to_numpy().tobytes())

    def ints(self, values: pl.Series) -> AnswerWriter:
        return self._array(values.cast(pl.Int32).to_numpy().tobytes())

    def texts(self, values: pl.Series) -> AnswerWriter:
        """Adds texts: 64-bit offsets, one more than there are texts, and their UTF-8."""
        import numpy as np

        array = values.to_arrow(compat_level=pl.CompatLevel.oldest())
        _, offsets, data = array.buffers()
        count = len(array) + 1
        positions = np.frombuffer(offsets, np.int64, count) if offsets is not None else np.zeros(count, np.int64)
        self._array(positions.tobytes())
        return self._array(b"" if data is None else data[: int(positions[-1])].to_pybytes())

    def blobs(self, values: Sequence[bytes]) -> AnswerWriter:
        """Adds byte strings: 64-bit offsets, one more than there are strings, and all the bytes."""
        import numpy as np

        self._array(np.cumsum([0, *map(len, values)], dtype=np.int64).tobytes())
        return self._array(b"".join(values))

    def done(self) -> bytes:
        return b"".join(self._parts)

    def _array(self, data: bytes) -> AnswerWriter:
        padding = -self._length % 8
        self._parts += [b"\0" * padding, data]
        self._length += padding + len(data)
        return self
