"""Data and delete files in a table's folder that no manifest names: those that lost manifests named."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations

from hms_iceberg.arrow.columns.arrow_schema import field_id_of
from hms_iceberg.arrow.deletes.deleted_rows import read_position_deletes
from hms_iceberg.arrow.deletes.puffin import parse_footer
from hms_iceberg.arrow.formats.content_files import open_reader
from hms_iceberg.arrow.metrics.footer_metrics import metrics_modes, read_footer
from hms_iceberg.arrow.parallel import in_parallel
from hms_iceberg.arrow.reading.imported_files import FileImport
from hms_iceberg.arrow.storage.data_locations import LocationRules
from hms_iceberg.arrow.storage.filesystems import decoding
from hms_iceberg.errors import IcebergError, StorageError
from hms_iceberg.maintenance.check.digests import file_number
from hms_iceberg.maintenance.repair.examination import DAMAGE, Examination
from hms_iceberg.spec.field_mapping import create_name_mapping
from hms_iceberg.spec.manifests.manifest_values import DataFile, DataFileContent, ManifestContent, ManifestFile
from hms_iceberg.spec.metadata_columns import DELETE_FILE_PATH, DELETE_FILE_POSITION
from hms_iceberg.spec.places import split_location
from hms_iceberg.spec.table_properties import metadata_folder
from hms_iceberg.storage import Places, Storage

_POSITION_COLUMNS = {DELETE_FILE_PATH.field_id, DELETE_FILE_POSITION.field_id}
_VECTOR = "deletion-vector-v1"


@dataclass(frozen=True)
class DeleteFileImport:
    """Describes delete files of one table."""

    storage: Storage  # where the table's files are
    importer: FileImport  # describes the columns and the partition of a file, as if it held data
    # a file of the spec and partition of the data file at a location; None if no manifest names it
    target: Callable[[str], DataFile | None]

    def describe(self, location: str) -> list[DataFile]:
        """The delete file at a location, or the vectors in it; none if it holds no deletes of this table."""
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
        said = read_footer(self.storage, location).metadata.metadata or {}
        if said.get(b"delete-type") != b"equality":
            return []
        ids = tuple(int(each) for each in said[b"delete-field-ids"].decode().split(","))
        described = self.importer.describe(location)
        return [replace(described, content=DataFileContent.EQUALITY_DELETES, equality_ids=ids)]


_ENDINGS = (".parquet", ".orc", ".avro", ".puffin")
# Files that are shared out among several manifests: more have too many ways.
_MOST_SHARED = 16


@dataclass(frozen=True)
class UnnamedFiles:
    """Files that no manifest of a table names."""

    examination: Examination
    named: set[int]  # the numbers of the files that manifests name
    targets: dict[int, DataFile]  # by the number of a data file that is named, a file of its spec and partition
    locations: tuple[str, ...]  # where files are that no manifest names, in the order of their names
    places: Places  # of the storage that the table is in

    @classmethod
    def of(cls, examination: Examination) -> UnnamedFiles:
        """Lists the folder of a table, if it is the table's own."""
        places = Places(examination.storage)
        named: set[int] = set()
        targets: dict[int, DataFile] = {}
        partitions: dict[object, DataFile] = {}
        for entry in examination.entries.everywhere():
            file = entry.data_file
            number = _number(file, places)
            named.add(number)
            if file.is_data:
                targets[number] = partitions.setdefault(file.partition_key, file)
        found = _content_locations(examination, places)
        unnamed = [each for each in found if _number(_at(each), places) not in named]
        theirs = examination.of_others(unnamed)
        return cls(examination, named, targets, tuple(sorted(each for each in unnamed if each not in theirs)), places)

    def described(self, manifest: ManifestFile) -> list[DataFile]:
        """The unnamed files that fit a manifest's content and partition spec, with metrics read from the files."""
        locations = [_spelled_as(manifest.manifest_path, each, self.places) for each in self.locations]
        found = in_parallel(self._describer(manifest), locations, self.examination.metadata.location)
        return [
            file
            for files in found
            for file in files
            if file.spec_id == manifest.partition_spec_id and _number(file, self.places) not in self.named
        ]

    def _describer(self, manifest: ManifestFile) -> Callable[[str], list[DataFile]]:
        metadata = replace(self.examination.metadata, default_spec_id=manifest.partition_spec_id)
        mapping = metadata.name_mapping() or create_name_mapping(metadata.schema())
        modes = metrics_modes(metadata.schema(), metadata.properties, metadata.sort_order())
        importer = FileImport(metadata, self.examination.storage, mapping, modes)
        deletes = DeleteFileImport(self.examination.storage, importer, self._target)
        return partial(_described, manifest.content, importer, deletes)

    def _target(self, location: str) -> DataFile | None:
        return self.targets.get(_number(_at(location), self.places))


