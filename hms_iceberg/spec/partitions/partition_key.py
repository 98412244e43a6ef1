"""The partition of a file, by PyIceberg's names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hms_iceberg.errors import InvalidInputError
from hms_iceberg.spec.partitions.partition_specs import PartitionField, PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.values.python_values import from_python


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
