"""Compares a Hive table, read by Spark, with an Iceberg table."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from hms_iceberg.arrow.columns.arrow_schema import to_arrow
from hms_iceberg.errors import InvalidInputError
from hms_iceberg.migration.proof.content_summary import TableSummary, differences, summarise
from hms_iceberg.spec.schema import Schema
from hms_iceberg.table import Table

COUNTS, SUMS, ROWS = "counts", "sums", "rows"
LEVELS = (COUNTS, SUMS, ROWS)
_MOST_DIFFERENCES = 20


class HiveReader(Protocol):
    """Reads Hive tables with another reader than ours: Spark's."""

    def counts(self, table: str, columns: tuple[str, ...]) -> tuple[int, Mapping[str, int]]:
        """Counts the rows of a table, and the nulls of each column.

        Args:
            table: the Hive table's name.
            columns: names of the columns.

        Returns:
            number of rows, and name of each column to its number of nulls.
        """
        ...

    def summary(self, table: str, schema: Schema, arrow: pa.Schema) -> TableSummary:
        """Summarises a table's rows, with columns read as those of a schema.

        Args:
            table: the Hive table's name.
            schema: the columns to read it as.
            arrow: the same as an Arrow schema.
        """
        ...

    def unlike_rows(self, hive: str, table: Table, most: int) -> Iterator[str]:
        """Finds rows that are in one of two tables only.

        The Iceberg table is read by this package: what a reader takes for something else is not seen if it reads both.

        Args:
            hive: the Hive table's name.
            table: the Iceberg table.
            most: rows of each side at most.

        Returns:
            a sentence for each, at most `most` of each side; none if the tables have the same rows.
        """
        ...


@dataclass(frozen=True)
class VerifyResult:
    """The result of a comparison.

    Attributes:
        hive, iceberg: the tables.
        level: how they were compared.
        rows: how many rows the Iceberg table has.
        differences: in what they differ; empty if they do not.
        seconds: how long it took.
    """

    hive: str
    iceberg: str
    level: str
    rows: int
    differences: tuple[str, ...]
    seconds: float

    @property
    def is_equal(self) -> bool:
        """Whether no difference was found."""
        return not self.differences


def verify(hive: str, table: Table, level: str, reader: HiveReader) -> VerifyResult:
    """Compares a Hive table with an Iceberg table.

    Args:
        hive: the Hive table, `db.table`.
        table: the Iceberg table.
        level: `counts` (rows and nulls, of Iceberg's side from metadata), `sums` (per column sums, least and greatest
            values and a checksum that does not depend on the order; Iceberg's side is read by this package) or `rows`
            (every row against every other; Iceberg's side is read by this package, in Spark's Python workers).
        reader: reads the Hive table.

    Returns:
        the differences in words, none if they are equal; the number of rows, and how long it took.

    Raises:
        InvalidInputError: there is no such level.
        MissingFileError, CorruptDataFileError, StorageError: a file of the Iceberg table cannot be read.
    """
    if level not in LEVELS:
        raise InvalidInputError(f"Cannot verify {level!r}. Expected one of {', '.join(LEVELS)}.")
    started = time.monotonic()
    name, schema = ".".join(table.identifier), table.schema()
    rows = table.scan().count()
    if level == COUNTS:
        found = list(_unlike_counts(hive, table, rows, reader))
    elif level == SUMS:
        arrow = to_arrow(schema, field_ids=False, extensions=False)
        with table.scan().to_arrow_batch_reader() as batches:
            ours = summarise(batches, arrow)
        found = list(differences(reader.summary(hive, schema, arrow), ours))
    else:
        found = list(reader.unlike_rows(hive, table, _MOST_DIFFERENCES))
    return VerifyResult(hive, name, level, rows, tuple(found[:_MOST_DIFFERENCES]), time.monotonic() - started)


def _unlike_counts(hive: str, table: Table, rows: int, reader: HiveReader) -> Iterator[str]:
    known = _nulls_in_metadata(table)
    found_rows, found_nulls = reader.counts(hive, tuple(known))
    if found_rows != rows:
        yield f"the Hive table has {found_rows:,} rows, the Iceberg table {rows:,}"
    for name, nulls in known.items():
        if found_nulls[name] != nulls:
            yield f"column {name!r} has {found_nulls[name]:,} nulls in the Hive table, {nulls:,} in the Iceberg table"


def _nulls_in_metadata(table: Table) -> dict[str, int]:
    """Nulls of the columns of which every file tells them; of none if rows were deleted since."""
    known = {field.name: 0 for field in table.schema().fields}
    for task in table.scan().plan_files():
        counts = task.file.null_value_counts or {}
        if task.delete_files:
            return {}
        known = {
            name: nulls + counts[field_id]
            for name, nulls in known.items()
            if (field_id := table.schema().find_field(name).field_id) in counts
        }
    return known
