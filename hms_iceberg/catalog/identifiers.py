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
        """A namespace as dotted text; raises `err` if a part is empty.

        Args:
            identifier: dotted text, or a tuple.
            err: the class of the error.
        """
        parts = [part.strip() for part in Identifiers.identifier_to_tuple(identifier)]
        if not parts or not all(parts):
            raise err(f"Not the name of a namespace: {identifier!r} has an empty part. Expected a name such as 'db'.")
        return ".".join(parts)

    @staticmethod
    def identifier_to_database(identifier: str | Identifier, err: type[Exception] = InvalidInputError) -> str:
        """The name of a namespace; raises `err` if it is not one name.

        Args:
            identifier: dotted text, or a tuple.
            err: the class of the error.
        """
        try:
            return namespace_name(Identifiers.identifier_to_tuple(identifier))
        except InvalidInputError as error:
            raise err(str(error)) from error

    @staticmethod
    def identifier_to_database_and_table(
        identifier: str | Identifier, err: type[Exception] = InvalidInputError
    ) -> tuple[str, str]:
        """The namespace and name of a table; raises `err` if they are not two names.

        Args:
            identifier: dotted text, or a tuple.
            err: the class of the error.
        """
        try:
            namespace, name = table_identifier(identifier)
        except InvalidInputError as error:
            raise err(str(error)) from error
        return namespace, name
