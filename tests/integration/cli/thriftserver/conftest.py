"""One Thrift server for the files of this folder, by the line of the cookbook."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from tests.support.command_server import server
from tests.support.guides import lines_of

if TYPE_CHECKING:
    from hms_iceberg.catalog import Catalog
    from hms_iceberg.hms.embedded import EmbeddedMetastore

((_, *THRIFT),) = lines_of("docs/COOKBOOK.md", "dbt, Superset and other BI tools")
_BARE = lines_of("cli", "A shell and servers")[2][1:]
assert set(_BARE) <= set(THRIFT), "what runs below is the cookbook's line, which holds the guide's"


@pytest.fixture
def table(catalog: Catalog, namespace: str) -> str:
    name = f"{namespace}.t"
    catalog.create_table(name, pa.schema([("id", pa.int64()), ("name", pa.string())]))
    return name


@pytest.fixture(scope="package")
def thrift_port(metastore: EmbeddedMetastore, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """A Thrift server, which serves one client after another."""
    with server(metastore, THRIFT, tmp_path_factory.mktemp("thrift")) as port:
        yield port
