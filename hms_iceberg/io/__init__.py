"""PyIceberg's door to files: `hms_iceberg.storage`, and `hms_iceberg.arrow.storage` behind it."""

from __future__ import annotations

from collections.abc import Mapping

from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.storage import FileIO, InputFile, OutputFile


def load_file_io(properties: Mapping[str, str] | None = None, location: str | None = None) -> FileIO:
    """Files of any store, by storage properties such as `s3.endpoint`. A location's scheme tells its store."""
    return FileIO(ArrowStorage(dict(properties or {})))


__all__ = ["FileIO", "InputFile", "OutputFile", "load_file_io"]
