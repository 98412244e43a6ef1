"""Names in parts, by PyIceberg's static methods of a catalog."""

from __future__ import annotations

from hms_iceberg.errors import InvalidInputError
from hms_iceberg.metastore import Identifier, namespace_name, table_identifier


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
