"""The tables of `tables.py` on the metastore of the run."""

from __future__ import annotations

import uuid

import pytest

from hms_iceberg.catalog import Catalog
from tests.interop.engines import tables


@pytest.fixture(scope="module")
def written(catalog: Catalog) -> list[tables.Written]:
    """All tables that engines are given."""
    namespace = f"engines_{uuid.uuid4().hex[:8]}"
    catalog.create_namespace(namespace)
    return tables.write(catalog, namespace)
