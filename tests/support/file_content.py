"""What is in a data file, wherever the run's warehouse is, for readers that share no code with the package."""

from __future__ import annotations

import io

from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage


def content(location: str) -> io.BytesIO:
    """The whole file, to be read by a decoder of others."""
    return io.BytesIO(ArrowStorage().read(location))
