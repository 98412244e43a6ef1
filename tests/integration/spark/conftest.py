"""Tables that several tests of this folder read."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from hms_iceberg.updates.row_delta import RowDelta
from tests.support.spark_tables import Rows

if TYPE_CHECKING:
    from hms_iceberg.catalog import Catalog
    from hms_iceberg.spec.manifests import DataFile
    from hms_iceberg.table import Table


@pytest.fixture
def orders(catalog: Catalog, namespace: str) -> Table:
    """Two appends of three orders each."""
    rows = Rows({"id": pa.int64(), "item": pa.string(), "price": pa.float64()})
    table = catalog.create_table(f"{namespace}.orders", rows.schema)
    table.append(rows([(1, "pen", 1.5), (2, "ink", 3.0), (3, None, None)]))
    table.append(rows([(4, "pad", 2.0), (5, "cap", 8.0), (6, "pen", 1.0)]))
    return table


@pytest.fixture
def commit() -> Callable[..., None]:
    """Commits files as one snapshot."""

    def commit_files(table: Table, *files: DataFile) -> None:
        with table.transaction() as transaction:
            transaction._transaction.add(RowDelta(files))
        table.refresh()

    return commit_files
