"""The metadata table `position_deletes`: each position that a position delete file or a deletion vector deletes.

It is here because, unlike the other metadata tables, it is read from delete files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import count
from typing import Any

import pyarrow as pa

from hms_iceberg.arrow.columns.arrow_schema import constant, to_arrow
from hms_iceberg.arrow.columns.nested import conform
from hms_iceberg.arrow.columns.projection import FileProjection
from hms_iceberg.arrow.deletes.puffin import read_deletion_vector
from hms_iceberg.arrow.formats.content_files import check_row_count, open_reader
from hms_iceberg.arrow.parallel import default_workers, read_in_order
from hms_iceberg.arrow.storage.filesystems import parse_location
from hms_iceberg.expressions.tree import AlwaysTrue
from hms_iceberg.scan.metadata_tables import MetadataRequest
from hms_iceberg.scan.planner import Planner, manifest_source
from hms_iceberg.scan.tasks import content_files
from hms_iceberg.spec.data_types import LongType, NestedField, StructType
from hms_iceberg.spec.manifests.manifest_values import DataFile, DataFileContent, ManifestContent
from hms_iceberg.spec.metadata_columns import (
    DELETE_FILE_PATH,
    DELETE_FILE_POSITION,
    DELETE_FILE_ROW_ID,
    FILE,
    PARTITION_ID,
    SPEC_ID,
)
from hms_iceberg.spec.schema import Schema

_BATCH_ROWS = 131_072
_BUFFER_BYTES = 64 * 1024 * 1024


def position_deletes_schema(request: MetadataRequest) -> Schema:
    """The columns of the table, as Apache Iceberg (Java) has them; without partition fields there is no partition."""
    table = request.metadata.schema()
    used = {field_id for schema in request.metadata.schemas for field_id in schema.index_by_id}
    free = (number for number in count(1) if number not in used)
    partition = StructType(*(replace(each, field_id=next(free)) for each in request.partition_type.fields))
    fields = [
        DELETE_FILE_PATH,
        DELETE_FILE_POSITION,
        NestedField(DELETE_FILE_ROW_ID, "row", table.as_struct(), doc="Deleted row values"),
        NestedField(PARTITION_ID, "partition", partition, True, "Partition that position delete row belongs to"),
        replace(SPEC_ID, name="spec_id", required=True),
        replace(FILE, name="delete_file_path"),
        NestedField(2147483641, "content_offset", LongType(), doc="The offset in the DV where the content starts"),
        NestedField(2147483640, "content_size_in_bytes", LongType(), doc="The length in bytes of the DV blob"),
    ]
    if request.metadata.format_version < 3:
        fields = fields[:-2]
    return Schema(*(each for each in fields if each.name != "partition" or partition.fields))


def position_deletes(request: MetadataRequest) -> pa.RecordBatchReader:
    """The rows of the table for one snapshot, read as they are asked for."""
    schema = position_deletes_schema(request)
    arrow_schema = to_arrow(schema, field_ids=False, extensions=False)
    files = _delete_files(request)
    local = parse_location(request.metadata.location).is_local
    batches = read_in_order(
        files,
        lambda file: _rows(request, file, schema, arrow_schema),
        default_workers(len(files), not local),
        _BUFFER_BYTES,
    )
    return pa.RecordBatchReader.from_batches(arrow_schema, batches)


def _delete_files(request: MetadataRequest) -> list[DataFile]:
    metadata = request.metadata
    source = manifest_source(metadata, request.storage)
    planner = Planner(metadata, metadata.schema(), AlwaysTrue(), source)
    manifests = [each for each in request.manifests() if each.content is ManifestContent.DELETES]
    frame = planner.delete_files(manifests).frame
    frame = frame.filter(frame["content"] == int(DataFileContent.POSITION_DELETES))
    return content_files(frame, source.partitions)


def _rows(request: MetadataRequest, file: DataFile, schema: Schema, target: pa.Schema) -> Iterator[pa.RecordBatch]:
    spec = request.metadata.spec_by_id(file.spec_id)
    by_id = {field.field_id: value for field, value in zip(spec.fields, file.partition, strict=True)}
    values = [by_id.get(each.field_id) for each in request.partition_type.fields]
    constants: dict[str, Any] = {
        "spec_id": file.spec_id,
        "delete_file_path": file.file_path,
        "content_offset": file.content_offset,
        "content_size_in_bytes": file.content_size_in_bytes,
    }
    for found in _vector(request, file) if file.file_format.upper() == "PUFFIN" else _file(request, file, schema):
        rows = len(found["pos"])
        columns = []
        for field, kind in zip(schema.fields, target, strict=True):
            if field.name in found:
                column = found[field.name]
            elif field.field_id == PARTITION_ID:
                column = _partition(field, values, rows)
            else:
                column = constant(constants.get(field.name), field.field_type, rows)
            columns.append(conform(column, kind.type))
        yield pa.RecordBatch.from_arrays(columns, schema=target)


def _vector(request: MetadataRequest, file: DataFile) -> Iterator[Mapping[str, pa.Array]]:
    positions = read_deletion_vector(request.storage, file)
    for start in range(0, len(positions), _BATCH_ROWS):
        part = pa.array(positions[start : start + _BATCH_ROWS])
        yield {"file_path": pa.repeat(pa.scalar(file.referenced_data_file, pa.string()), len(part)), "pos": part}


def _file(request: MetadataRequest, file: DataFile, schema: Schema) -> Iterator[Mapping[str, pa.Array]]:
    wanted = [DELETE_FILE_PATH, DELETE_FILE_POSITION, schema.find_field("row")]
    reader = open_reader(request.storage, file.file_path, file.file_format, None, file.key_metadata)
    try:
        check_row_count(reader, file)
        projection = FileProjection(reader.schema, wanted, {}, file.file_path, reader.reads_nested_fields)
        for rows in reader.ranges():
            for _, batch in reader.read(rows, projection.leaves, _BATCH_ROWS, False):
                yield dict(zip(("file_path", "pos", "row"), projection.project(batch), strict=True))
    finally:
        reader.close()


def _partition(field: NestedField, values: list[Any], rows: int) -> pa.Array:
    assert isinstance(field.field_type, StructType)
    children = [
        constant(value, each.field_type, rows) for value, each in zip(values, field.field_type.fields, strict=True)
    ]
    return pa.StructArray.from_arrays(children, names=[each.name for each in field.field_type.fields])