def _described(
    content: ManifestContent, importer: FileImport, deletes: DeleteFileImport, location: str
) -> list[DataFile]:
    """A file, if it is of this content; nothing if it is not, or its partition is unclear."""
    try:
        if content is ManifestContent.DELETES:
            return deletes.describe(location)
        return [] if deletes.describe(location) else [importer.describe(location)]
    except DAMAGE:
        return []
    except StorageError:
        raise
    except IcebergError:
        return []


def _at(location: str) -> DataFile:
    return DataFile(file_path=location, file_format="", record_count=0, file_size_in_bytes=0)


def _number(file: DataFile, places: Places) -> int:
    """The number of a file, the same for each of its spellings."""
    return file_number(replace(file, file_path=str(places.anywhere(file.file_path))))


def _spelled_as(model: str, location: str, places: Places) -> str:
    """A location with scheme and host of another one, if it is the same file: position deletes name files literally,
    and the writer of a manifest spelled its data files as he spelled the manifest."""
    _, _, path = split_location(model)
    spelled = model[: len(model) - len(path)] + split_location(location)[2]
    return spelled if places.of(spelled) == places.of(location) else location


def _content_locations(examination: Examination, places: Places) -> Iterator[str]:
    """Locations of files in the table's own folder that may hold data or deletes."""
    metadata = examination.metadata
    folder = LocationRules.of(metadata.location, metadata.properties).folder
    if not places.of(folder).is_in(places.of(metadata.location)):
        return  # other tables may have files there too
    meta = places.of(metadata_folder(metadata.location, metadata.properties))
    for file in examination.storage.list(folder):
        if file.location.endswith(_ENDINGS) and not places.of(file.location).is_in(meta):
            yield file.location


# ------------------------------------------------------------------------------------- shares of manifests


def counts_of(manifest: ManifestFile) -> tuple[int, int]:
    """How many live files and rows a manifest has, as its list says."""
    files = (manifest.added_files_count or 0) + (manifest.existing_files_count or 0)
    return files, (manifest.added_rows_count or 0) + (manifest.existing_rows_count or 0)


def own_share(
    files: Sequence[DataFile], manifest: ManifestFile, beside: Sequence[ManifestFile]
) -> list[DataFile] | None:
    """The files of one manifest among those of all; None unless counts of files and rows leave only one way."""
    if (len(files), sum(file.record_count for file in files)) == counts_of(manifest):
        return list(files) if counts_of(manifest) not in map(counts_of, beside) else None
    if not beside or len(files) > _MOST_SHARED:
        return None
    ways = {own for own, rest in _shares(frozenset(range(len(files))), manifest, files) if _fit(rest, beside, files)}
    return [files[place] for place in sorted(*ways)] if len(ways) == 1 else None


def _shares(
    places: frozenset[int], manifest: ManifestFile, files: Sequence[DataFile]
) -> Iterator[tuple[frozenset[int], frozenset[int]]]:
    """The possible choices of files for a manifest, by its counts of files and rows, each with what is left over."""
    count, rows = counts_of(manifest)
    for chosen in combinations(sorted(places), count):
        if sum(files[place].record_count for place in chosen) == rows:
            yield frozenset(chosen), places - frozenset(chosen)


def _fit(places: frozenset[int], manifests: Sequence[ManifestFile], files: Sequence[DataFile]) -> bool:
    """Whether some manifests can have these files, and no others are left."""
    if not manifests:
        return not places
    return any(_fit(rest, manifests[1:], files) for _, rest in _shares(places, manifests[0], files))
