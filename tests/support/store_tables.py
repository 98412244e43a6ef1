"""Tables of two columns in a store of objects, on a metastore that makes folders there itself."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

from hms_iceberg import load_catalog
from hms_iceberg.catalog import Catalog
from hms_iceberg.hms.embedded import EmbeddedMetastore
from hms_iceberg.table import Table
from tests.support.maven import UnavailableError

SCHEMA = pa.schema([("id", pa.int64()), ("page", pa.string())])


@contextmanager
def metastore_in(
    warehouse: str, jars: Callable[[], Sequence[Path]], hadoop: Mapping[str, str]
) -> Iterator[EmbeddedMetastore]:
    """A metastore that makes folders in the store itself; skips the test if the jars that it needs for that are in no
    cache, and Maven cannot fetch them here."""
    try:
        found = jars()
    except UnavailableError as error:
        pytest.skip(str(error))
    with EmbeddedMetastore(warehouse=warehouse, jars=found, properties=hadoop) as server:
        yield server


@contextmanager
def catalog_of(metastore: EmbeddedMetastore, storage: Mapping[str, str]) -> Iterator[Catalog]:
    """A catalog with the namespace `web`."""
    with load_catalog("store", uri=metastore.uri, **storage) as catalog:
        catalog.create_namespace("web")
        yield catalog


def new_table(catalog: Catalog) -> Table:
    """A table of two rows."""
    made = catalog.create_table(f"web.t{uuid.uuid4().hex}", SCHEMA)
    made.append(rows(1, 2))
    return made


def rows(*ids: int) -> pa.Table:
    """Rows of these ids."""
    return pa.table({"id": list(ids), "page": [f"/{each}" for each in ids]}, SCHEMA)


def ids(table: Table) -> list[int]:
    """The ids that the table has now."""
    return sorted(table.refresh().scan().to_arrow()["id"].to_pylist())
