"""Rows to data files, on behalf of a transaction."""

from __future__ import annotations

from hms_iceberg.arrow.writing.write import ArrowInput, write_data_files
from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.spec.schema import Schema
from hms_iceberg.transaction.transaction import Transaction


def write_rows(transaction: Transaction, rows: ArrowInput, schema: Schema | None = None) -> tuple[DataFile, ...]:
    """Writes rows as data files of the transaction's table; a certain failure of the transaction deletes them.

    Args:
        transaction: what the rows become part of.
        rows: the rows.
        schema: the columns of the files; the table's current schema unless given.

    Raises:
        InvalidInputError: not Arrow data, or it does not fit the table's schema; see `write_data_files`.
    """
    return tuple(
        write_data_files(
            transaction.metadata,
            transaction.workspace.storage,
            rows,
            table=".".join(transaction.identifier),
            schema=schema,
            on_create=transaction.track,
        )
    )
