"""Columns that every table has beside its own: where a row is stored, and its lineage.

Source: Iceberg specification, "Reserved Field IDs", "Row Lineage".
"""

from __future__ import annotations

from collections.abc import Iterable

from hms_iceberg.spec.data_types import (
    BooleanType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
)
from hms_iceberg.spec.manifests.manifest_values import DELETE_FILE_PATH_ID
from hms_iceberg.spec.partitions.partition_specs import PartitionSpec, unified_partition_type
from hms_iceberg.spec.schema import Schema

FILE = NestedField(2147483646, "_file", StringType(), True, "Path of the file in which a row is stored")
POSITION = NestedField(2147483645, "_pos", LongType(), True, "Ordinal position of a row in the source data file")
DELETED = NestedField(2147483644, "_deleted", BooleanType(), True, "Whether the row has been deleted")
SPEC_ID = NestedField(2147483643, "_spec_id", IntegerType(), False, "Spec ID used to track the file containing a row")
PARTITION_ID = 2147483642
PARTITION_NAME = "_partition"
ROW_ID = NestedField(2147483540, "_row_id", LongType(), False, "Implicit row ID that is automatically assigned")
LAST_UPDATED_SEQUENCE_NUMBER = NestedField(
    2147483539,
    "_last_updated_sequence_number",
    LongType(),
    False,
    "Sequence number when the row was last updated",
)
LINEAGE = {field.field_id: field for field in (ROW_ID, LAST_UPDATED_SEQUENCE_NUMBER)}
"""By field id, the columns that files of rows that were written anew store (format version 3)."""
DELETE_FILE_PATH = NestedField(
    DELETE_FILE_PATH_ID, "file_path", StringType(), True, "Path of a file in which a deleted row is stored"
)
DELETE_FILE_POSITION = NestedField(
    2147483545, "pos", LongType(), True, "Ordinal position of a deleted row in the data file"
)
DELETE_FILE_ROW_ID = 2147483544
CHANGE_TYPE = NestedField(2147483543, "_change_type", StringType(), True, "Record type in changelog")
CHANGE_ORDINAL = NestedField(2147483542, "_change_ordinal", IntegerType(), False, "Change ordinal in changelog")
COMMIT_SNAPSHOT_ID = NestedField(2147483541, "_commit_snapshot_id", LongType(), False, "Commit snapshot ID")
CHANGELOG_COLUMNS = (CHANGE_TYPE, CHANGE_ORDINAL, COMMIT_SNAPSHOT_ID)

_PLAIN = {field.name: field for field in (FILE, POSITION, DELETED, SPEC_ID, ROW_ID, LAST_UPDATED_SEQUENCE_NUMBER)}
METADATA_COLUMNS = (*_PLAIN, PARTITION_NAME)
_IDS = frozenset({PARTITION_ID, *(field.field_id for field in _PLAIN.values())})


def metadata_column(name: str, specs: Iterable[PartitionSpec], schema: Schema) -> NestedField | None:
    """The metadata column of a name such as `_file`; None if there is none."""
    if name == PARTITION_NAME:
        return partition_column(specs, schema)
    return _PLAIN.get(name)


def is_metadata_column(field_id: int) -> bool:
    return field_id in _IDS


def partition_column(specs: Iterable[PartitionSpec], schema: Schema) -> NestedField:
    """The column `_partition`: a struct of the partition fields of all specs; those a row's spec lacks are null."""
    kind = unified_partition_type(specs, schema)
    return NestedField(PARTITION_ID, PARTITION_NAME, kind, False, "Partition to which a row belongs to")
