"""Tables with a row for each file or manifest entry: files, data_files, delete_files, entries and their all_* forms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import accumulate, count, groupby
from typing import Any, cast

from hms_iceberg.encryption.encrypted_tables import manifest_bytes
from hms_iceberg.lazy import pl
from hms_iceberg.scan.manifests.cache import ManifestFrame, cache_of
from hms_iceberg.scan.manifests.entry_frames import file_dtypes, metric_dtypes
from hms_iceberg.scan.manifests.manifest_frames import MANIFEST, ManifestDecoder
from hms_iceberg.scan.manifests.manifest_source import ManifestSource
from hms_iceberg.scan.manifests.metric_columns import Metric, map_values
from hms_iceberg.scan.metadata_tables.request import MetadataRequest, MetadataTable, partition_struct
from hms_iceberg.scan.partition_columns import polars_dtype, stored_bounds
from hms_iceberg.spec.data_types import (
    BinaryType,
    GeographyType,
    GeometryType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    PrimitiveType,
    StringType,
    StructType,
)
from hms_iceberg.spec.manifests.manifest_values import (
    DataFileContent,
    ManifestContent,
    ManifestEntryStatus,
    ManifestFile,
)
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.values.single_values import point_text

_COUNTS = ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts")
_METRICS = "readable_metrics"
_CONTENT = {
    "data_files": ManifestContent.DATA,
    "all_data_files": ManifestContent.DATA,
    "delete_files": ManifestContent.DELETES,
    "all_delete_files": ManifestContent.DELETES,
}
_PART_ENTRIES = 1_000
_READABLE = {
    "column_size": "Total size on disk",
    "value_count": "Total count, including null and NaN",
    "null_value_count": "Null value count",
    "nan_value_count": "NaN value count",
    "lower_bound": "Lower bound",
    "upper_bound": "Upper bound",
}


def files(request: MetadataRequest) -> MetadataTable:
    """One row for each live data and delete file of the snapshot."""
    return _files(request, request.manifests())


def data_files(request: MetadataRequest) -> MetadataTable:
    """One row for each live data file of the snapshot."""
    return _files(request, _of(request.manifests(), ManifestContent.DATA))


def delete_files(request: MetadataRequest) -> MetadataTable:
    """One row for each live delete file of the snapshot."""
    return _files(request, _of(request.manifests(), ManifestContent.DELETES))


def all_files(request: MetadataRequest) -> MetadataTable:
    """Files of all snapshots; a file may come several times."""
    return _files(request, request.distinct_manifests())


def all_data_files(request: MetadataRequest) -> MetadataTable:
    """Data files of all snapshots; a file may come several times."""
    return _files(request, _of(request.distinct_manifests(), ManifestContent.DATA))


def all_delete_files(request: MetadataRequest) -> MetadataTable:
    """Delete files of all snapshots; a file may come several times."""
    return _files(request, _of(request.distinct_manifests(), ManifestContent.DELETES))


def entries(request: MetadataRequest) -> MetadataTable:
    """One row for each manifest entry of the snapshot, removals included."""
    return _entries(request, request.manifests())


def all_entries(request: MetadataRequest) -> MetadataTable:
    """One row for each entry of the manifests of all snapshots, removals included."""
    return _entries(request, request.distinct_manifests())


def parts(name: str, request: MetadataRequest, most: int) -> list[MetadataRequest]:
    """Requests, at most `most`, for some manifests each, whose rows below one another are a table's; one if no maps of
    metrics are asked for, as the rest takes no time."""
    if request.columns is not None and {*metric_dtypes(), _METRICS, "data_file"}.isdisjoint(request.columns):
        return [request]
    manifests = _listed(name, request)
    sizes = [each.entries_count or 0 for each in manifests]
    size = max(_PART_ENTRIES, -(-sum(sizes) // most))
    found: dict[int, list[ManifestFile]] = {0: []}
    for manifest, before in zip(manifests, accumulate(sizes, initial=0), strict=False):
        found.setdefault(before // size, []).append(manifest)
    return [replace(request, listed=each) for each in found.values() if each or len(found) == 1]


def start(name: str, request: MetadataRequest, rows: int) -> MetadataRequest:
    """A request for the first manifests that have at least so many live files of a table's kind."""
    kept: list[ManifestFile] = []
    left = rows
    for manifest in _listed(name, request):
        if left > 0 and manifest.content is _CONTENT.get(name, manifest.content):
            kept.append(manifest)
            left -= (manifest.added_files_count or 0) + (manifest.existing_files_count or 0)
    return replace(request, listed=kept)


