"""The Hive Metastore keeps what every metastore promises, with its lock and without."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hms_iceberg.hms.embedded import EmbeddedMetastore
from hms_iceberg.hms.hive_metastore import HiveMetastore
from hms_iceberg.metastore import CatalogMetastore
from tests.support.hive_contract import HiveMetastoreContract


class TestHiveMetastore(HiveMetastoreContract):
    @pytest.fixture(params=["true", "false"], ids=["lock", "compare-and-swap"])
    def store(self, request: pytest.FixtureRequest, metastore: EmbeddedMetastore) -> Iterator[HiveMetastore]:
        store = HiveMetastore({"uri": metastore.uri, "iceberg.engine.hive.lock-enabled": request.param})
        yield store
        store.close()

    def test_it_has_every_call_of_the_port(self, store: HiveMetastore) -> None:
        assert isinstance(store, CatalogMetastore)
