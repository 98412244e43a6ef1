"""A small lake with a table that has some of everything."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pytest

from hms_iceberg.catalog import Catalog, load_catalog
from hms_iceberg.table import Table

DAYS = [dt.date(2026, 1, day) for day in (1, 1, 2, 3)]
ROWS = pa.table({"id": pa.array([1, 2, 3, 4], pa.int64()), "day": DAYS, "page": ["/", "/buy", None, "/<b>"]})


@pytest.fixture
def lake(tmp_path: Path) -> Catalog:
    catalog = load_catalog(type="hadoop", warehouse=str(tmp_path))
    catalog.create_namespace("web")
    return catalog


@pytest.fixture
def visits(lake: Catalog) -> Table:
    """Three days, a branch, rows deleted by vectors in one file."""
    table = lake.create_table(
        "web.visits", ROWS.schema, properties={"format-version": "3", "write.delete.mode": "merge-on-read"}
    )
    with table.update_spec() as spec:
        spec.add_identity("day")
    table.append(ROWS)
    table.append(ROWS.slice(3))
    table.manage_snapshots().create_branch(table.snapshots()[0].snapshot_id, "audit").commit()
    table.append(ROWS.slice(0, 1), branch="audit")
    table.delete("id = 1")
    return table
