"""The Hive Metastore keeps what every metastore promises, with its lock and without."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from hmsclient.genthrift.hive_metastore import ttypes

from hms_iceberg.hms.embedded import EmbeddedMetastore
from hms_iceberg.hms.metastore import HiveMetastore
from hms_iceberg.metastore import CatalogMetastore, Identifier
from tests.support.metastore_contract import MetastoreContract


class TestHiveMetastore(MetastoreContract):
    @pytest.fixture(params=["true", "false"], ids=["lock", "compare-and-swap"])
    def store(self, request: pytest.FixtureRequest, metastore: EmbeddedMetastore) -> Iterator[HiveMetastore]:
        store = HiveMetastore({"uri": metastore.uri, "iceberg.engine.hive.lock-enabled": request.param})
        yield store
        store.close()

    @pytest.fixture
    def location(self, tmp_path_factory: pytest.TempPathFactory) -> str:
        return str(tmp_path_factory.mktemp("events"))

    @pytest.fixture
    def foreign_table(self, store: HiveMetastore) -> Callable[[Identifier], None]:
        def create(identifier: Identifier) -> None:
            columns = [ttypes.FieldSchema("id", "bigint", None)]
            storage = ttypes.StorageDescriptor(
                cols=columns, serdeInfo=ttypes.SerDeInfo(parameters={}), bucketCols=[], sortCols=[], parameters={}
            )
            store.client.create_table(
                ttypes.Table(
                    dbName=identifier[0],
                    tableName=identifier[1],
                    tableType="MANAGED_TABLE",
                    sd=storage,
                    partitionKeys=[],
                    parameters={},
                )
            )

        return create

    def test_it_has_every_call_of_the_port(self, store: HiveMetastore) -> None:
        assert isinstance(store, CatalogMetastore)
