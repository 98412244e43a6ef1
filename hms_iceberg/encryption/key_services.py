"""Services that keep the keys of tables: what one must do, which there are, and how a catalog names its own.

Source: Apache Iceberg, `KeyManagementClient`, and the properties of catalogs `encryption.kms-type` and `.kms-impl`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Protocol, cast

from hms_iceberg.errors import ConfigurationError, IcebergError, KeyUnavailableError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

SERVICE_TYPE = "encryption.kms-type"
SERVICE_CLASS = "encryption.kms-impl"
ENTRY_POINTS = "hms_iceberg.key_services"
"""The group of entry points by which other packages add types."""

_BUILT_IN = {
    "aws": "hms_iceberg.encryption.services.aws:AwsKeys",
    "keystore": "hms_iceberg.encryption.services.keystore:KeystoreFile",
    "vault": "hms_iceberg.encryption.services.vault:VaultKeys",
}
# What Apache Iceberg calls its clients, so that both can share one configuration.
_OF_JAVA = {"org.apache.iceberg.aws.AwsKeyManagementClient": "aws"}
_KEPT_SECONDS = 3600.0


class KeyService(Protocol):
    """Encrypts and decrypts keys by keys that it does not give away. Safe for several threads."""

    def wrap_key(self, key: bytes, table_key_id: str) -> bytes:
        """A key, encrypted.

        Args:
            key: the key.
            table_key_id: the key that encrypts it: the table property `encryption.key-id`.

        Raises:
            KeyUnavailableError: there is no such key, it may not be used, or the service does not answer.
        """
        ...

    def unwrap_key(self, wrapped: bytes, table_key_id: str) -> bytes:
        """The key that was encrypted.

        Args:
            wrapped: what `wrap_key` gave.
            table_key_id: the key that encrypted it.

        Raises:
            KeyUnavailableError: there is no such key, it may not be used, or the service does not answer.
            TamperedFileError: it was encrypted by another key, or changed.
        """
        ...


def key_service_of(reader: object, what: str) -> KeyService:
    """The key service of a storage, or of a reader of one; the error if it has none says what needs it."""
    found: KeyService | None = getattr(reader, "key_service", None)
    if found is None:
        raise KeyUnavailableError(
            f"Cannot read or write {what}: the table is encrypted, and the catalog has no key service. Set the "
            f"catalog's property {SERVICE_TYPE} to {', '.join(_BUILT_IN)}, or {SERVICE_CLASS} to module:Class."
        )
    return found


def key_service(properties: Mapping[str, str]) -> KeyService | None:
    """The key service that a catalog's properties name; None if they name none."""
    kind, named = properties.get(SERVICE_TYPE), properties.get(SERVICE_CLASS)
    if kind and named:
        raise ConfigurationError(
            f"Catalog properties {SERVICE_TYPE} ({kind}) and {SERVICE_CLASS} ({named}) cannot both be set: keep one."
        )
    kind = _OF_JAVA.get(named or "", kind)
    if kind:
        return KeptKeys(_of_type(kind)(properties))
    return KeptKeys(_loaded(named)(properties)) if named else None


def check_service_type(properties: Mapping[str, str]) -> None:
    """Refuses a type of key service that nobody has (ConfigurationError), without loading one."""
    kind = properties.get(SERVICE_TYPE, "").strip().lower()
    if kind and kind not in _BUILT_IN and kind not in (added := _added_types()):
        known = ", ".join(sorted({*_BUILT_IN, *added}))
        raise ConfigurationError(
            f"Catalog property {SERVICE_TYPE}: expected one of {known}, got {kind!r}. A class of your own goes into "
            f"{SERVICE_CLASS} as module:Class."
        )


def _of_type(kind: str) -> Callable[[Mapping[str, str]], KeyService]:
    check_service_type({SERVICE_TYPE: kind})
    name = kind.strip().lower()
    if name in _BUILT_IN:
        return _loaded(_BUILT_IN[name])
    return cast(Callable[[Mapping[str, str]], KeyService], _added_types()[name].load())


def _added_types() -> dict[str, EntryPoint]:
    from importlib.metadata import entry_points

    return {each.name.lower(): each for each in entry_points(group=ENTRY_POINTS)}


def _loaded(name: str) -> Callable[[Mapping[str, str]], KeyService]:
    module, _, attribute = name.replace(":", ".").rpartition(".")
    try:
        return cast(Callable[[Mapping[str, str]], KeyService], getattr(import_module(module), attribute))
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigurationError(
            f"Catalog property {SERVICE_CLASS}: cannot import {name!r} ({error}). Expected a Python class as "
            f"module:Class."
        ) from error


class KeptKeys:
    """A key service that is asked once an hour for the same key, as by Apache Iceberg."""

    def __init__(self, service: KeyService) -> None:
        self._service = service
        self._kept: dict[tuple[bytes, str], tuple[float, bytes]] = {}
        self._lock = threading.Lock()

    def wrap_key(self, key: bytes, table_key_id: str) -> bytes:
        with _named(self._service, table_key_id):
            wrapped = self._service.wrap_key(key, table_key_id)
        self._keep(wrapped, table_key_id, key)
        return wrapped

    def unwrap_key(self, wrapped: bytes, table_key_id: str) -> bytes:
        with self._lock:
            until, key = self._kept.get((wrapped, table_key_id), (0.0, b""))
        if until > time.monotonic():
            return key
        with _named(self._service, table_key_id):
            key = self._service.unwrap_key(wrapped, table_key_id)
        self._keep(wrapped, table_key_id, key)
        return key

    def _keep(self, wrapped: bytes, table_key_id: str, key: bytes) -> None:
        with self._lock:
            now = time.monotonic()
            self._kept = {each: kept for each, kept in self._kept.items() if kept[0] > now}
            self._kept[wrapped, table_key_id] = now + _KEPT_SECONDS, key


@contextmanager
def _named(service: KeyService, table_key_id: str) -> Iterator[None]:
    """Has every error of a service name it and the key."""
    try:
        yield
    except IcebergError:
        raise
    except Exception as error:
        raise KeyUnavailableError(
            f"The key service {type(service).__name__} cannot be asked for the table key {table_key_id!r}: {error}. "
            f"Check that it can be reached, that the key exists there, and that you may use it."
        ) from error
