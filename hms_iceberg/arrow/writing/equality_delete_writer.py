"""Writing equality delete files: keys of rows to delete, wherever they are.

Source: Iceberg specification, "Equality Delete Files".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from hms_iceberg.arrow.columns.casting import SchemaFit
from hms_iceberg.arrow.formats.content_files import delete_properties
from hms_iceberg.arrow.writing.given_rows import ArrowInput, batches_of
from hms_iceberg.arrow.writing.write import FileRouter, WriteRules
from hms_iceberg.errors import InvalidInputError, SchemaMismatchError
from hms_iceberg.spec.data_types import DoubleType, FloatType
from hms_iceberg.spec.manifests.manifest_values import DataFile, DataFileContent
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.partitions.former_partitions import former_partitions
from hms_iceberg.spec.partitions.partition_specs import PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.table_properties import DELETE_TARGET_FILE_BYTES, TARGET_FILE_BYTES
from hms_iceberg.storage import Storage


def write_equality_deletes(
    metadata: TableMetadata,
    storage: Storage,
    rows: ArrowInput,
    equality_ids: Sequence[int],
    *,
    table: str | None = None,
    spec: PartitionSpec | None = None,
    on_create: Callable[[str], None] | None = None,
) -> list[DataFile]:
    """Writes the keys of rows to delete: of the rows' partition where the spec has any, whose source columns they then
    hold too, else of the whole table. `on_create` gets each location before its file is made."""
    spec = spec or metadata.spec()
    schema = metadata.schema()
    _check_key(schema, equality_ids, table)
    sources = [source for field in spec.fields for source in (field.source_ids or (field.source_id,))]
    sources = [source for source in sources if schema.has_field(source)]
    needed = schema.select_ids({*equality_ids, *sources})
    batches, incoming = batches_of(rows)
    absent = [field.name for field in needed.fields if field.name not in incoming.names]
    if absent:
        raise SchemaMismatchError(
            f"Cannot write equality deletes{f' of table {table}' if table else ''}: the rows lack "
            f"{', '.join(map(repr, absent))}, which the key ({_names(schema, equality_ids)}) or the partition "
            f"({_names(schema, sources) or 'none'}) needs."
        )
    names = [field.name for field in needed.fields]
    chosen = pa.schema([incoming.field(name) for name in names])
    fit = SchemaFit(chosen, needed, table)
    fitted: Iterable[pa.RecordBatch] = (fit.fit(batch.select(names)) for batch in batches)
    if isinstance(rows, (pa.Table, pa.RecordBatch)):
        fitted = list(fitted)  # every value is checked before anything is written
    properties = delete_properties(metadata.properties)
    properties[TARGET_FILE_BYTES.name] = str(DELETE_TARGET_FILE_BYTES.of(properties))
    rules = WriteRules(
        spec,
        properties,
        file_schema=schema.select_ids(equality_ids),
        fields={"content": DataFileContent.EQUALITY_DELETES, "equality_ids": tuple(sorted(equality_ids))},
    )
    files = FileRouter(metadata, storage, needed, rules, on_create).write(fitted)
    return [each for file in files for each in (file, *_in_former_partitions(file, metadata, storage, on_create))]


def _in_former_partitions(
    file: DataFile, metadata: TableMetadata, storage: Storage, on_create: Callable[[str], None] | None
) -> Iterator[DataFile]:
    """Copies of a delete file for the other partitions in which its keys may be stored: it only applies to its own."""
    others = former_partitions(metadata.spec_by_id(file.spec_id), metadata.schema(), file.partition)
    for number, partition in enumerate(others, start=1):
        stem, dot, ending = file.file_path.rpartition(".")
        location = f"{stem}-former-{number}{dot}{ending}"
        if on_create is not None:
            on_create(location)
        storage.create(location, storage.read(file.file_path))
        yield replace(file, file_path=location, partition=partition)


def _check_key(schema: Schema, equality_ids: Sequence[int], table: str | None) -> None:
    of_table = f" of table {table}" if table else ""
    if not equality_ids:
        raise InvalidInputError(f"Cannot write equality deletes{of_table}: no column is named as their key.")
    for field_id in equality_ids:
        field = schema.find_field(field_id)
        if not field.field_type.is_primitive or isinstance(field.field_type, (FloatType, DoubleType)):
            raise InvalidInputError(
                f"Cannot write equality deletes{of_table} by column {schema.find_column_name(field_id)!r} of type "
                f"{field.field_type}: keys are of primitive types other than float and double."
            )


def _names(schema: Schema, ids: Sequence[int]) -> str:
    return ", ".join(dict.fromkeys(repr(schema.find_column_name(field_id)) for field_id in ids))
