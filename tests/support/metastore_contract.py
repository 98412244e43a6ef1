"""What every metastore promises: one set of tests, inherited by the tests of each implementation."""

from __future__ import annotations

import threading
import uuid
from dataclasses import replace

import pytest

from hms_iceberg.errors import (
    CommitFailedError,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    NotAnIcebergTableError,
    TableAlreadyExistsError,
)
from hms_iceberg.metastore import CatalogMetastore, Identifier, MetadataVersion, Metastore
from hms_iceberg.spec.metadata.metadata_definition import set_properties
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from tests.support.tables import metadata


class MetastoreContract:
    """Subclasses give the fixtures `store` (a metastore), `location` (a folder that exists for tables) and
    `foreign_table` (creates a table that is not Iceberg's).
    """

    @pytest.fixture
    def namespace(self, store: CatalogMetastore) -> str:
        """A fresh namespace."""
        name = f"contract_{uuid.uuid4().hex[:12]}"
        store.create_namespace(name, {})
        return name

    @pytest.fixture
    def first(self, location: str) -> MetadataVersion:
        """The first version of a table."""
        return version(location, replace(metadata(), location=location), 0)

    @pytest.fixture
    def base(self, store: CatalogMetastore, namespace: str, first: MetadataVersion) -> MetadataVersion:
        """The first version of `table`, as the metastore has it."""
        return swap(store, (namespace, "events"), None, first) or first

    @pytest.fixture
    def table(self, namespace: str, base: MetadataVersion) -> Identifier:
        """A table at its first version."""
        return (namespace, "events")

    def test_a_created_table_is_loaded_at_its_location(
        self, store: CatalogMetastore, table: Identifier, base: MetadataVersion
    ) -> None:
        pointer = store.load(table)
        assert (pointer.identifier, pointer.metadata_location) == (table, base.location)

    def test_a_swap_on_the_current_version_moves_the_pointer(
        self, store: CatalogMetastore, table: Identifier, base: MetadataVersion
    ) -> None:
        second = after(base)
        second = swap(store, table, base, second) or second
        assert store.load(table).metadata_location == second.location

    def test_a_swap_on_an_older_version_fails_and_changes_nothing(
        self, store: CatalogMetastore, table: Identifier, base: MetadataVersion
    ) -> None:
        second = after(base)
        second = swap(store, table, base, second) or second
        with pytest.raises(CommitFailedError) as caught:
            swap(store, table, base, after(base))
        assert caught.value.retryable
        assert store.load(table).metadata_location == second.location

    def test_a_table_is_created_once(self, store: CatalogMetastore, table: Identifier, base: MetadataVersion) -> None:
        with pytest.raises(TableAlreadyExistsError):
            swap(store, table, None, after(base))
        assert store.load(table).metadata_location == base.location

    def test_a_table_needs_its_namespace(self, store: CatalogMetastore, first: MetadataVersion) -> None:
        with pytest.raises(NoSuchNamespaceError):
            swap(store, (f"absent_{uuid.uuid4().hex}", "events"), None, first)

    def test_what_is_not_there_cannot_be_loaded_dropped_or_swapped(
        self, store: CatalogMetastore, namespace: str, first: MetadataVersion
    ) -> None:
        absent = (namespace, "absent")
        with pytest.raises(NoSuchTableError, match="absent"):
            store.load(absent)
        with pytest.raises(NoSuchTableError):
            store.drop_table(absent)
        with pytest.raises(NoSuchTableError):
            store.rename_table(absent, (namespace, "other"))
        with pytest.raises((NoSuchTableError, CommitFailedError)):
            swap(store, absent, first, after(first))
        assert not store.table_exists(absent)

    def test_a_table_of_another_kind_is_not_loaded_listed_or_dropped(
        self, store: CatalogMetastore, namespace: str, foreign_table: object
    ) -> None:
        identifier = (namespace, "plain")
        foreign_table(identifier)  # type: ignore[operator]
        with pytest.raises(NotAnIcebergTableError, match=rf"hms-iceberg migrate {namespace}\.plain"):
            store.load(identifier)
        with pytest.raises(NotAnIcebergTableError):
            store.drop_table(identifier)
        assert store.list_iceberg_tables(namespace) == []
        assert not store.table_exists(identifier)
        with pytest.raises(NamespaceNotEmptyError):
            store.drop_namespace(namespace)

    def test_tables_are_listed_sorted(self, store: CatalogMetastore, namespace: str, first: MetadataVersion) -> None:
        for name in ("b", "a", "c"):
            swap(store, (namespace, name), None, first)
        assert store.list_iceberg_tables(namespace) == [(namespace, name) for name in "abc"]

    def test_a_dropped_table_is_gone_and_its_name_free(
        self, store: CatalogMetastore, table: Identifier, base: MetadataVersion
    ) -> None:
        store.drop_table(table)
        assert not store.table_exists(table)
        swap(store, table, None, base)
        assert store.table_exists(table)

    def test_a_renamed_table_keeps_its_version(
        self, store: CatalogMetastore, table: Identifier, base: MetadataVersion
    ) -> None:
        target = (table[0], "renamed")
        store.rename_table(table, target)
        assert store.load(target).metadata_location == base.location
        assert not store.table_exists(table)
        second = after(base)
        swap(store, target, base, second)
        assert store.load(target).metadata_location == second.location

    def test_a_rename_refuses_a_name_that_is_taken_and_a_namespace_that_is_not_there(
        self, store: CatalogMetastore, table: Identifier, base: MetadataVersion
    ) -> None:
        taken = (table[0], "taken")
        swap(store, taken, None, base)
        for name in (taken, table):
            with pytest.raises(TableAlreadyExistsError):
                store.rename_table(table, name)
        with pytest.raises(NoSuchNamespaceError):
            store.rename_table(table, (f"absent_{uuid.uuid4().hex}", "events"))
        assert store.table_exists(table)

    def test_namespaces_are_created_listed_changed_and_dropped(self, store: CatalogMetastore) -> None:
        name = f"contract_{uuid.uuid4().hex[:12]}"
        store.create_namespace(name, {"comment": "of a test", "owner-team": "billing"})
        assert name in store.list_namespaces()
        properties = store.namespace_properties(name)
        assert (properties["comment"], properties["owner-team"]) == ("of a test", "billing")
        assert properties["location"]
        store.update_namespace(name, {"stage": "prod"}, {"owner-team", "never-there"})
        changed = store.namespace_properties(name)
        assert changed["stage"] == "prod"
        assert "owner-team" not in changed
        assert changed["location"] == properties["location"]
        store.drop_namespace(name)
        assert name not in store.list_namespaces()

    def test_a_namespace_is_created_once_and_dropped_only_when_empty(
        self, store: CatalogMetastore, table: Identifier
    ) -> None:
        with pytest.raises(NamespaceAlreadyExistsError):
            store.create_namespace(table[0], {})
        with pytest.raises(NamespaceNotEmptyError):
            store.drop_namespace(table[0])
        assert store.table_exists(table)

    def test_a_namespace_that_is_not_there_is_named(self, store: CatalogMetastore) -> None:
        name = f"absent_{uuid.uuid4().hex[:12]}"
        for call in (
            lambda: store.namespace_properties(name),
            lambda: store.update_namespace(name, {"a": "1"}),
            lambda: store.drop_namespace(name),
            lambda: store.list_iceberg_tables(name),
        ):
            with pytest.raises(NoSuchNamespaceError, match=name):
                call()

    def test_a_swap_under_the_lock_that_is_held_moves_the_pointer(
        self, store: CatalogMetastore, table: Identifier, base: MetadataVersion
    ) -> None:
        second = after(base)
        with store.lease(table, {}) as lease:
            lease.acquire()
            lease.acquire()  # twice is no error
            assert lease.load().metadata_location == base.location
            second = lease.swap(base, second) or second
        assert store.load(table).metadata_location == second.location

    def test_one_lease_is_for_all_attempts(
        self, store: CatalogMetastore, table: Identifier, base: MetadataVersion
    ) -> None:
        second = after(base)
        second = swap(store, table, base, second) or second
        third = after(second)
        with store.lease(table, {}) as lease:
            with pytest.raises(CommitFailedError):
                lease.swap(base, after(base))
            lease.acquire()
            assert lease.load().metadata_location == second.location
            third = lease.swap(second, third) or third
        assert store.load(table).metadata_location == third.location

    def test_the_lock_is_held_by_one_at_a_time(self, store: CatalogMetastore, table: Identifier) -> None:
        inside, most = 0, 0
        mutex = threading.Lock()
        failures: list[BaseException] = []

        def work() -> None:
            nonlocal inside, most
            try:
                with store.lease(table, {}) as lease:
                    lease.acquire()
                    with mutex:
                        inside += 1
                        most = max(most, inside)
                    threading.Event().wait(0.02)
                    with mutex:
                        inside -= 1
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (most, failures) == (1, [])

    def test_an_error_within_a_lease_gives_the_lock_back(
        self, store: CatalogMetastore, table: Identifier, base: MetadataVersion
    ) -> None:
        def fail_under_the_lock() -> None:
            with store.lease(table, {}) as lease:
                lease.acquire()
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            fail_under_the_lock()
        with store.lease(table, {}) as lease:
            lease.acquire()
            lease.swap(base, after(base))


def swap(
    store: Metastore, identifier: Identifier, base: MetadataVersion | None, new: MetadataVersion
) -> MetadataVersion | None:
    """One optimistic swap with a lease of its own."""
    with store.lease(identifier, {}) as lease:
        return lease.swap(base, new)


def version(location: str, content: TableMetadata, number: int) -> MetadataVersion:
    """A version at a fresh location; metastores do not read the file."""
    return MetadataVersion(f"{location}/metadata/{number:05d}-{uuid.uuid4()}.metadata.json", content)


def after(base: MetadataVersion) -> MetadataVersion:
    """A version that follows another."""
    changed = set_properties(base.metadata, {"version": uuid.uuid4().hex})
    return version(base.metadata.location, changed, 1)
