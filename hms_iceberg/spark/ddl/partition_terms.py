"""PARTITIONED BY as a partition spec."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from hms_iceberg.errors import InvalidPartitionSpecError, UnsupportedError
from hms_iceberg.spec.partition_transforms import SPELLINGS, Transform, transform_of_sql
from hms_iceberg.spec.partitions.partition_specs import PARTITION_FIELD_ID_START, PartitionField, PartitionSpec
from hms_iceberg.spec.schema import Schema


class PartitionTerm(msgspec.Struct, frozen=True):
    """One transform as Spark parsed it: its name, the columns that it names, and its number where it has one."""

    transform: str
    columns: list[list[str]]
    number: int | None = None

    def __str__(self) -> str:
        arguments = [*([] if self.number is None else [str(self.number)]), *map(".".join, self.columns)]
        return f"{self.transform}({', '.join(arguments)})"


def spec_of(terms: Sequence[PartitionTerm], schema: Schema, table: str) -> PartitionSpec:
    """The spec of a new table. Its fields are named as Apache Iceberg names them: `id_bucket`, `ts_day`.

    Args:
        terms: the terms of PARTITIONED BY.
        schema: the table's schema.
        table: the table's name, for messages.

    Raises:
        UnsupportedError: a transform that Iceberg does not have.
        InvalidPartitionSpecError: a transform without its number, or of several columns.
        UnknownColumnError: there is no such column.
    """
    fields = []
    for number, term in enumerate(terms, PARTITION_FIELD_ID_START):
        transform = transform_of(term, table)
        column = ".".join(term.columns[0])
        source = schema.find_field(column, case_sensitive=False)
        own = schema.find_column_name(source.field_id) or column
        fields.append(PartitionField(source.field_id, number, transform, _name(own, transform)))
    return PartitionSpec(*fields)


def transform_of(term: PartitionTerm, table: str) -> Transform:
    """The transform that a term stands for; raises as `spec_of`.

    Args:
        term: the term.
        table: the table's name, for messages.
    """
    if len(term.columns) != 1:
        raise InvalidPartitionSpecError(
            f"Cannot partition the table {table} by {term}: a transform takes one column. Partition by several terms."
        )
    name = term.transform.lower()
    kind = SPELLINGS.get(name)
    if kind is None:
        raise UnsupportedError(
            f"Cannot partition the table {table} by {term}: Iceberg has no such transform. Use a column itself, years, "
            "months, days, hours, bucket(n, column) or truncate(width, column)."
        )
    if not kind.takes_number:
        return kind()
    if term.number is None or term.number <= 0:
        raise InvalidPartitionSpecError(
            f"Cannot partition the table {table} by {term}: expected a positive number, such as {name}(16, column)."
        )
    return transform_of_sql(name, term.number)


def _name(column: str, transform: Transform) -> str:
    return column if transform.is_identity else f"{column}_{transform.suffix}"