def _listed(name: str, request: MetadataRequest) -> list[ManifestFile]:
    return request.distinct_manifests() if name.startswith("all_") else request.manifests()


def entry_frame(
    request: MetadataRequest, manifests: Sequence[ManifestFile], metrics: Sequence[str] = ()
) -> pl.DataFrame:
    """All entries of some manifests, with the partition columns of all specs, and with some maps of metrics."""

    def read(manifest: ManifestFile) -> pl.DataFrame:
        data = manifest_bytes(manifest, request.storage)
        return ManifestDecoder([(data, manifest)], request.partitions).entries(metrics).drop(MANIFEST)

    with ThreadPoolExecutor(8, thread_name_prefix="iceberg-inspect") as pool:
        frames = list(pool.map(read, manifests))
    dtypes = {"status": pl.Int32, **file_dtypes(), **request.partitions.dtypes}
    dtypes |= {name: metric_dtypes()[name] for name in metrics}
    return pl.concat([pl.DataFrame(schema=dtypes), *(each for each in frames if each.height)], how="diagonal_relaxed")


def live(frame: pl.DataFrame) -> pl.DataFrame:
    """Manifest entries of live files, without those that record a removal."""
    return frame.filter(frame["status"] != int(ManifestEntryStatus.DELETED))


def _of(manifests: Sequence[ManifestFile], content: ManifestContent) -> list[ManifestFile]:
    return [each for each in manifests if each.content is content]


def _files(request: MetadataRequest, manifests: Sequence[ManifestFile]) -> MetadataTable:
    fields = _wanted(request, [*_file_fields(request.partition_type), _readable_field(request)])
    frame = _planned_files(request, manifests, _maps(fields))
    return MetadataTable(Schema(*fields), frame.select(*_columns(request, frame, fields)))


def _planned_files(request: MetadataRequest, manifests: Sequence[ManifestFile], maps: Sequence[str]) -> pl.DataFrame:
    """The live files of some manifests, with some maps of metrics; the cache of plans keeps them."""
    source = ManifestSource(request.storage, request.partitions, cache_of(request.storage))
    metrics: list[Metric] = [(name, None) for name in maps]

    def with_maps(_: int, found: ManifestFrame) -> pl.DataFrame:
        return found.frame.with_columns(**{name: found.metrics.loaded[name, None] for name in maps})

    # Frames of delete files have more columns, so that they are not put together with those of data files.
    alike = [list(run) for _, run in groupby(manifests, key=lambda each: each.content)]
    frames = [frame for run in alike for frame in source.map(run, with_maps, lambda _: metrics)]
    dtypes = {**file_dtypes(), **request.partitions.dtypes}
    dtypes |= {name: metric_dtypes()[name] for name in maps}
    found = pl.concat([pl.DataFrame(schema=dtypes), *(each for each in frames if each.height)], how="diagonal_relaxed")
    # Plans know of data files that they are.
    return found.with_columns(pl.col("content").fill_null(int(DataFileContent.DATA)))


def _entries(request: MetadataRequest, manifests: Sequence[ManifestFile]) -> MetadataTable:
    of_file = _file_fields(request.partition_type)
    fields = _wanted(
        request,
        [
            NestedField(0, "status", IntegerType(), True),
            NestedField(1, "snapshot_id", LongType()),
            NestedField(3, "sequence_number", LongType()),
            NestedField(4, "file_sequence_number", LongType()),
            NestedField(2, "data_file", StructType(*of_file), True),
            _readable_field(request),
        ],
    )
    has_files = any(each.name == "data_file" for each in fields)
    frame = entry_frame(request, manifests, _maps([*fields, *(of_file if has_files else ())]))
    if has_files:
        frame = frame.with_columns(pl.struct(*_columns(request, frame, of_file)).alias("data_file"))
    return MetadataTable(Schema(*fields), frame.select(*_columns(request, frame, fields)))


