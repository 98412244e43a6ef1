"""Rows to data files, on behalf of a transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hms_iceberg.arrow.write import write_data_files
from hms_iceberg.errors import InvalidInputError
from hms_iceberg.spec.manifests import DataFile
from hms_iceberg.transaction.transaction import Transaction

if TYPE_CHECKING:
    import pyarrow as pa


def write_rows(transaction: Transaction, rows: pa.Table | pa.RecordBatchReader) -> tuple[DataFile, ...]:
    """Writes rows as data files of the transaction's table; a certain failure of the transaction deletes them.

    Raises:
        InvalidInputError: not Arrow data, or it does not fit the table's schema.
    """
    import pyarrow as pa

    if isinstance(rows, pa.RecordBatch):
        rows = pa.Table.from_batches([rows])
    if not isinstance(rows, (pa.Table, pa.RecordBatchReader)):
        raise InvalidInputError(
            f"Cannot write to table {'.'.join(transaction.identifier)}: expected a pyarrow.Table or a "
            f"pyarrow.RecordBatchReader, got {type(rows).__name__}. Convert it, for example with pa.Table.from_pandas."
        )
    reader = rows.to_reader() if isinstance(rows, pa.Table) else rows
    files = []
    for file in write_data_files(transaction.metadata, transaction.workspace.storage, reader):
        transaction.adopt(file.file_path)
        files.append(file)
    return tuple(files)
