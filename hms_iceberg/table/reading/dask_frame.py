"""A scan as a Dask data frame: a partition for each group of files that cost about the same."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from hms_iceberg.arrow.columns.arrow_schema import to_arrow
from hms_iceberg.arrow.columns.frames import for_pandas
from hms_iceberg.errors import MissingDependencyError

if TYPE_CHECKING:
    import dask.dataframe as dd
    import pandas as pd
    import pyarrow as pa

    from hms_iceberg.scan.splitting import ScanTaskGroup
    from hms_iceberg.table.reading.scan import TableScan


def dask_frame(scan: TableScan) -> dd.DataFrame:
    """A lazy data frame; its workers read a group of files each.

    Args:
        scan: what is read; a limit makes it one partition, since it holds for all files together.

    Raises:
        MissingDependencyError: Dask is not installed.
    """
    try:
        import dask.dataframe as dd
    except ImportError as error:
        raise MissingDependencyError("to_dask needs Dask: pip install 'dask[dataframe]'") from error
    empty = _frame(to_arrow(scan.projection()).empty_table())
    if scan.limit is not None:
        return dd.from_pandas(scan.to_pandas(), npartitions=1)
    groups = list(scan.plan_tasks())
    return dd.from_map(partial(_read, scan), groups, meta=empty) if groups else dd.from_pandas(empty, npartitions=1)


def _read(scan: TableScan, group: ScanTaskGroup) -> pd.DataFrame:
    return _frame(scan.read(group.tasks).read_all())


def _frame(rows: pa.Table) -> pd.DataFrame:
    frame: pd.DataFrame = for_pandas(rows).to_pandas()
    return frame
