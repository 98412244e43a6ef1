"""The metastore of the unit tests keeps what every metastore promises."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hms_iceberg.metastore import CatalogMetastore, Identifier
from tests.support.memory_metastore import InMemoryMetastore
from tests.support.metastore_contract import MetastoreContract


class TestInMemoryMetastore(MetastoreContract):
    @pytest.fixture
    def store(self) -> InMemoryMetastore:
        return InMemoryMetastore()

    @pytest.fixture
    def location(self) -> str:
        return "mem://warehouse/contract.db/events"

    @pytest.fixture
    def foreign_table(self, store: InMemoryMetastore) -> Callable[[Identifier], None]:
        return store.add_foreign_table

    def test_it_has_every_call_of_the_port(self, store: InMemoryMetastore) -> None:
        assert isinstance(store, CatalogMetastore)
