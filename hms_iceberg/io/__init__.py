"""PyIceberg's module path of files: `hms_iceberg.storage`, and `hms_iceberg.arrow.storage` behind it."""

from __future__ import annotations

from collections.abc import Mapping

from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.storage import FileIO, InputFile, OutputFile

# Properties of catalogs and storage.
WAREHOUSE = "warehouse"
S3_ENDPOINT = "s3.endpoint"
S3_ACCESS_KEY_ID = "s3.access-key-id"
S3_SECRET_ACCESS_KEY = "s3.secret-access-key"
S3_SESSION_TOKEN = "s3.session-token"
S3_REGION = "s3.region"


def load_file_io(properties: Mapping[str, str] | None = None, location: str | None = None) -> FileIO:
    """A `FileIO` of any store, by storage properties such as `s3.endpoint`; each location's scheme tells its store.

    Args:
        properties: storage properties; see the guide on storage.
        location: not needed here, as the scheme of each file's location tells its store.
    """
    return FileIO(ArrowStorage(dict(properties or {})))


__all__ = [
    "S3_ACCESS_KEY_ID",
    "S3_ENDPOINT",
    "S3_REGION",
    "S3_SECRET_ACCESS_KEY",
    "S3_SESSION_TOKEN",
    "WAREHOUSE",
    "FileIO",
    "InputFile",
    "OutputFile",
    "load_file_io",
]
