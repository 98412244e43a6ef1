"""Parts of the metadata that Spark shows as properties of a table, and takes from the text that it showed.

SHOW CREATE TABLE prints them among the table's properties, so that its text makes the same table again.
"""

from __future__ import annotations

import re

from hms_iceberg.errors import InvalidInputError
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.snapshots_and_refs import Snapshot
from hms_iceberg.spec.sort_orders import UNSORTED, NullOrder, SortDirection, SortField, SortOrder
from hms_iceberg.spec.table_properties import FILE_FORMAT
from hms_iceberg.spec.transforms.partition_transforms import (
    BucketTransform,
    IdentityTransform,
    Transform,
    parse_transform,
    transform_of_sql,
)

SORT_ORDER = "sort-order"
IDENTIFIER_FIELDS = "identifier-fields"
SHOWN = ("format", "current-snapshot-id", SORT_ORDER, IDENTIFIER_FIELDS)
"""Properties that say what other parts of the metadata are; they are never stored as properties."""

_KEY = re.compile(r"\s*(?P<term>\w+\(.*\)|.+?)\s+(?P<direction>ASC|DESC)\s+NULLS\s+(?P<nulls>FIRST|LAST)\s*", re.I)
_TERM = re.compile(r"(?P<name>\w+)\((?P<arguments>.*)\)")
_AFTER_KEY = re.compile(r"(?<=NULLS FIRST),|(?<=NULLS LAST),", re.I)


def shown_properties(metadata: TableMetadata, schema: Schema, snapshot: Snapshot | None) -> dict[str, str]:
    """A table's properties as Apache Iceberg shows them in Spark. Beside its own: `format`, `provider`, `location`,
    `current-snapshot-id`, `format-version`, and order and identifier fields if there are any."""
    shown = {
        "format": f"iceberg/{FILE_FORMAT.of(metadata.properties)}",
        "provider": "iceberg",
        "location": metadata.location,
        "current-snapshot-id": str(snapshot.snapshot_id) if snapshot else "none",
        "format-version": str(metadata.format_version),
    }
    order = metadata.sort_order()
    if not order.is_unsorted:
        shown[SORT_ORDER] = ", ".join(_key_text(field, metadata.schema()) for field in order.fields)
    if schema.identifier_field_ids:
        names = (schema.find_column_name(each) or "" for each in schema.identifier_field_ids)
        shown[IDENTIFIER_FIELDS] = f"[{','.join(names)}]"
    return {**{key: value for key, value in metadata.properties.items() if key not in shown}, **shown}


def _key_text(field: SortField, schema: Schema) -> str:
    column, nulls = schema.find_column_name(field.source_id) or "", NullOrder(field.null_order)
    ends = f"{field.direction.value.upper()} NULLS {'FIRST' if nulls is NullOrder.NULLS_FIRST else 'LAST'}"
    return f"{_term_text(field.transform, column)} {ends}"


def _term_text(transform: Transform, column: str) -> str:
    if transform.is_identity:
        return column
    if isinstance(transform, BucketTransform):  # as Apache Iceberg shows it: bucket(4, id), but truncate(id, 4)
        return f"bucket({transform.num_buckets}, {column})"
    if transform.argument is not None:
        return f"{transform.name}({column}, {transform.argument})"
    return f"{transform.sql_name}({column})"


def sort_order_of(text: str | None, schema: Schema, table: str) -> SortOrder:
    """The sort order that a text stands for, such as `bucket(4, id) ASC NULLS FIRST, name DESC NULLS LAST`."""
    if not text:
        return UNSORTED
    fields = []
    for part in _AFTER_KEY.split(text):
        match = _KEY.fullmatch(part)
        if match is None:
            raise InvalidInputError(
                f"Cannot define the table {table}: its property {SORT_ORDER} is {text!r}. Expected keys such as 'id "
                "ASC NULLS FIRST'; or leave it out, and say ALTER TABLE ... WRITE ORDERED BY."
            )
        transform, column = _term(match["term"])
        source = schema.find_field(column, case_sensitive=False)
        direction = SortDirection(match["direction"].lower())
        nulls = NullOrder.NULLS_FIRST if match["nulls"].upper() == "FIRST" else NullOrder.NULLS_LAST
        fields.append(SortField(source.field_id, transform, direction, nulls))
    return SortOrder(*fields, order_id=1)


def _term(text: str) -> tuple[Transform, str]:
    match = _TERM.fullmatch(text)
    if match is None:
        return IdentityTransform(), text
    name, arguments = match["name"].lower(), [each.strip() for each in match["arguments"].split(",")]
    if len(arguments) == 1:
        return transform_of_sql(name), arguments[0]
    number, column = arguments if name == "bucket" else reversed(arguments)
    return parse_transform(f"{name}[{number}]"), column


def identified(schema: Schema, text: str | None) -> Schema:
    """The schema with identifier fields that a text such as `[id,region]` names."""
    if not text:
        return schema
    names = [name.strip() for name in text.strip("[] ").split(",") if name.strip()]
    ids = tuple(schema.find_field(name, case_sensitive=False).field_id for name in names)
    return Schema(*schema.fields, identifier_field_ids=ids)
