"""Types and schemas as JSON-ready Python, both ways.

Source: Iceberg specification, Appendix C, "Schemas".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hms_iceberg.errors import IcebergError, InvalidSchemaError
from hms_iceberg.spec.data_types import (
    DecimalType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
    fold_type,
    parse_primitive,
)
from hms_iceberg.spec.json_model import is_int, set_json_form, shown
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.values import single_values


def type_to_json(kind: IcebergType) -> str | dict[str, Any]:
    return fold_type(
        kind,
        leaf=_leaf_to_json,
        struct=lambda struct, types: {"type": "struct", "fields": list(map(_field_to_json, struct.fields, types))},
        list=lambda each, element: {
            "type": "list",
            "element-id": each.element_id,
            "element": element,
            "element-required": each.element_required,
        },
        map=lambda each, key, value: {
            "type": "map",
            "key-id": each.key_id,
            "key": key,
            "value-id": each.value_id,
            "value": value,
            "value-required": each.value_required,
        },
    )


def _leaf_to_json(kind: IcebergType) -> str | dict[str, Any]:
    # A decimal as Java writes it; readers take it without the space too.
    return f"decimal({kind.precision}, {kind.scale})" if isinstance(kind, DecimalType) else str(kind)


def field_to_json(field: NestedField) -> dict[str, Any]:
    return _field_to_json(field, type_to_json(field.field_type))


def _field_to_json(field: NestedField, kind: str | dict[str, Any]) -> dict[str, Any]:
    data: dict[str, Any] = {"id": field.field_id, "name": field.name, "required": field.required, "type": kind}
    if field.doc is not None:
        data["doc"] = field.doc
    if field.initial_default is not None:
        data["initial-default"] = single_values.to_json(field.field_type, field.initial_default)
    if field.write_default is not None:
        data["write-default"] = single_values.to_json(field.field_type, field.write_default)
    return data


def schema_to_json(schema: Schema) -> dict[str, Any]:
    data: dict[str, Any] = {"type": "struct", "schema-id": schema.schema_id}
    if schema.identifier_field_ids:
        data["identifier-field-ids"] = list(schema.identifier_field_ids)
    struct = type_to_json(schema.as_struct())
    assert isinstance(struct, dict)
    data["fields"] = struct["fields"]
    return data


def type_from_json(data: Any) -> IcebergType:
    if isinstance(data, str):
        return parse_primitive(data)
    name = data.get("type") if isinstance(data, Mapping) else None
    if name == "struct":
        return StructType(*_fields_from_json(data))
    if name == "list":
        return ListType(
            _integer(data, "element-id"),
            type_from_json(_member(data, "element")),
            _boolean(data, "element-required"),
        )
    if name == "map":
        return MapType(
            _integer(data, "key-id"),
            type_from_json(_member(data, "key")),
            _integer(data, "value-id"),
            type_from_json(_member(data, "value")),
            _boolean(data, "value-required"),
        )
    raise InvalidSchemaError(
        f"Cannot read a type from {shown(data)}: expected text such as 'long', or an object with 'type' struct, list "
        "or map"
    )


def schema_from_json(data: Any) -> Schema:
    """The schema that parsed JSON stands for; the schema id is 0 if it is missing (v1)."""
    if not isinstance(data, Mapping) or data.get("type", "struct") != "struct":
        raise InvalidSchemaError(f"Cannot read a schema from {shown(data)}: expected an object with 'type' struct")
    identifiers = data.get("identifier-field-ids") or []
    if not isinstance(identifiers, list) or not all(is_int(each) for each in identifiers):
        raise InvalidSchemaError(
            f"Cannot read a schema: 'identifier-field-ids' is {shown(identifiers)}, expected a list of numbers"
        )
    schema_id = 0 if data.get("schema-id") is None else _integer(data, "schema-id")
    schema = Schema(*_fields_from_json(data), schema_id=schema_id, identifier_field_ids=identifiers)
    schema.require_own_ids()
    return schema


def _fields_from_json(data: Mapping[str, Any]) -> list[NestedField]:
    fields = _member(data, "fields")
    if not isinstance(fields, list):
        raise InvalidSchemaError(f"Cannot read a struct: 'fields' is {shown(fields)}, expected a list")
    return [field_from_json(field) for field in fields]


def field_from_json(data: Any) -> NestedField:
    if not isinstance(data, Mapping):
        raise InvalidSchemaError(f"Cannot read a field from {shown(data)}: expected an object")
    field_id, name, doc = _integer(data, "id"), _member(data, "name"), data.get("doc")
    if not isinstance(name, str) or not (doc is None or isinstance(doc, str)):
        raise InvalidSchemaError(f"Cannot read field {field_id}: 'name' and 'doc' must be text, got {shown(data)}")
    kind = type_from_json(_member(data, "type"))
    try:
        initial = single_values.from_json(kind, data.get("initial-default"))
        write = single_values.from_json(kind, data.get("write-default"))
    except IcebergError as error:
        raise InvalidSchemaError(f"Cannot read the default of field {name!r} (id {field_id}): {error}") from error
    return NestedField(field_id, name, kind, _boolean(data, "required"), doc, initial, write)


def _member(data: Mapping[str, Any], key: str) -> Any:
    if key not in data:
        raise InvalidSchemaError(f"Cannot read a schema: {key!r} is missing in {shown(data)}")
    return data[key]


def _integer(data: Mapping[str, Any], key: str) -> int:
    value = _member(data, key)
    if not is_int(value):
        raise InvalidSchemaError(f"Cannot read a schema: {key!r} is {shown(value)}, expected a 32-bit integer")
    number: int = value
    return number


def _boolean(data: Mapping[str, Any], key: str) -> bool:
    value = _member(data, key)
    if not isinstance(value, bool):
        raise InvalidSchemaError(f"Cannot read a schema: {key!r} is {shown(value)}, expected true or false")
    return value


set_json_form(IcebergType, type_to_json, type_from_json)
set_json_form(NestedField, field_to_json, field_from_json)
set_json_form(Schema, schema_to_json, schema_from_json)
