"""Files against what their manifest entries say of them: there, of their size, with their rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hms_iceberg.arrow.deletes.puffin import read_deletion_vector
from hms_iceberg.arrow.formats.content_files import open_reader
from hms_iceberg.errors import IcebergError, MissingFileError
from hms_iceberg.maintenance.check import findings as found
from hms_iceberg.maintenance.check.findings import Finding
from hms_iceberg.maintenance.check.value_check import Values
from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.storage import Storage


def check_file(
    storage: Storage, files: Sequence[DataFile], record_counts: bool, values: Values | None
) -> list[Finding]:
    """Finds problems of a file.

    Args:
        storage: where it is.
        files: its entries: one, or one for each vector of a Puffin file.
        record_counts: whether it is opened and its rows are counted.
        values: reads it whole; None if it is not to be.
    """
    first = files[0]
    findings = check_size(storage, first.file_path, role_of(first), first.file_size_in_bytes)
    if not record_counts or any(isinstance(each, found.MissingFile) for each in findings):
        return findings
    wrong = [finding for file in files for finding in _records(storage, file)]
    if values is not None and not wrong and not first.is_deletion_vector:  # vectors are read whole to count them
        wrong = values.check(first)
    return findings + wrong


def check_size(storage: Storage, location: str, role: str, recorded: int) -> list[Finding]:
    """A file that is not there, or not of its size."""
    try:
        size = storage.length(location)
    except IcebergError as error:
        return [unread(location, role, error)]
    return [] if size == recorded else [found.WrongFileSize(location, role, recorded, size)]


def _records(storage: Storage, file: DataFile) -> Iterator[Finding]:
    try:
        records = count_records(storage, file)
    except IcebergError as error:
        yield found.UnreadableFile(file.file_path, role_of(file), str(error))
        return
    if records != file.record_count:
        yield found.WrongRecordCount(file.file_path, file.record_count, records)


def count_records(storage: Storage, file: DataFile) -> int:
    """How many rows a file has, or positions a deletion vector; raises `IcebergError` if it is damaged."""
    if file.is_deletion_vector:
        return len(read_deletion_vector(storage, file))
    reader = open_reader(storage, file.file_path, file.file_format)
    try:
        return sum(each.rows for each in reader.ranges())
    finally:
        reader.close()


def role_of(file: DataFile) -> str:
    """The role of a file in its table, in words."""
    return "data file" if file.is_data else "delete file"


def unread(location: str, role: str, error: IcebergError) -> Finding:
    """A file that is not there, or that cannot be read."""
    if isinstance(error, MissingFileError):
        return found.MissingFile(location, role)
    return found.UnreadableFile(location, role, str(error))