def _wanted(request: MetadataRequest, fields: Sequence[NestedField]) -> list[NestedField]:
    return [each for each in fields if request.columns is None or each.name in request.columns]


def _maps(fields: Sequence[NestedField]) -> list[str]:
    """Names of the metric columns (such as `value_counts`) that the asked-for fields are computed from."""
    needed = {each.name for each in fields}
    for each in fields:
        if each.name == _METRICS:
            columns = cast(StructType, each.field_type).fields
            needed |= {f"{part.name}s" for column in columns for part in cast(StructType, column.field_type).fields}
    return [name for name in metric_dtypes() if name in needed]


def _file_fields(partition_type: StructType) -> list[NestedField]:
    """The fields of a data file as Java's tables have them; the partition is left out if the table has none."""
    fields = [
        NestedField(
            134, "content", IntegerType(), doc="Contents of the file: 0=data, 1=position deletes, 2=equality deletes"
        ),
        NestedField(100, "file_path", StringType(), True, "Location URI with FS scheme"),
        NestedField(101, "file_format", StringType(), True, "File format name: avro, orc, or parquet"),
        NestedField(141, "spec_id", IntegerType(), doc="Partition spec ID"),
        NestedField(102, "partition", partition_type, True, "Partition data tuple, schema based on the partition spec"),
        NestedField(103, "record_count", LongType(), True, "Number of records in the file"),
        NestedField(104, "file_size_in_bytes", LongType(), True, "Total file size in bytes"),
        _by_column(108, "column_sizes", 117, LongType(), "total size on disk"),
        _by_column(109, "value_counts", 119, LongType(), "total count, including null and NaN"),
        _by_column(110, "null_value_counts", 121, LongType(), "null value count"),
        _by_column(137, "nan_value_counts", 138, LongType(), "number of NaN values in the column"),
        _by_column(125, "lower_bounds", 126, BinaryType(), "lower bound"),
        _by_column(128, "upper_bounds", 129, BinaryType(), "upper bound"),
        NestedField(131, "key_metadata", BinaryType(), doc="Encryption key metadata blob"),
        NestedField(132, "split_offsets", ListType(133, LongType(), True), doc="Splittable offsets"),
        NestedField(135, "equality_ids", ListType(136, IntegerType(), True), doc="Equality comparison field IDs"),
        NestedField(140, "sort_order_id", IntegerType(), doc="Sort order ID"),
        NestedField(142, "first_row_id", LongType(), doc="The first row ID assigned to the first row in the data file"),
        NestedField(
            143,
            "referenced_data_file",
            StringType(),
            doc="Fully qualified location (URI with FS scheme) of a data file that all deletes reference",
        ),
        NestedField(144, "content_offset", LongType(), doc="The offset in the file where the content starts"),
        NestedField(
            145, "content_size_in_bytes", LongType(), doc="The length of referenced content stored in the file"
        ),
    ]
    return [each for each in fields if each.name != "partition" or partition_type.fields]


def _by_column(field_id: int, name: str, key_id: int, value: IcebergType, doc: str) -> NestedField:
    """A map from columns' ids; the value's id follows the key's."""
    kind = MapType(key_id, IntegerType(), key_id + 1, value, True)
    return NestedField(field_id, name, kind, doc=f"Map of column id to {doc}")


def _columns(request: MetadataRequest, frame: pl.DataFrame, fields: Sequence[NestedField]) -> list[Any]:
    """The columns of some fields, made of a frame of entries."""
    partition = request.partition_type
    dtypes = [polars_dtype(each.field_type) for each in partition.fields]
    made: dict[str, Callable[[], Any]] = {
        "partition": lambda: partition_struct(frame, partition, dtypes),
        _METRICS: lambda: _readable_values(request, frame),
    }
    return [made[each.name]() if each.name in made else each.name for each in fields]


