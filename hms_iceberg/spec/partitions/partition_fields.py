"""Partition fields over the specs of a table (an equivalent field keeps its id), and keys of partitions.

Source: Iceberg specification, "Partitioning" ("Partition field IDs must be reused if an existing partition spec
contains an equivalent field") and "Partition Evolution" (the rules for v1).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from hms_iceberg.errors import InvalidInputError
from hms_iceberg.spec.partitions.partition_specs import PartitionField, PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.transforms.partition_transforms import VoidTransform
from hms_iceberg.spec.values.single_values import from_python

FieldKey = tuple[tuple[int, ...], str]


def field_key(field: PartitionField) -> FieldKey:
    """A key that is equal for equivalent partition fields, whatever their names: source columns and transform."""
    return field.source_ids or (field.source_id,), str(field.transform)


def used_field_ids(specs: Iterable[PartitionSpec]) -> dict[FieldKey, int]:
    """The id of every kind of field that any spec has; the highest if there are several."""
    used: dict[FieldKey, int] = {}
    for spec in specs:
        for field in spec.fields:
            key = field_key(field)
            used[key] = max(field.field_id, used.get(key, field.field_id))
    return used


def carry_field_ids(
    format_version: int,
    current: PartitionSpec,
    specs: Iterable[PartitionSpec],
    spec: PartitionSpec,
    last_partition_id: int,
) -> PartitionSpec:
    """A spec with the field ids that it must have in a table: from v2 on those of any spec of the table, else new ones;
    in v1 all fields of the current spec stay in place (void if dropped), and new ones follow."""
    ids = count(last_partition_id + 1)
    if format_version > 1:
        used = used_field_ids(specs)
        fields = [replace(field, field_id=used.get(field_key(field)) or next(ids)) for field in spec.fields]
        return PartitionSpec(*fields, spec_id=spec.spec_id)
    wanted = {field_key(field): field for field in spec.fields}
    names = {field.name for field in spec.fields}
    fields = []
    for old in current.fields:
        kept = wanted.pop(field_key(old), None)
        if kept is not None:
            fields.append(replace(kept, field_id=old.field_id))
        else:
            name = f"{old.name}_{old.field_id}" if old.name in names else old.name
            fields.append(replace(old, name=name, transform=VoidTransform()))
    fields += [replace(field, field_id=next(ids)) for field in wanted.values()]
    return PartitionSpec(*fields, spec_id=spec.spec_id)


@dataclass(frozen=True)
class PartitionFieldValue:
    """The value of a partition field; dates, times and the like as Python has them, or as they are stored."""

    field: PartitionField
    value: Any


@dataclass(frozen=True)
class PartitionKey:
    """The values of all partition fields of a file.

    Attributes:
        field_values: the value of each field of the spec.
        partition_spec: the spec.
        schema: a schema with the source columns.
    """

    field_values: Sequence[PartitionFieldValue]
    partition_spec: PartitionSpec
    schema: Schema

    @property
    def partition(self) -> tuple[Any, ...]:
        """The partition tuple, in stored values, in the order of the spec.

        Raises:
            InvalidInputError: a field of the spec has no value.
        """
        given = {each.field.field_id: each.value for each in self.field_values}
        missing = [field.name for field in self.partition_spec.fields if field.field_id not in given]
        if missing:
            raise InvalidInputError(f"A partition key needs a value for the partition field {missing[0]!r}.")
        return tuple(self._stored(field, given[field.field_id]) for field in self.partition_spec.fields)

    def _stored(self, field: PartitionField, value: Any) -> Any:
        source = self.schema.find_field(field.source_id).field_type
        return from_python(field.transform.result_type(source), value)

    def to_path(self) -> str:
        """The relative directory, such as `country=DE/day=2017-11-16`."""
        return self.partition_spec.partition_to_path(self.partition, self.schema)
