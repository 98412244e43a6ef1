"""Properties of a catalog as settings: Iceberg's and Hive's own names, and errors that name the property."""

from __future__ import annotations

import pytest

from hms_iceberg.errors import ConfigurationError
from hms_iceberg.hms.connection.client_settings import Address, ClientSettings, parse_uri
from hms_iceberg.hms.locking.lock_settings import LockSettings
from hms_iceberg.hms.rows.table_rows import RowSettings


@pytest.mark.parametrize(
    ("uri", "addresses"),
    [
        ("thrift://a:9084", [Address("a", 9084)]),
        ("thrift://a", [Address("a", 9083)]),
        ("thrift://a:1,b:2", [Address("a", 1), Address("b", 2)]),
        ("thrift://a:1, thrift://b", [Address("a", 1), Address("b", 9083)]),
        ("thrift://[::1]:9083/", [Address("::1", 9083)]),
        ("thrift://metastore-1.example.org:9083", [Address("metastore-1.example.org", 9083)]),
    ],
)
def test_a_uri_holds_one_or_more_addresses(uri: str, addresses: list[Address]) -> None:
    assert list(parse_uri(uri)) == addresses


@pytest.mark.parametrize(
    "uri", ["", "http://a:9083", "thrift://", "thrift://a:0", "thrift://a:99999", "thrift://a:1,,"]
)
def test_a_uri_that_is_none_is_refused(uri: str) -> None:
    with pytest.raises(ConfigurationError, match=r"Expected thrift://host:9083"):
        parse_uri(uri)


def test_an_address_is_shown_as_it_is_written() -> None:
    assert [str(Address("a", 1)), str(Address("::1", 2))] == ["a:1", "[::1]:2"]


def test_client_settings_take_hives_times() -> None:
    settings = ClientSettings.from_properties(
        {
            "uri": "thrift://a",
            "hive.metastore.client.socket.timeout": "2min",
            "hive.metastore.client.connection.timeout": "500ms",
            "hive.metastore.connect.retries": "7",
            "clients": "9",
            "ugi": "etl:staff",
        }
    )
    assert (settings.socket_timeout, settings.connect_timeout, settings.attempts) == (120.0, 0.5, 7)
    assert (settings.idle_connections, settings.user) == (9, "etl:staff")


def test_lock_settings_have_icebergs_defaults_and_names() -> None:
    assert LockSettings.from_properties({}) == LockSettings()
    settings = LockSettings.from_properties(
        {"iceberg.hive.lock-timeout-ms": "1500", "iceberg.hive.lock-check-max-wait-ms": "250"}
    )
    assert (settings.timeout, settings.check_max_wait, settings.check_min_wait) == (1.5, 0.25, 0.05)


def test_the_legacy_name_of_the_size_limit_counts_where_the_newer_is_absent() -> None:
    legacy = {"hive.table-property-max-size": "4000"}
    assert RowSettings.from_properties(legacy).max_value_length == 4000
    assert RowSettings.from_properties({**legacy, "iceberg.hive.table-property-max-size": "0"}).max_value_length == 0


@pytest.mark.parametrize(
    ("read", "name", "value"),
    [
        (ClientSettings.from_properties, "clients", "many"),
        (ClientSettings.from_properties, "hive.metastore.client.socket.timeout", "soon"),
        (LockSettings.from_properties, "iceberg.hive.lock-timeout-ms", "-1"),
        (RowSettings.from_properties, "iceberg.engine.hive.enabled", "maybe"),
    ],
)
def test_a_value_that_cannot_be_read_names_its_property(read: object, name: str, value: str) -> None:
    with pytest.raises(ConfigurationError, match=f"{name}.*{value}"):
        read({"uri": "thrift://a", name: value})  # type: ignore[operator]
