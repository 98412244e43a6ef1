"""Name mappings: which columns of files without field ids are which fields of the table.

Source: Iceberg specification, "Column Projection", and Appendix C, "Name Mapping Serialization".
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from hms_iceberg.cached_properties import cached_property
from hms_iceberg.errors import InvalidInputError
from hms_iceberg.spec.data_types import IcebergType, NestedField, NestedType
from hms_iceberg.spec.json_model import JsonModel, set_json_form
from hms_iceberg.spec.schema import SCHEMA_NAME_MAPPING, Schema
from hms_iceberg.spec.table_properties import NAME_MAPPING

NAME_MAPPING_PROPERTY = NAME_MAPPING.name


@dataclass(frozen=True)
class MappedField:
    """The names under which files may hold a field.

    Args:
        field_id: the field of the table, or None for a column of files that the table does not have.
        names: the names; a dot in one is part of it.
        fields: what is nested in the field: children of a struct, `element` of a list, `key` and `value` of a map.
    """

    field_id: int | None
    names: tuple[str, ...]
    fields: tuple[MappedField, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(self.names))
        object.__setattr__(self, "fields", tuple(self.fields))

    def find(self, name: str) -> MappedField | None:
        """The nested field with this name, or None."""
        return next((field for field in self.fields if name in field.names), None)


@dataclass(frozen=True)
class NameMapping(JsonModel):
    """The names of all columns, as the table property `schema.name-mapping.default` holds them."""

    fields: tuple[MappedField, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "fields", tuple(self.fields))

    @cached_property
    def _by_path(self) -> dict[tuple[str, ...], MappedField]:
        return dict(_paths(self.fields, ()))

    @cached_property
    def _by_id(self) -> dict[int, MappedField]:
        return {field.field_id: field for field in self._by_path.values() if field.field_id is not None}

    def find(self, *path: str) -> MappedField | None:
        """The field at a path of names, such as find("points", "element", "x"), or None."""
        return self._by_path.get(path)

    def find_by_id(self, field_id: int) -> MappedField | None:
        """The field with this id, or None."""
        return self._by_id.get(field_id)

    def to_json(self) -> str:
        """The JSON text of the table property."""
        return json.dumps(name_mapping_to_list(self), ensure_ascii=False)


def _paths(fields: Iterable[MappedField], prefix: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], MappedField]]:
    for field in fields:
        for name in field.names:
            path = (*prefix, name)
            yield path, field
            yield from _paths(field.fields, path)


def create_name_mapping(schema: Schema) -> NameMapping:
    """The mapping in which every field has its present name.

    Args:
        schema: the table's schema.
    """
    return NameMapping(tuple(_mapped(field) for field in schema.fields))


SCHEMA_NAME_MAPPING.set(create_name_mapping)


def _mapped(field: NestedField) -> MappedField:
    return MappedField(field.field_id, (field.name,), _nested(field.field_type))


def _nested(kind: IcebergType) -> tuple[MappedField, ...]:
    return tuple(_mapped(child) for child in kind.children()) if isinstance(kind, NestedType) else ()


def update_name_mapping(mapping: NameMapping, old_schema: Schema, new_schema: Schema) -> NameMapping:
    """The mapping after a change of the schema: old names stay beside new ones, and dropped fields keep theirs, so that
    old files stay readable. A name that a field gets is taken away from the others of its struct."""
    before = old_schema.index_by_id
    changed = {
        field_id
        for field_id, field in new_schema.index_by_id.items()
        if field_id not in before or before[field_id].name != field.name
    }
    return NameMapping(_updated(mapping.fields, new_schema.fields, changed, set(before)))


def _updated(
    mapped: tuple[MappedField, ...], fields: Iterable[NestedField], changed: set[int], before: set[int]
) -> tuple[MappedField, ...]:
    by_id = {field.field_id: field for field in fields}
    taken = {field.name: field_id for field_id, field in by_id.items() if field_id in changed}
    updated: list[MappedField] = []
    for each in mapped:
        names = tuple(name for name in each.names if taken.get(name, each.field_id) == each.field_id)
        field = None if each.field_id is None else by_id.get(each.field_id)
        if field is None:
            updated.append(replace(each, names=names))
            continue
        if each.field_id in changed and field.name not in names:
            names = (*names, field.name)
        children = field.field_type.children() if isinstance(field.field_type, NestedType) else ()
        updated.append(MappedField(each.field_id, names, _updated(each.fields, children, changed, before)))
    present = {each.field_id for each in mapped}
    updated += [_mapped(field) for field_id, field in by_id.items() if field_id not in present | before]
    return tuple(updated)


# ------------------------------------------------------------------------------------------------- JSON


def _field_to_json(field: MappedField) -> dict[str, Any]:
    data: dict[str, Any] = {} if field.field_id is None else {"field-id": field.field_id}
    data["names"] = list(field.names)
    if field.fields:
        data["fields"] = [_field_to_json(child) for child in field.fields]
    return data


def name_mapping_to_list(mapping: NameMapping) -> list[dict[str, Any]]:
    return [_field_to_json(field) for field in mapping.fields]


def name_mapping_from_list(data: Any) -> NameMapping:
    return NameMapping(_fields_from_json(data))


def name_mapping_from_json(text: str) -> NameMapping:
    """The mapping that the JSON text of the table property stands for.

    Raises:
        InvalidInputError: it stands for none, or one name stands for two fields of the same struct.
    """
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(
            f"Cannot read the name mapping ({NAME_MAPPING_PROPERTY}): it is no JSON: {error}"
        ) from error
    return name_mapping_from_list(data)


def _fields_from_json(data: Any) -> tuple[MappedField, ...]:
    if not isinstance(data, list):
        raise _malformed(data, "expected a list of objects")
    fields = tuple(_field_from_json(each) for each in data)
    seen: set[str] = set()
    for name in (name for field in fields for name in field.names):
        if name in seen:
            raise _malformed(name, "the name stands for two fields")
        seen.add(name)
    return fields


def _field_from_json(data: Any) -> MappedField:
    if not isinstance(data, Mapping):
        raise _malformed(data, "expected an object")
    field_id, names = data.get("field-id"), data.get("names", [])
    if field_id is not None and (isinstance(field_id, bool) or not isinstance(field_id, int)):
        raise _malformed(data, "'field-id' must be a number")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise _malformed(data, "'names' must be a list of text")
    nested = data.get("fields")
    return MappedField(field_id, tuple(names), () if nested is None else _fields_from_json(nested))


def _malformed(data: object, why: str) -> InvalidInputError:
    return InvalidInputError(f"Cannot read the name mapping ({NAME_MAPPING_PROPERTY}): {why}, got {data!r:.200}")


set_json_form(NameMapping, name_mapping_to_list, name_mapping_from_list)
