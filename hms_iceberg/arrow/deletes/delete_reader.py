"""Opens delete files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from hms_iceberg.arrow.formats.readers import ContentReader, check_row_count, open_reader
from hms_iceberg.errors import MissingFileError
from hms_iceberg.spec.field_mapping import NameMapping
from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.storage import Storage


@contextmanager
def open_delete_file(storage: Storage, file: DataFile, mapping: NameMapping | None = None) -> Iterator[ContentReader]:
    """A reader of a position or equality delete file, closed at the end.

    Args:
        storage: where it is.
        file: the delete file.
        mapping: the table's name mapping, for files without field ids.

    Raises:
        MissingFileError: it is gone; the error says that it is a delete file.
        CorruptDataFileError: it is damaged, or has not the rows that its manifest entry promises.
    """
    try:
        reader = open_reader(storage, file.file_path, file.file_format, mapping)
    except MissingFileError as error:
        raise MissingFileError(f"Cannot tell which rows are deleted, as a delete file is missing: {error}") from error
    try:
        check_row_count(reader, file)
        yield reader
    finally:
        reader.close()
