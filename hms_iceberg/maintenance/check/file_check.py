"""Checks of data files: do they exist, and do their sizes, rows and values agree with the manifests?

Checksums of pages (Parquet, where the writer left some), of blocks and of compressed data tell most damage; the counts
of nulls and the bounds tell some of the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from hms_iceberg.arrow.columns.projection import file_leaves
from hms_iceberg.arrow.deletes.puffin import read_deletion_vector
from hms_iceberg.arrow.formats.content_files import open_reader
from hms_iceberg.arrow.metrics.batch_metrics import BatchMetrics
from hms_iceberg.arrow.metrics.footer_metrics import FULL, ColumnMetrics
from hms_iceberg.arrow.reading.scan_context import ScanContext
from hms_iceberg.arrow.reading.task_reader import read_task
from hms_iceberg.errors import IcebergError, MissingFileError
from hms_iceberg.maintenance.check import findings as found
from hms_iceberg.maintenance.check.bounds_check import Bounds
from hms_iceberg.maintenance.check.findings import Finding
from hms_iceberg.scan.tasks import FileScanTask
from hms_iceberg.spec.data_types import GeographyType, GeometryType, PrimitiveType
from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.values.single_values import from_bytes, point_from_bytes
from hms_iceberg.storage import Storage


def check_file(
    storage: Storage, files: Sequence[DataFile], record_counts: bool, bounds: Bounds | None, values: Values | None
) -> list[Finding]:
    """Finds problems of a file with one entry, or of a Puffin file with an entry for each of its vectors."""
    first = files[0]
    findings = check_size(storage, first.file_path, role_of(first), first.file_size_in_bytes)
    if any(isinstance(each, found.MissingFile) for each in findings):
        return findings
    wrong = [finding for file in files for finding in _records(storage, file)] if record_counts else []
    if wrong or first.is_deletion_vector:  # which are read whole to count them
        return findings + wrong
    findings += [] if bounds is None else _bounds(bounds, first)
    known = {each.column for each in findings if isinstance(each, found.WrongBounds)}
    rest = [] if values is None else values.check(first)
    return findings + [each for each in rest if not (isinstance(each, found.WrongValues) and each.column in known)]


def _bounds(bounds: Bounds, file: DataFile) -> list[Finding]:
    try:
        return [*bounds.check(file)]
    except IcebergError as error:
        return [found.UnreadableFile(file.file_path, role_of(file), str(error))]


def check_size(storage: Storage, location: str, role: str, recorded: int) -> list[Finding]:
    """One finding if a file is missing, unreadable or not of the recorded size in bytes, else none."""
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
    """Counts rows, or positions of a deletion vector, from the file's own headers where the format has them."""
    if file.is_deletion_vector:
        return len(read_deletion_vector(storage, file))
    reader = open_reader(storage, file.file_path, file.file_format, None, file.key_metadata)
    try:
        return sum(each.rows for each in reader.ranges())
    finally:
        reader.close()


def role_of(file: DataFile) -> str:
    """The role of a file in its table, in words."""
    return "data file" if file.is_data else "delete file"


def unread(location: str, role: str, error: IcebergError) -> Finding:
    """The finding for a file that is gone or cannot be read; `role` is what the file is to the table."""
    if isinstance(error, MissingFileError):
        return found.MissingFile(location, role)
    return found.UnreadableFile(location, role, str(error))


_BATCH_ROWS = 65_536


class Values:
    """Reads whole data files, and compares their values with what the manifests say."""

    def __init__(self, metadata: TableMetadata, storage: Storage) -> None:
        self._metadata = metadata
        self._storage = storage
        schema = metadata.schema()
        self._schema = schema
        self._columns = {field.field_id for field in schema.fields}

    def check(self, file: DataFile) -> list[Finding]:
        """Finds problems of a data file or a delete file."""
        try:
            there = self._decode(file)
            return list(self._compared(file, self._counted(file), there)) if file.is_data else []
        except IcebergError as error:
            role = "data file" if file.is_data else "delete file"
            return [found.UnreadableFile(file.file_path, role, str(error))]

    def _decode(self, file: DataFile) -> set[int]:
        """Decodes columns that no column of the table reads (dropped ones, and those of delete files), to find damage
        in them. Returns the columns of the table that the file has: others read as null, or as their default."""
        mapping = self._metadata.name_mapping()
        reader = open_reader(self._storage, file.file_path, file.file_format, mapping, file.key_metadata)
        try:
            every = file_leaves(reader.schema)
            known = self._schema.index_by_id if file.is_data else ()
            leaves = [leaf.index for leaf in every if leaf.field_id not in known]
            for rows in reader.ranges() if leaves else ():
                for _ in reader.read(rows, leaves, _BATCH_ROWS, use_threads=False):
                    pass
            return {leaf.field_id for leaf in every if leaf.field_id is not None}
        finally:
            reader.close()

    def _counted(self, file: DataFile) -> ColumnMetrics:
        """The metrics of the values that a data file holds, as the table's columns."""
        context = ScanContext(self._metadata, self._storage, self._schema, self._schema, _BATCH_ROWS)
        counted = BatchMetrics(self._schema, dict.fromkeys(self._schema.index_by_id, FULL))
        for batch in read_task(context, FileScanTask.of(file)):
            counted.add(batch)
        return counted.result()

    def _compared(self, file: DataFile, counted: ColumnMetrics, there: set[int]) -> Iterator[Finding]:
        for field_id, nulls in (file.null_value_counts or {}).items():
            found_nulls = counted.null_value_counts.get(field_id, nulls)
            if field_id in self._columns & there and found_nulls != nulls:
                reason = f"{found_nulls:,} nulls and not {nulls:,}"
                yield found.WrongValues(file.file_path, self._name(field_id), reason)
        yield from self._bounded(file, file.lower_bounds, counted.lower_bounds, lower=True)
        yield from self._bounded(file, file.upper_bounds, counted.upper_bounds, lower=False)

    def _bounded(
        self, file: DataFile, said: Mapping[int, bytes] | None, counted: Mapping[int, bytes], lower: bool
    ) -> Iterator[Finding]:
        for field_id, bound in (said or {}).items():
            kind = self._schema.find_type(field_id) if field_id in counted else None
            if not isinstance(kind, PrimitiveType):
                continue
            if isinstance(kind, (GeometryType, GeographyType)):
                _, limit, *_ = point_from_bytes(bound)  # x goes round the globe
                _, value, *_ = point_from_bytes(counted[field_id])
            else:
                limit, value = from_bytes(kind, bound), from_bytes(kind, counted[field_id])
            if value < limit if lower else value > limit:
                way = "below the least" if lower else "above the greatest"
                yield found.WrongValues(file.file_path, self._name(field_id), f"some are {way}, {limit!r}")

    def _name(self, field_id: int) -> str:
        return self._schema.find_column_name(field_id) or str(field_id)
