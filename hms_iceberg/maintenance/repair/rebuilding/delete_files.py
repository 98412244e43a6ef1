"""Delete files, described from what they hold themselves.

Deletion vectors name their data files in the footer of their Puffin file, position deletes in their rows; equality
deletes say what they are in footers of Parquet, as Apache Iceberg writes them.

Source: Iceberg specification, "Delete Formats", "Reserved Field IDs"; Puffin specification, `deletion-vector-v1`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from hms_iceberg.arrow.columns.arrow_schema import field_id_of
from hms_iceberg.arrow.deletes.position_deletes import read_position_deletes
from hms_iceberg.arrow.deletes.puffin_footer import parse_footer
from hms_iceberg.arrow.formats.readers import open_reader
from hms_iceberg.arrow.metrics.footer_metrics import read_footer
from hms_iceberg.arrow.reading.imported_files import FileImport
from hms_iceberg.arrow.storage.failures import decoding
from hms_iceberg.spec.manifests.manifest_values import DataFile, DataFileContent
from hms_iceberg.spec.metadata_columns import DELETE_FILE_PATH, DELETE_FILE_POSITION
from hms_iceberg.storage import Storage

_POSITION_COLUMNS = {DELETE_FILE_PATH.field_id, DELETE_FILE_POSITION.field_id}
_VECTOR = "deletion-vector-v1"


@dataclass(frozen=True)
class DeleteFileImport:
    """Describes delete files of one table.

    Attributes:
        storage: where the table's files are.
        importer: describes the columns and the partition of a file, as if it held data.
        target: a file of the spec and partition of the data file at a location; None if no manifest names it.
    """

    storage: Storage
    importer: FileImport
    target: Callable[[str], DataFile | None]

    def describe(self, location: str) -> list[DataFile]:
        """The delete file at a location, or the vectors in it; none if it holds no deletes of this table.

        Raises:
            IcebergError: the file cannot be read, or is not one that can be described.
        """
        if location.endswith(".puffin"):
            with decoding(location, "Puffin", "its footer"):
                return list(self._vectors(location))
        file_format = location.rpartition(".")[2]
        reader = open_reader(self.storage, location, file_format)
        try:
            columns = {field_id_of(field) for field in reader.schema}
            rows = sum(each.rows for each in reader.ranges())
        finally:
            reader.close()
        if columns >= _POSITION_COLUMNS:
            size = self.storage.length(location)
            return self._positions(
                DataFile(
                    file_path=location,
                    file_format=file_format.upper(),
                    record_count=rows,
                    file_size_in_bytes=size,
                    content=DataFileContent.POSITION_DELETES,
                )
            )
        return self._equality(location) if file_format == "parquet" else []

    def _vectors(self, location: str) -> Iterator[DataFile]:
        data = self.storage.read(location)
        _, footer = parse_footer(data, location)
        for blob in footer["blobs"]:
            properties = blob.get("properties") or {}
            location_of_rows = properties.get("referenced-data-file", "")
            target = self.target(location_of_rows)
            if blob["type"] == _VECTOR and target is not None:
                yield DataFile(
                    content=DataFileContent.POSITION_DELETES,
                    file_path=location,
                    file_format="PUFFIN",
                    spec_id=target.spec_id,
                    partition=target.partition,
                    record_count=int(properties["cardinality"]),
                    file_size_in_bytes=len(data),
                    referenced_data_file=location_of_rows,
                    content_offset=blob["offset"],
                    content_size_in_bytes=blob["length"],
                )

    def _positions(self, file: DataFile) -> list[DataFile]:
        """A position delete file, whose data files are all of one partition."""
        paths = list(read_position_deletes(self.storage, file))
        targets = [found for path in paths if (found := self.target(path)) is not None]
        if len({target.partition_key for target in targets}) != 1:
            return []
        described = replace(
            file,
            spec_id=targets[0].spec_id,
            partition=targets[0].partition,
            referenced_data_file=paths[0] if len(paths) == 1 else None,
        )
        return [described]

    def _equality(self, location: str) -> list[DataFile]:
        said = read_footer(self.storage, location).metadata or {}
        if said.get(b"delete-type") != b"equality":
            return []
        ids = tuple(int(each) for each in said[b"delete-field-ids"].decode().split(","))
        described = self.importer.describe(location)
        return [replace(described, content=DataFileContent.EQUALITY_DELETES, equality_ids=ids)]
