"""Data files that exist already, described as manifests do, so that a table can take them in where they are.

Source: Iceberg specification, "Column Projection", "Partition Transforms"; Hive's partition folders (`name=value`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hms_iceberg.arrow.columns.arrow_schema import field_id_of
from hms_iceberg.arrow.columns.arrow_types import byte_width, is_bytes, stands_for
from hms_iceberg.arrow.columns.geoarrow import check_shape, shape_of_footer
from hms_iceberg.arrow.columns.nested import leaf_arrays
from hms_iceberg.arrow.columns.projection import FileLeaf, FileProjection, file_leaves
from hms_iceberg.arrow.formats.content_files import ContentReader, open_reader
from hms_iceberg.arrow.metrics.footer_metrics import (
    FULL,
    MetricsMode,
    leaves_of_footer,
    metrics_from_footer,
    read_footer,
    split_offsets,
)
from hms_iceberg.errors import (
    CorruptDataFileError,
    InvalidInputError,
    SchemaMismatchError,
    TypeMismatchError,
)
from hms_iceberg.spec.data_types import GeographyType, GeometryType, StructType
from hms_iceberg.spec.field_mapping import NameMapping
from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.partitions.partition_specs import PartitionField, PartitionSpec
from hms_iceberg.spec.sort_orders import UNSORTED
from hms_iceberg.spec.transforms.partition_transforms import HourTransform, wrapped
from hms_iceberg.spec.values.single_values import from_bytes, from_python
from hms_iceberg.storage import Storage

_BATCH_ROWS = 65_536
_NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"
_MAGIC = {b"PAR1": "PARQUET", b"ORC": "ORC", b"Obj\x01": "AVRO"}


@dataclass(frozen=True)
class FileImport:
    """Describes files of other writers for one table; `mapping` names its columns in files without field ids.
    `on_unknown` is told of a file's columns that the table never had, by their dotted names."""

    metadata: TableMetadata
    storage: Storage
    mapping: NameMapping
    modes: Mapping[int, MetricsMode]
    on_unknown: Callable[[str, tuple[str, ...]], None] | None = None

    def describe(self, location: str, partition: Mapping[str, str] | None = None) -> DataFile:
        """Describes a file as manifests do, with its metrics and its partition. The partition is given as text, as a
        Hive metastore has it, or read from its folders `name=value`, or derived from the file's bounds."""
        file_format = self._format(location)
        reader = open_reader(self.storage, location, file_format, self.mapping)
        try:
            if file_format == "PARQUET":
                file = self._parquet(location)
            else:
                rows = sum(each.rows for each in reader.ranges())
                size = self.storage.length(location)
                file = DataFile(file_path=location, file_format=file_format, record_count=rows, file_size_in_bytes=size)
            named = _folders(location) if partition is None else {name.lower(): partition[name] for name in partition}
            own = self._spec_of(tuple(named)) if partition else self.metadata.spec()
            spec, values = self._partition_of(file, own, named)
            file = replace(file, spec_id=spec.spec_id, partition=values, sort_order_id=UNSORTED.order_id)
            self._check_columns(reader, file, spec)
            if partition:
                self._refuse_lost_values(reader, file, spec, named)
        finally:
            reader.close()
        return self._with_kept_metrics(file)

    def _format(self, location: str) -> str:
        with self.storage.open_input(location) as opened:
            head = bytes(opened.read(4))
        for magic, name in _MAGIC.items():
            if head.startswith(magic):
                return name
        raise CorruptDataFileError(
            f"Cannot add {location}: expected a Parquet, ORC or Avro file, found one that begins with {head!r}."
        )

    def _parquet(self, location: str) -> DataFile:
        """The file with metrics of the columns that are kept, and whole ones of those that partitions come from."""
        footer = read_footer(self.storage, location)
        sources = {field.source_id: FULL for field in self.metadata.spec().fields}
        leaves = leaves_of_footer(footer.metadata, self.mapping, location)
        self._check_shapes(footer.metadata, leaves, location)
        metrics = metrics_from_footer(footer, leaves, self.metadata.schema(), {**self.modes, **sources}, {})
        return DataFile(
            file_path=location,
            file_format="PARQUET",
            record_count=footer.rows,
            file_size_in_bytes=self.storage.length(location),
            split_offsets=split_offsets(footer.metadata),
            **metrics.as_fields(),
        )

    def _with_kept_metrics(self, file: DataFile) -> DataFile:
        if file.file_format != "PARQUET" or not self.metadata.spec().fields:
            return file
        footer = read_footer(self.storage, file.file_path)
        leaves = leaves_of_footer(footer.metadata, self.mapping, file.file_path)
        metrics = metrics_from_footer(footer, leaves, self.metadata.schema(), self.modes, {})
        return replace(file, **metrics.as_fields())

    # --------------------------------------------------------------------------------------------- columns

    def _check_columns(self, reader: ContentReader, file: DataFile, spec: PartitionSpec) -> None:
        schema = self.metadata.schema()
        every = file_leaves(reader.schema)
        leaves = [leaf for leaf in every if leaf.field_id in schema.index_by_id]
        if not leaves and not any(field_id_of(field) in schema.index_by_id for field in reader.schema):
            names = ", ".join(reader.schema.names[:20])
            raise SchemaMismatchError(
                f"Cannot add {file.file_path}: it has none of the table's columns. It has {names}; the table has "
                f"{', '.join(schema.column_names[:20])}."
            )
        unknown = tuple(dict.fromkeys(filter(None, map(self._unknown, every))))
        if unknown and self.on_unknown:
            self.on_unknown(file.file_path, unknown)
        first: dict[int | None, FileLeaf] = {}
        for leaf in leaves:
            self._check_name(leaf, file.file_path)
            other = first.setdefault(leaf.field_id, leaf)
            if other is not leaf:
                raise SchemaMismatchError(
                    f"Cannot add {file.file_path}: its columns {'.'.join(other.path)!r} and {'.'.join(leaf.path)!r} "
                    f"are both the table's {schema.find_column_name(leaf.field_id or 0)!r}. Append the rows that are "
                    "meant."
                )
        constants = {
            field.source_id: value
            for field, value in zip(spec.fields, file.partition, strict=True)
            if field.transform.is_identity
        }
        try:
            FileProjection(reader.schema, schema.fields, constants, file.file_path, reader.reads_nested_fields)
        except CorruptDataFileError as error:
            raise SchemaMismatchError(f"Cannot add {file.file_path}: {error}") from error
        except TypeMismatchError as error:
            raise TypeMismatchError(f"Cannot add {file.file_path}: {error}") from error
        for leaf in leaves:
            self._check_type(leaf, file, reader)
        for problem in reader.problems():
            raise InvalidInputError(f"Cannot add {file.file_path}: it {problem}. Append its rows, which converts them.")
        self._check_nulls(reader.schema, file)

    def _unknown(self, leaf: FileLeaf) -> str | None:
        """The dotted name of a column that no schema of the table has and its name mapping does not name; None if one
        does."""
        known = leaf.path[: len(leaf.path) - len(leaf.below)]  # the field around the leaf, or itself, that has an id
        fields = (schema.index_by_id.get(leaf.owner_id or 0) for schema in self.metadata.schemas)
        owner = next((field for field in fields if field is not None), None)
        if owner is None and leaf.owner_id is not None:
            return None if self.mapping.find_by_id(leaf.owner_id) else ".".join(known)
        if not leaf.below or (owner is not None and not isinstance(owner.field_type, StructType)):
            return None
        name = leaf.path[: len(known) + 1]
        return None if self.mapping.find(*name) else ".".join(name)

    def _check_type(self, leaf: FileLeaf, file: DataFile, reader: ContentReader) -> None:
        """Refuses columns whose values this library would convert, while other readers misread or refuse them."""
        wanted = self.metadata.schema().find_type(leaf.field_id or 0)
        marks = reader.is_int96(leaf.index), reader.is_uuid(leaf.path)
        if wanted.is_primitive and not stands_for(leaf.type, wanted, file.file_format, *marks):
            raise TypeMismatchError(
                f"Cannot add {file.file_path}: its column {'.'.join(leaf.path)!r} holds {leaf.type}, and is a {wanted} "
                "in the table, as which other readers of Iceberg do not read it, or read other values. Append its "
                "rows, which converts them."
            )

        width = byte_width(wanted)
        if width is not None and is_bytes(leaf.type) and any(each != width for each in _lengths(reader, leaf)):
            raise TypeMismatchError(
                f"Cannot add {file.file_path}: its column {'.'.join(leaf.path)!r} holds bytes that are not {width} "
                f"long, and is a {wanted} in the table, as which other readers of Iceberg fail, or read other values."
            )

    def _check_shapes(self, footer: pq.FileMetaData, leaves: list[FileLeaf], location: str) -> None:
        """Refuses bytes and shapes of another coordinate system, or with other edges, for columns of shapes."""
        known = self.metadata.schema().index_by_id
        for leaf in leaves:
            wanted = known[leaf.field_id].field_type if leaf.field_id in known else None
            if not isinstance(wanted, (GeometryType, GeographyType)):
                continue
            shape = shape_of_footer(footer.schema.column(leaf.index))
            try:
                if shape is None:
                    raise ValueError(
                        f"its footer does not say that they are of type {type(wanted).__name__[:-4].upper()}"
                    )
                check_shape(shape, wanted)
            except ValueError as error:
                raise TypeMismatchError(
                    f"Cannot add {location}: its column {'.'.join(leaf.path)!r} is {wanted} in the table, but {error}. "
                    "Append its rows, with their system named rightly."
                ) from error

    def _check_name(self, leaf: FileLeaf, location: str) -> None:
        """Refuses files whose own field ids mean other columns."""
        assert leaf.field_id is not None
        if leaf.repeated:
            return
        mapped = self.mapping.find_by_id(leaf.field_id)
        names = set(mapped.names) if mapped is not None else set()
        for schema in self.metadata.schemas:
            if schema.has_field(leaf.field_id):
                names.add(schema.find_field(leaf.field_id).name)
        if leaf.path[-1] not in names:
            raise SchemaMismatchError(
                f"Cannot add {location}: its column {'.'.join(leaf.path)!r} has field id {leaf.field_id}, which is the "
                f"table's column {self.metadata.schema().find_column_name(leaf.field_id)!r}. The file was written for "
                "another table; rewrite it, or append its rows."
            )

    def _check_nulls(self, arrow: pa.Schema, file: DataFile) -> None:
        present = {field_id_of(field) for field in arrow}
        for field in self.metadata.schema().fields:
            nulls = (file.null_value_counts or {}).get(field.field_id, 0)
            if field.required and field.field_id in present and nulls:
                raise InvalidInputError(
                    f"Cannot add {file.file_path}: column {field.name!r} is required, and the file has {nulls:,} nulls "
                    "in it."
                )

    # ------------------------------------------------------------------------------------------ partitions

    def _spec_of(self, names: tuple[str, ...]) -> PartitionSpec:
        """The spec with exactly these partitions, the table's own or one that it had; else its own."""
        own = self.metadata.spec()
        for spec in (own, *self.metadata.partition_specs):
            fields = tuple(field.name.lower() for field in spec.fields if field.transform.is_identity)
            if fields == names and len(spec.fields) == len(names):
                return spec
        return own

    def _partition_of(
        self, file: DataFile, spec: PartitionSpec, named: Mapping[str, str]
    ) -> tuple[PartitionSpec, tuple[Any, ...]]:
        """The file's partition; a file of several is left whole if the table had no partitions once."""
        try:
            return spec, tuple(self._partition_value(field, file, named) for field in spec.fields)
        except InvalidInputError:
            whole = next((each for each in self.metadata.partition_specs if not each.fields), None)
            if named or whole is None:
                raise
            return whole, ()

    def _refuse_lost_values(
        self, reader: ContentReader, file: DataFile, spec: PartitionSpec, named: Mapping[str, str]
    ) -> None:
        """Refuses a file whose partition tells a column's value that neither it nor the table's spec keeps."""
        kept = {field_id_of(field) for field in reader.schema}
        kept |= {field.source_id for field in spec.fields if field.transform.is_identity}
        for field in self.metadata.schema().fields:
            if field.name.lower() in named and field.field_id not in kept:
                raise InvalidInputError(
                    f"Cannot add {file.file_path}: column {field.name!r} would be null, as its value is in the name of "
                    "the partition only, and the table is not partitioned by it. Partition the table by "
                    f"{', '.join(named)}, or append the rows."
                )

    def _partition_value(self, field: PartitionField, file: DataFile, folders: Mapping[str, str]) -> Any:
        if field.transform.is_void:
            return None
        kind = self.metadata.schema().find_type(field.source_id)
        rows = (file.value_counts or {}).get(field.source_id)
        text = folders.get(field.name.lower())
        if text is not None and field.transform.is_identity and rows is None:
            try:
                return None if text == _NULL_FOLDER else from_python(kind, text)
            except TypeMismatchError as error:
                raise InvalidInputError(
                    f"Cannot add {file.file_path}: its folder says {field.name}={text}, which is no {kind}: {error}"
                ) from error
        nulls = (file.null_value_counts or {}).get(field.source_id)
        low = (file.lower_bounds or {}).get(field.source_id)
        high = (file.upper_bounds or {}).get(field.source_id)
        if rows is not None and rows == nulls:
            return None
        if nulls == 0 and low is not None and high is not None:
            transform = field.transform.bind(kind)
            first, last = from_bytes(kind, low), from_bytes(kind, high)
            value = transform(first)
            if (field.transform.preserves_order or first == last) and value == transform(last):
                # Of the first and the last timestamps no int holds the hour, and partitions have it folded.
                return wrapped(value, 32) if isinstance(field.transform, HourTransform) else value
            raise InvalidInputError(
                f"Cannot add {file.file_path}: partition field {field.name!r} ({field.transform}) has more than one "
                f"value in it, from {first!r} to {last!r}. Append its rows, which partitions them."
            )
        why = "it holds nulls and other values" if nulls else "the file has no bounds of it"
        raise InvalidInputError(
            f"Cannot add {file.file_path}: the value of partition field {field.name!r} ({field.transform}) cannot be "
            f"told, as no folder is named {field.name}=… and {why}. Append its rows, which partitions them."
        )


def _folders(location: str) -> dict[str, str]:
    """The folders of a location of the form `name=value`, by name in lower case."""
    parts = [part.partition("=") for part in location.split("/")[:-1] if "=" in part]
    return {unquote(name).lower(): unquote(value) for name, _, value in parts}


def _lengths(reader: ContentReader, leaf: FileLeaf) -> Iterator[int]:
    """The least and the greatest length of a leaf's values in each batch of a file."""
    for rows in reader.ranges():
        for _, batch in reader.read(rows, [leaf.index], _BATCH_ROWS, False):
            leaves = zip(file_leaves(batch.schema), chain.from_iterable(map(leaf_arrays, batch.columns)), strict=True)
            for found, array in leaves:
                if found.path == leaf.path:
                    least_and_most = pc.min_max(pc.binary_length(array)).as_py().values()
                    yield from (each for each in least_and_most if each is not None)
