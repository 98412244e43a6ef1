"""The Avro schema of a table's data files.

Source: Iceberg specification, "Appendix A: Format-specific Requirements" (Avro): types, `field-id`, `element-id`,
`key-id` and `value-id`.
"""

from __future__ import annotations

from typing import Any

from hms_iceberg.errors import UnsupportedError
from hms_iceberg.spec.data_types import IcebergType, ListType, MapType, NestedField, StringType, StructType
from hms_iceberg.spec.manifests.manifest_schema import avro_primitive
from hms_iceberg.spec.schema import Schema


def avro_schema(schema: Schema) -> dict[str, Any]:
    """The schema of Avro files with these columns, whose names Avro allows (``FileLayout.schema``), as JSON objects.

    Raises:
        UnsupportedError: a type has no form in Avro here.
    """
    return _record("table", schema.fields, set())


def _record(name: str, fields: tuple[NestedField, ...], named: set[str]) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [_field(field, named) for field in fields]}


def _field(field: NestedField, named: set[str]) -> dict[str, Any]:
    described: dict[str, Any] = {"name": field.name, "field-id": field.field_id}
    if field.doc:
        described["doc"] = field.doc
    described["type"] = _optional(_type(field.field_type, field.field_id, named), field.optional)
    if field.optional:
        described["default"] = None
    return described


def _optional(kind: Any, optional: bool) -> Any:
    return ["null", kind] if optional else kind


def _type(kind: IcebergType, field_id: int, named: set[str]) -> Any:
    if isinstance(kind, StructType):
        return _record(f"r{field_id}", kind.fields, named)
    if isinstance(kind, ListType):
        element = _optional(_type(kind.element_type, kind.element_id, named), not kind.element_required)
        return {"type": "array", "items": element, "element-id": kind.element_id}
    if isinstance(kind, MapType):
        return _map(kind, named)
    found = avro_primitive(kind, named)
    if found is None:
        raise UnsupportedError(f"Cannot write Avro files: values of type {kind} have no form in them.")
    return found


def _map(kind: MapType, named: set[str]) -> dict[str, Any]:
    # A named type is described where it comes first: in the key, which stands before the value.
    key = {"name": "key", "field-id": kind.key_id, "type": _type(kind.key_type, kind.key_id, named)}
    value = _optional(_type(kind.value_type, kind.value_id, named), not kind.value_required)
    if isinstance(kind.key_type, StringType):
        return {"type": "map", "values": value, "key-id": kind.key_id, "value-id": kind.value_id}
    described = {"name": "value", "field-id": kind.value_id, "type": value}
    record = {"type": "record", "name": f"k{kind.key_id}_v{kind.value_id}", "fields": [key, described]}
    return {"type": "array", "items": record, "logicalType": "map"}
