"""The contract of a metastore, for Hive ones of any release."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hms_iceberg.hms.connection.thrift_types import ttypes
from hms_iceberg.hms.hive_metastore import HiveMetastore
from hms_iceberg.metastore import Identifier
from tests.support.metastore_contract import MetastoreContract


class HiveMetastoreContract(MetastoreContract):
    """Subclasses give the fixture `store`, a `HiveMetastore`."""

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
