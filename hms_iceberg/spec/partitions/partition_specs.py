"""Partition specs: which transforms of which columns make the partition tuple of a data file, and their JSON.

Source: Iceberg specification, "Partitioning", and Appendix C, "Partition Specs".
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote_plus

from hms_iceberg.errors import InvalidPartitionSpecError
from hms_iceberg.notebook_html import framed, rows_table
from hms_iceberg.printable import printable
from hms_iceberg.spec.data_types import IcebergType, NestedField, StructType, UnknownType
from hms_iceberg.spec.json_model import JsonModel, is_int, set_json_form
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.transforms.partition_transforms import Transform, UnknownTransform, parse_transform

PARTITION_FIELD_ID_START = 1000
"""The id of the first partition field of a table."""


@dataclass(frozen=True)
class PartitionField(JsonModel):
    """A field of the partition tuple.

    Args:
        source_id: id of the source column; the first one if a transform takes several.
        field_id: id of the value in partition tuples, from 1000 on.
        transform: the transform, or its text.
        name: the name of the value, unique within the spec.
        source_ids: ids of all source columns, for a transform with several arguments (format v3).
    """

    source_id: int
    field_id: int
    transform: Transform
    name: str
    source_ids: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.transform, str):
            object.__setattr__(self, "transform", parse_transform(self.transform))
        if self.source_ids is not None:
            object.__setattr__(self, "source_ids", tuple(self.source_ids))

    def equivalent_to(self, other: PartitionField) -> bool:
        """True if source columns, transform and name are the same, whatever the field ids."""
        return replace(self, field_id=0) == replace(other, field_id=0)

    def __str__(self) -> str:
        sources = ", ".join(map(str, self.source_ids or (self.source_id,)))
        return printable(f"{self.field_id}: {self.name}: {self.transform}({sources})")


@dataclass(frozen=True, init=False)
class PartitionSpec(JsonModel):
    """The partition fields of a table, in order; without fields, the table is not partitioned."""

    fields: tuple[PartitionField, ...]
    spec_id: int

    def __init__(self, *fields: PartitionField, spec_id: int = 0) -> None:
        object.__setattr__(self, "fields", tuple(fields))
        object.__setattr__(self, "spec_id", spec_id)

    def is_unpartitioned(self) -> bool:
        """True if no field makes partitions: there is none, or all are void."""
        return all(field.transform.is_void for field in self.fields)

    @property
    def field_ids(self) -> frozenset[int]:
        """The ids of the fields."""
        return frozenset(field.field_id for field in self.fields)

    @property
    def last_assigned_field_id(self) -> int:
        """The highest partition field id; 999 for a spec without fields."""
        return max((field.field_id for field in self.fields), default=PARTITION_FIELD_ID_START - 1)

    @property
    def has_unknown_transforms(self) -> bool:
        """True if data cannot be written with this spec, because a transform is not known."""
        return any(isinstance(field.transform, UnknownTransform) for field in self.fields)

    def fields_by_source_id(self, source_id: int) -> list[PartitionField]:
        """The fields made from a column."""
        return [field for field in self.fields if source_id in (field.source_ids or (field.source_id,))]

    def partition_type(self, schema: Schema) -> StructType:
        """The type of the partition tuple: one optional field per partition field, under its field id.

        The type of a column that the schema no longer has counts as unknown.
        """
        return StructType(
            *(NestedField(field.field_id, field.name, _result_type(field, schema)) for field in self.fields)
        )

    def partition_to_path(self, partition: Sequence[Any], schema: Schema) -> str:
        """The relative directory of a partition, such as "country=DE/day=2017-11-16", escaped as Java escapes it.

        Args:
            partition: the partition tuple, in stored values.
            schema: a schema with the source columns.
        """
        return "/".join(
            f"{_escape(field.name)}={_escape(_value_text(field, schema, value))}"
            for field, value in zip(self.fields, partition, strict=True)
        )

    def check_compatible(self, schema: Schema, allow_missing_fields: bool = False) -> None:
        """Refuses a spec that cannot be used with a schema; see `check_spec`.

        Args:
            schema: the table's schema.
            allow_missing_fields: whether source columns may be missing.
        """
        check_spec(self, schema, allow_missing_fields)

    def compatible_with(self, other: PartitionSpec) -> bool:
        """True if both specs have equivalent fields in the same order, whatever their ids."""
        if len(self.fields) != len(other.fields):
            return False
        return all(mine.equivalent_to(theirs) for mine, theirs in zip(self.fields, other.fields, strict=True))

    def _repr_html_(self) -> str:
        rows = (
            (each.field_id, each.name, each.transform, ", ".join(map(str, each.source_ids or (each.source_id,))))
            for each in self.fields
        )
        columns = ("id", "partition field", "transform", "of column id")
        return framed(rows_table(columns, rows) if self.fields else "unpartitioned")

    def __str__(self) -> str:
        return "[" + "".join(f"\n  {field}" for field in self.fields) + ("\n]" if self.fields else "]")

    def __repr__(self) -> str:
        return f"PartitionSpec({', '.join([*map(repr, self.fields), f'spec_id={self.spec_id}'])})"


UNPARTITIONED = PartitionSpec()


def _source_type(field: PartitionField, schema: Schema) -> IcebergType:
    source = schema.index_by_id.get(field.source_id)
    return UnknownType() if source is None else source.field_type


def _result_type(field: PartitionField, schema: Schema) -> IcebergType:
    return field.transform.result_type(_source_type(field, schema))


def _value_text(field: PartitionField, schema: Schema, value: Any) -> str:
    return field.transform.to_human_string(_source_type(field, schema), value)


def _escape(text: str) -> str:
    return quote_plus(text, safe="*").replace("~", "%7E")


# ------------------------------------------------------------------------------------------- validation


def check_spec(
    spec: PartitionSpec, schema: Schema, allow_missing_source: bool = False, kept: Collection[int] = ()
) -> None:
    """Refuses a spec that cannot be used with a schema. `allow_missing_source` accepts fields of dropped columns, in
    past specs; fields that are `kept` may be redundant (hours of a column, then its days)."""
    names: set[str] = set()
    ids: set[int] = set()
    kinds: dict[tuple[tuple[int, ...], str], str] = {}
    for field in spec.fields:
        if not field.name:
            raise InvalidPartitionSpecError(f"Invalid partition field {field}: it needs a name")
        if field.name in names:
            raise InvalidPartitionSpecError(f"Invalid partition spec: the name {field.name!r} is used twice")
        if field.field_id in ids:
            raise InvalidPartitionSpecError(
                f"Invalid partition field {field.name!r}: field id {field.field_id} is used twice"
            )
        names.add(field.name)
        ids.add(field.field_id)
        _check_sources(field, schema, allow_missing_source)
        _check_name(field, schema)
        if not field.transform.is_void and field.field_id not in kept:
            kind = (field.source_ids or (field.source_id,), deduplication_name(field.transform))
            if kind in kinds:
                raise InvalidPartitionSpecError(
                    f"Invalid partition field {field.name!r}: {field.transform} is redundant beside {kinds[kind]!r} "
                    "of the same column; keep one of them"
                )
            kinds[kind] = field.name


def deduplication_name(transform: Transform) -> str:
    """A name that two fields of one column may not share: year, month, day and hour are all "time"."""
    return transform.redundant_as or str(transform)


def _check_sources(field: PartitionField, schema: Schema, allow_missing_source: bool) -> None:
    for source_id in field.source_ids or (field.source_id,):
        source = schema.index_by_id.get(source_id)
        if source is None:
            if allow_missing_source or field.transform.is_void:
                continue
            raise InvalidPartitionSpecError(
                f"Invalid partition field {field.name!r}: the schema has no column with id {source_id}"
            )
        column = schema.find_column_name(source_id)
        if field.transform.is_void:
            continue
        if not source.field_type.is_primitive:
            raise InvalidPartitionSpecError(
                f"Invalid partition field {field.name!r}: column {column!r} is a {source.field_type}; only primitive "
                "columns can be partitioned by"
            )
        if not field.transform.can_transform(source.field_type):
            raise InvalidPartitionSpecError(
                f"Invalid partition field {field.name!r}: transform {field.transform} cannot be applied to column "
                f"{column!r} of type {source.field_type}"
            )
        for ancestor in schema.ancestor_ids(source_id):
            kind = schema.index_by_id[ancestor].field_type
            if not isinstance(kind, StructType):
                raise InvalidPartitionSpecError(
                    f"Invalid partition field {field.name!r}: column {column!r} is inside of the {kind} "
                    f"{schema.find_column_name(ancestor)!r}; only columns outside of lists and maps can be "
                    "partitioned by"
                )


def _check_name(field: PartitionField, schema: Schema) -> None:
    column_id = schema.index_by_name.get(field.name)
    if column_id is None:
        return
    same_column = column_id == field.source_id and (field.transform.is_identity or field.transform.is_void)
    if not same_column and not field.transform.is_void:
        raise InvalidPartitionSpecError(
            f"Invalid partition field {field.name!r}: a column of the table has this name; only an identity partition "
            "of that very column may share it. Choose another name"
        )


# -------------------------------------------------------------------------------------------------- ids


def assign_fresh_spec_ids(spec: PartitionSpec, old_schema: Schema, fresh_schema: Schema) -> PartitionSpec:
    """The spec for a schema whose columns were renumbered; fields get ids from 1000 on, in order."""

    def fresh(source_id: int) -> int:
        name = old_schema.find_column_name(source_id)
        if name is None or name not in fresh_schema.index_by_name:
            raise InvalidPartitionSpecError(f"Invalid partition spec: the schema has no column with id {source_id}")
        return fresh_schema.index_by_name[name]

    return PartitionSpec(
        *(
            replace(
                field,
                source_id=fresh(field.source_id),
                source_ids=None if field.source_ids is None else tuple(fresh(each) for each in field.source_ids),
                field_id=PARTITION_FIELD_ID_START + position,
            )
            for position, field in enumerate(spec.fields)
        )
    )


def unified_partition_type(specs: Iterable[PartitionSpec], schema: Schema) -> StructType:
    """The partition fields of all specs, by field id, for metadata tables and statistics: the newest name, and the type
    of a spec that still makes it. As in Java, fields of dropped columns are left out; of two fields of one name (a
    replaced table's) the older one gets its id at the end."""
    chosen: dict[int, tuple[PartitionField, IcebergType]] = {}
    for spec in sorted(specs, key=lambda each: each.spec_id, reverse=True):
        for field in spec.fields:
            if field.source_id not in schema.index_by_id:
                continue
            kind = _result_type(field, schema)
            known = chosen.get(field.field_id)
            if known is None:
                chosen[field.field_id] = (field, kind)
            elif known[0].transform.is_void and not field.transform.is_void:
                chosen[field.field_id] = (replace(field, name=known[0].name), kind)
    named: dict[str, NestedField] = {}
    for field_id, (field, kind) in chosen.items():  # those of the newest spec come first
        name = field.name
        while name in named:
            name = f"{name}_{field_id}"
        named[name] = NestedField(field_id, name, kind)
    return StructType(*sorted(named.values(), key=lambda each: each.field_id))


# ------------------------------------------------------------------------------------------------- JSON


def spec_to_json(spec: PartitionSpec) -> dict[str, Any]:
    return {"spec-id": spec.spec_id, "fields": spec_fields_to_json(spec)}


def spec_fields_to_json(spec: PartitionSpec) -> list[dict[str, Any]]:
    """Only the fields, as v1 metadata's `partition-spec` and manifests hold them."""
    return [field_to_json(field) for field in spec.fields]


def field_to_json(field: PartitionField) -> dict[str, Any]:
    several = field.source_ids is not None and len(field.source_ids) != 1
    source: dict[str, Any] = {"source-ids": list(field.source_ids or ())} if several else {"source-id": field.source_id}
    return {"name": field.name, "transform": str(field.transform), **source, "field-id": field.field_id}


def spec_from_json(data: Mapping[str, Any]) -> PartitionSpec:
    if not isinstance(data, Mapping) or not is_int(data.get("spec-id")) or "fields" not in data:
        raise InvalidPartitionSpecError(f"Cannot read a partition spec from {data!r}: expected 'spec-id' and 'fields'")
    return spec_from_fields_json(data["fields"], data["spec-id"])


def spec_from_fields_json(fields: Any, spec_id: int = 0) -> PartitionSpec:
    """The spec of a JSON list of fields; if field ids are missing (v1), they count up from 1000."""
    if not isinstance(fields, list):
        raise InvalidPartitionSpecError(f"Cannot read partition fields from {fields!r}: expected a list")
    with_ids = sum(1 for field in fields if isinstance(field, Mapping) and "field-id" in field)
    if with_ids not in (0, len(fields)):
        raise InvalidPartitionSpecError(
            f"Cannot read partition spec {spec_id}: {with_ids} of {len(fields)} fields have a 'field-id'; "
            "expected all or none"
        )
    read = (field_from_json(field, PARTITION_FIELD_ID_START + position) for position, field in enumerate(fields))
    return PartitionSpec(*read, spec_id=spec_id)


def field_from_json(data: Any, default_id: int = PARTITION_FIELD_ID_START) -> PartitionField:
    if not isinstance(data, Mapping):
        raise InvalidPartitionSpecError(f"Cannot read a partition field from {data!r}: expected an object")
    name, transform, field_id = data.get("name"), data.get("transform"), data.get("field-id", default_id)
    if not isinstance(name, str) or not isinstance(transform, str) or not is_int(field_id):
        raise InvalidPartitionSpecError(
            f"Cannot read a partition field from {dict(data)!r}: expected 'name' and 'transform' as text and "
            "'field-id' as a number"
        )
    source_id, source_ids = sources_from_json(data)
    if source_id is None:
        raise InvalidPartitionSpecError(
            f"Cannot read partition field {name!r}: expected a number 'source-id' or a list of numbers 'source-ids'"
        )
    return PartitionField(source_id, field_id, parse_transform(transform), name, source_ids)


def sources_from_json(data: Mapping[str, Any]) -> tuple[int | None, tuple[int, ...] | None]:
    """`source-id` and `source-ids` of a partition or sort field; (None, None) if neither can be read."""
    source_ids, source_id = data.get("source-ids"), data.get("source-id")
    if source_ids is not None:
        if not isinstance(source_ids, list) or not source_ids or not all(map(is_int, source_ids)):
            return None, None
        return source_ids[0], tuple(source_ids) if len(source_ids) > 1 else None
    return (source_id, None) if is_int(source_id) else (None, None)


def partition_terms(spec: PartitionSpec, schema: Schema) -> tuple[str, ...]:
    """The terms that a table is partitioned by, such as `day(ts)`."""
    return tuple(transform_term(str(field.transform), field.source_id, schema) for field in spec.fields)


def transform_term(transform: str, column_id: int, schema: Schema) -> str:
    column = schema.find_column_name(column_id) or f"dropped column {column_id}"
    return column if transform == "identity" else f"{transform}({column})"


set_json_form(PartitionField, field_to_json, field_from_json)
set_json_form(PartitionSpec, spec_to_json, spec_from_json)
