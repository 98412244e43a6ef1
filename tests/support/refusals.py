"""What an error has to be for its reader: typed, of one line, and with the words that help."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from hms_iceberg.errors import IcebergError


@contextmanager
def refused_in_one_line(kind: type[IcebergError], *words: str) -> Iterator[None]:
    with pytest.raises(kind) as caught:
        yield
    text = str(caught.value)
    assert "\n" not in text
    assert "org.apache" not in text
    assert [word for word in words if word not in text] == [], text
