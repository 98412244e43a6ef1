"""Position deletes that name their data file, under any spec and partition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hms_iceberg.arrow.deletes.delete_writer import DeletedPositions, write_row_deletes
from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.table import Table
from hms_iceberg.updates.rows.row_delta import RowDelta


def path_delete(
    table: Table, data_file: DataFile, positions: Sequence[int], spec_id: int, partition: tuple[Any, ...], how: str
) -> DataFile:
    """A delete file (from format version 3 on a vector) of rows of one data file.

    Args:
        table: the table.
        data_file: the data file.
        positions: the rows.
        spec_id, partition: what the delete file is said to be of.
        how: `named`, or by its `bounds`.
    """
    about = replace(data_file, spec_id=spec_id, partition=partition)
    deleted = [DeletedPositions(about, np.array(positions, np.int64))]
    (written,) = write_row_deletes(table.metadata, table.storage, deleted)
    return written if how == "named" else replace(written, referenced_data_file=None)


def commit_deletes(table: Table, *deletes: DataFile) -> None:
    """Adds delete files as they are."""
    with table.transaction() as transaction:
        transaction.add(RowDelta(added=deletes))
