"""Partition tuples written by Apache Iceberg (Java): the same values and the same directories as ours."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hms_iceberg.spec.data_types import (
    BinaryType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    StringType,
    TimestampType,
    TimestamptzType,
)
from hms_iceberg.spec.manifests.manifest_avro import decode_manifest
from hms_iceberg.spec.manifests.manifest_list_avro import decode_manifest_list
from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.spec.metadata.metadata_json import metadata_from_json
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.values.single_values import from_bytes

GOLDEN = Path("/tmp/hms_iceberg_golden/public")
FILES = sorted(GOLDEN.glob("*/metadata/*metadata.json"))
# Bounds of text and bytes may be truncated; those of this length or more are not taken for values.
TRUNCATED = 16


def read(location: str) -> bytes:
    return Path(location.removeprefix("file:")).read_bytes()


def files_of(metadata: TableMetadata) -> Iterator[DataFile]:
    """Every file of the current snapshot."""
    snapshot = metadata.current_snapshot()
    if snapshot is None or snapshot.manifest_list is None:
        return
    for manifest in decode_manifest_list(read(snapshot.manifest_list)):
        for entry in decode_manifest(read(manifest.manifest_path), manifest):
            yield entry.data_file


def is_stored_early(kind: IcebergType, value: Any) -> bool:
    """Java stores some timestamps before 1970 in the period before the right one: see expressions' projections."""
    return isinstance(kind, (TimestampType, TimestamptzType)) and value < 0 and value % 10**6 == 10**6 - 1


PARTITIONED = [path for path in FILES if b'"transform"' in path.read_bytes()]


@pytest.mark.parametrize("path", PARTITIONED, ids=lambda path: path.parts[-3])
def test_partition_directories_are_those_of_java(path):
    metadata = metadata_from_json(path.read_bytes(), str(path))
    schema = metadata.schema()
    compared = 0
    for file in files_of(metadata):
        spec = metadata.spec_by_id(file.spec_id)
        if "/data/" not in file.file_path or any(not schema.has_field(field.source_id) for field in spec.fields):
            continue
        directory, _, _ = file.file_path.split("/data/", 1)[1].rpartition("/")
        if "=" not in directory or not spec.fields:
            continue
        names = [part.partition("=")[0] for part in directory.split("/")]
        if names != [part.partition("=")[0] for part in spec.partition_to_path(file.partition, schema).split("/")]:
            continue  # written under an earlier name of a partition field, or imported
        assert spec.partition_to_path(file.partition, schema) == directory
        compared += 1
    if not compared:
        pytest.skip("no file lies in a directory of its partition")


@pytest.mark.parametrize("path", PARTITIONED, ids=lambda path: path.parts[-3])
def test_transforms_of_the_only_value_of_a_file_give_its_partition_value(path):
    """A column whose lower and upper bounds are equal holds one value: its transform is in the partition tuple."""
    metadata = metadata_from_json(path.read_bytes(), str(path))
    schema = metadata.schema()
    compared = 0
    for file in files_of(metadata):
        for field, stored in zip(metadata.spec_by_id(file.spec_id).fields, file.partition, strict=True):
            lower = (file.lower_bounds or {}).get(field.source_id)
            upper = (file.upper_bounds or {}).get(field.source_id)
            if file.content != 0 or lower is None or lower != upper or not schema.has_field(field.source_id):
                continue
            kind = schema.find_type(field.source_id)
            text = isinstance(kind, (StringType, BinaryType, FixedType))
            if isinstance(kind, (FloatType, DoubleType)) or (text and len(lower) >= TRUNCATED):
                continue
            value = from_bytes(kind, lower)
            if is_stored_early(kind, value):
                continue
            assert field.transform.bind(kind)(value) == stored, (str(field), str(kind), value)
            compared += 1
    if not compared:
        pytest.skip("no file holds a single value of a partition column")