def _measured(request: MetadataRequest) -> list[tuple[str, NestedField]]:
    """Every primitive column by its name, in order of the names."""
    schema = request.metadata.schema()
    found = [
        (name, field)
        for name, field_id in schema.index_by_name.items()
        if isinstance((field := schema.index_by_id[field_id]).field_type, PrimitiveType)
        and schema.find_column_name(field_id) == name
    ]
    return sorted(found, key=lambda each: each[0])


def _parts(request: MetadataRequest, name: str) -> list[str]:
    """The metrics of a column that are needed."""
    asked = _READABLE if request.metrics is None else request.metrics.get(name, ())
    return [part for part in _READABLE if part in asked]


def _readable_field(request: MetadataRequest) -> NestedField:
    """The metrics of every primitive column under its name."""
    used = [each.field_id for each in request.partition_type.fields]
    next_id = count(max(request.metadata.schema().highest_field_id, 1000, *used) + 1).__next__
    fields: list[NestedField] = []
    for name, field in _measured(request):
        kinds: list[IcebergType] = [LongType()] * 4 + [_readable_type(field.field_type)] * 2
        inner = [
            NestedField(next_id(), part, kind, doc=doc)
            for (part, doc), kind in zip(_READABLE.items(), kinds, strict=True)
        ]
        field_id, parts = next_id(), _parts(request, name)
        if parts or request.metrics is None:
            kept = StructType(*(each for each in inner if each.name in parts))
            fields.append(NestedField(field_id, name, kept, doc=f"Metrics for column {name}"))
    return NestedField(next_id(), _METRICS, StructType(*fields), doc="Column metrics in readable form")


def _readable_type(kind: IcebergType) -> IcebergType:
    """The type of readable bounds: corners of boxes around shapes are text."""
    return StringType() if isinstance(kind, (GeometryType, GeographyType)) else kind


def _readable_dtype(name: str, field: NestedField, parts: Sequence[str]) -> Any:
    bound = polars_dtype(_readable_type(field.field_type))
    dtypes = {part: bound if part.endswith("_bound") else pl.Int64 for part in parts}
    return pl.Field(name, pl.Struct(dtypes))


def _readable_bound(stored: pl.Series, kind: IcebergType) -> pl.Series:
    if not isinstance(kind, (GeometryType, GeographyType)):
        return stored_bounds(stored, kind)
    return pl.Series([None if each is None else point_text(each) for each in stored], dtype=pl.String)


def _readable_values(request: MetadataRequest, frame: pl.DataFrame) -> pl.Series:
    """The column `readable_metrics` of the files of a frame, with bounds as values of their types."""
    measured = [(name, field, _parts(request, name)) for name, field in _measured(request)]
    if not frame.height:  # as whoever asks for the columns alone need not wait for them
        return pl.Series(_METRICS, dtype=pl.Struct([_readable_dtype(*each) for each in measured if each[2]]))
    found: dict[tuple[str, str], pl.Series] = {}
    for part in _READABLE:
        columns = [(name, field) for name, field, parts in measured if part in parts]
        values = map_values(frame[f"{part}s"], [field.field_id for _, field in columns]) if columns else []
        for (name, field), value in zip(columns, values, strict=True):
            is_bound = part.endswith("_bound")
            found[name, part] = (_readable_bound(value, field.field_type) if is_bound else value).alias(part)
    structs = [
        pl.DataFrame([found[name, part] for part in parts]).to_struct(name) for name, _, parts in measured if parts
    ]
    return pl.DataFrame(structs).to_struct(_METRICS)


TABLES: dict[str, Callable[[MetadataRequest], MetadataTable]] = {
    each.__name__: each
    for each in (files, data_files, delete_files, entries, all_files, all_data_files, all_delete_files, all_entries)
}
