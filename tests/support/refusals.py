"""What an error has to be for its reader: typed, soon, of one line, and with the words that help."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from hms_iceberg.errors import IcebergError

LONGEST = 10.0


@contextmanager
def one_line_within_ten_seconds(kind: type[IcebergError], *words: str) -> Iterator[None]:
    started = time.monotonic()
    with pytest.raises(kind) as caught:
        yield
    text = str(caught.value)
    assert time.monotonic() - started < LONGEST
    assert "\n" not in text
    assert "org.apache" not in text
    assert [word for word in words if word not in text] == [], text
