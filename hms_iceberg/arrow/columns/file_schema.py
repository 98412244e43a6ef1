"""Which column of a data file is which field of a table: by the file's own ids, or by the table's name mapping.

Source: Iceberg specification, "Column Projection", "Name Mapping Serialization".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from hms_iceberg.arrow.columns.arrow_schema import FIELD_ID_KEY, child_fields, field_id_of, has_field_ids, is_list_like
from hms_iceberg.spec.field_mapping import MappedField, NameMapping


@dataclass(frozen=True, slots=True)
class FileLeaf:
    """One column chunk of a file.

    Args:
        index: position among the file's leaves.
        field_id: the field it belongs to, None if it belongs to none.
        repeated: whether a list or map encloses it.
        type: the Arrow type of its values.
        path: names from the top.
    """

    index: int
    field_id: int | None
    repeated: bool
    type: pa.DataType
    path: tuple[str, ...]


def identified(schema: pa.Schema, mapping: NameMapping | None) -> pa.Schema:
    """The Arrow schema of a file with a field id on every field that has one.

    Args:
        schema: as the file's reader gives it.
        mapping: the table's name mapping; used only if the file has no ids of its own.

    Returns:
        The schema with ids in its metadata. A file with neither ids nor mapping gets the ids 1, 2, 3 … on its
        top-level columns, which is right for files written before ids were.
    """
    if has_field_ids(schema):
        return schema
    if mapping is not None:
        return pa.schema(_mapped(list(schema), mapping.fields))
    return pa.schema([_with_id(field, position) for position, field in enumerate(schema, start=1)])


def file_leaves(schema: pa.Schema) -> list[FileLeaf]:
    """The leaves of a file's schema in the order of its column chunks."""
    leaves: list[FileLeaf] = []
    for field in schema:
        for leaf, path, repeated in _leaves(field, (field.name,), False):
            leaves.append(FileLeaf(len(leaves), field_id_of(leaf), repeated, _values_of(leaf.type), path))
    return leaves


def _leaves(field: pa.Field, path: tuple[str, ...], repeated: bool) -> Iterator[tuple[pa.Field, tuple[str, ...], bool]]:
    children = child_fields(field.type)
    if not children:
        yield field, path, repeated
        return
    below = repeated or not pa.types.is_struct(_plain(field.type))
    for child in children:
        yield from _leaves(child, (*path, child.name), below)


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind


def _values_of(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _with_id(field: pa.Field, field_id: int | None) -> pa.Field:
    if field_id is None:
        return field.remove_metadata()
    return field.with_metadata({FIELD_ID_KEY: str(field_id).encode()})


def _mapped(fields: Sequence[pa.Field], mappings: Sequence[MappedField]) -> list[pa.Field]:
    by_name = {name: mapped for mapped in mappings for name in mapped.names}
    return [_mapped_field(field, by_name.get(field.name)) for field in fields]


def _mapped_field(field: pa.Field, mapped: MappedField | None) -> pa.Field:
    if mapped is None:
        return _without_ids(field)
    kind = field.type
    children = {name: child for child in mapped.fields for name in child.names}
    if pa.types.is_struct(kind):
        kind = pa.struct(_mapped(child_fields(kind), mapped.fields))
    elif is_list_like(kind):  # whatever the writer called it, a list's child is its element
        kind = pa.list_(_mapped_field(kind.value_field, children.get("element")))
    elif pa.types.is_map(kind):
        kind = pa.map_(
            _mapped_field(kind.key_field, children.get("key")), _mapped_field(kind.item_field, children.get("value"))
        )
    return _with_id(field.with_type(kind), mapped.field_id)


def _without_ids(field: pa.Field) -> pa.Field:
    return _with_id(field, None)
