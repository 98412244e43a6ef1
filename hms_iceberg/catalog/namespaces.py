"""The namespaces of a catalog, and PyIceberg's static methods that split names into parts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from hms_iceberg.errors import InvalidInputError, NamespaceAlreadyExistsError, NoSuchNamespaceError
from hms_iceberg.metastore import CatalogMetastore, Identifier, namespace_name, table_identifier
from hms_iceberg.spec.json_model import text_properties


@dataclass(frozen=True)
class PropertiesUpdateSummary:
    """Keys of a namespace's properties after an update, each list sorted.

    Attributes:
        removed: keys that were removed.
        updated: keys that were set.
        missing: keys that were to be removed and were not there.
    """

    removed: list[str]
    updated: list[str]
    missing: list[str]


class CatalogNamespaces:
    """Operations on the namespaces of a catalog; a base of `Catalog`."""

    metastore: CatalogMetastore

    def create_namespace(self, namespace: str | Identifier, properties: Mapping[str, str] | None = None) -> None:
        """Creates a namespace.

        Args:
            namespace: its name.
            properties: `location`, `comment`, `owner`, and any others.

        Raises:
            NamespaceAlreadyExistsError: it is there already.
            InvalidInputError: not a name, or a property without a value.
        """
        self.metastore.create_namespace(namespace_name(namespace), text_properties(properties or {}))

    def create_namespace_if_not_exists(
        self, namespace: str | Identifier, properties: Mapping[str, str] | None = None
    ) -> None:
        """Creates a namespace unless it is there already.

        Args:
            namespace: its name.
            properties: `location`, `comment`, `owner`, and any others; left alone if the namespace is
                there.

        Raises:
            InvalidInputError: not a name, or a property without a value.
        """
        with suppress(NamespaceAlreadyExistsError):
            self.create_namespace(namespace, properties)

    def namespace_exists(self, namespace: str | Identifier) -> bool:
        """Whether the namespace exists."""
        try:
            self.metastore.namespace_properties(namespace_name(namespace))
        except NoSuchNamespaceError:
            return False
        return True

    def list_namespaces(self, namespace: str | Identifier = ()) -> list[Identifier]:
        """Lists namespaces.

        Args:
            namespace: a namespace, which has none below it, as a Hive Metastore has one level; empty for all
                namespaces.

        Returns:
            the identifiers, sorted.

        Raises:
            NoSuchNamespaceError: no namespace of that name.
        """
        if namespace:
            self.metastore.namespace_properties(namespace_name(namespace))
            return []
        return [(name,) for name in self.metastore.list_namespaces()]

    def load_namespace_properties(self, namespace: str | Identifier) -> dict[str, str]:
        """The namespace's properties.

        Raises:
            NoSuchNamespaceError: no namespace of that name.
        """
        return self.metastore.namespace_properties(namespace_name(namespace))

    def update_namespace_properties(
        self,
        namespace: str | Identifier,
        removals: Iterable[str] | None = None,
        updates: Mapping[str, str] | None = None,
    ) -> PropertiesUpdateSummary:
        """Removes and sets properties of a namespace.

        Args:
            namespace: its name.
            removals: keys to remove; absent ones are reported as missing.
            updates: keys to set, with their values.

        Returns:
            the keys that were removed, set, and missing; each list sorted.

        Raises:
            NoSuchNamespaceError: no namespace of that name.
            InvalidInputError: a key is both removed and set.
        """
        name, gone, updates = namespace_name(namespace), set(removals or ()), text_properties(updates or {})
        if gone & updates.keys():
            raise InvalidInputError(
                f"Namespace {name}: the keys {sorted(gone & updates.keys())} are both removed and set. Do one of them."
            )
        before = self.metastore.namespace_properties(name)
        self.metastore.update_namespace(name, updates, gone)
        return PropertiesUpdateSummary(
            removed=sorted(gone & before.keys()), updated=sorted(updates), missing=sorted(gone - before.keys())
        )

    def drop_namespace(self, namespace: str | Identifier) -> None:
        """Drops an empty namespace.

        Raises:
            NoSuchNamespaceError: no namespace of that name.
            NamespaceNotEmptyError: tables are still in it.
        """
        self.metastore.drop_namespace(namespace_name(namespace))


# ------------------------------------------------------------------------------------------------ names in parts


class Identifiers:
    """Splits identifiers into namespace and name; `Catalog` inherits these methods."""

    @staticmethod
    def identifier_to_tuple(identifier: str | Identifier) -> Identifier:
        """`"db.name"` in parts; a tuple as it is."""
        return identifier if isinstance(identifier, tuple) else tuple(identifier.split("."))

    @staticmethod
    def table_name_from(identifier: str | Identifier) -> str:
        """The last part of an identifier."""
        return Identifiers.identifier_to_tuple(identifier)[-1]

    @staticmethod
    def namespace_from(identifier: str | Identifier) -> Identifier:
        """All parts of an identifier but the last."""
        return Identifiers.identifier_to_tuple(identifier)[:-1]

    @staticmethod
    def namespace_to_string(identifier: str | Identifier, err: type[Exception] = InvalidInputError) -> str:
        """A namespace as dotted text.

        Args:
            identifier: dotted text, or a tuple.
            err: the class of the error.

        Raises:
            err: a part of the name is empty.
        """
        parts = [part.strip() for part in Identifiers.identifier_to_tuple(identifier)]
        if not parts or not all(parts):
            raise err(f"Not the name of a namespace: {identifier!r} has an empty part. Expected a name such as 'db'.")
        return ".".join(parts)

    @staticmethod
    def identifier_to_database(identifier: str | Identifier, err: type[Exception] = InvalidInputError) -> str:
        """The name of a namespace of one level.

        Args:
            identifier: dotted text, or a tuple.
            err: the class of the error.

        Returns:
            the name without dots.

        Raises:
            err: it has no level, several, or characters that a name must not have.
        """
        try:
            return namespace_name(Identifiers.identifier_to_tuple(identifier))
        except InvalidInputError as error:
            raise err(str(error)) from error

    @staticmethod
    def identifier_to_database_and_table(
        identifier: str | Identifier, err: type[Exception] = InvalidInputError
    ) -> tuple[str, str]:
        """The namespace and the name of a table.

        Args:
            identifier: dotted text, or a tuple.
            err: the class of the error.

        Returns:
            both, without dots.

        Raises:
            err: it is not a namespace and a name.
        """
        try:
            namespace, name = table_identifier(identifier)
        except InvalidInputError as error:
            raise err(str(error)) from error
        return namespace, name
