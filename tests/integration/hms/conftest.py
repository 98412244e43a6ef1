"""Servers and clients that several tests of this folder need beside those of the test run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hms_iceberg.hms.connection.client import HmsClient
from hms_iceberg.hms.connection.client_settings import ClientSettings
from hms_iceberg.hms.embedded import EmbeddedMetastore

COLUMN_SETTING = "hive.metastore.disallow.incompatible.col.type.changes"


@pytest.fixture(scope="module")
def strict_metastore() -> Iterator[EmbeddedMetastore]:
    """One that refuses columns of other types in the old ones' places, as a metastore does unless it is told."""
    with EmbeddedMetastore(properties={COLUMN_SETTING: "true"}) as server:
        yield server


@pytest.fixture
def client(metastore: EmbeddedMetastore) -> Iterator[HmsClient]:
    client = HmsClient(ClientSettings.from_properties({"uri": metastore.uri}))
    yield client
    client.close()


@pytest.fixture
def database(request: pytest.FixtureRequest) -> str:
    """A name that no other test locks; a lock needs no table."""
    return f"locks_{abs(hash(request.node.nodeid)):x}"
