"""The questions about catalogs, each with the class of the bridge that asks it."""

from __future__ import annotations

import msgspec


class OpenCatalog(msgspec.Struct, frozen=True):
    """A named catalog is to be opened (`NamedCatalog`).

    Args:
        name: its name in the session.
        properties: those of `load_catalog`.
    """

    name: str
    properties: dict[str, str]


class OpenSessionCatalog(msgspec.Struct, frozen=True):
    """The metastore of a session's own catalog is to be opened (`SessionMetastore`).

    Args:
        name: the catalog's name.
        hive: Hive's settings as the session has them.
        warehouse: the session's warehouse.
        options: of `spark.sql.catalog.spark_catalog.*`, such as `table-default.*`.
    """

    name: str
    hive: dict[str, str]
    warehouse: str
    options: dict[str, str]


class InCatalog(msgspec.Struct, frozen=True):
    """Asks for the names in a catalog, or in a namespace of it (`NamedCatalog`).

    Args:
        catalog: the number of an open catalog.
        namespace: the namespace; None for all of the catalog.
    """

    catalog: int
    namespace: str | None = None


class FindTable(msgspec.Struct, frozen=True):
    """Where a table's newest metadata is (`NamedCatalog`, `TableReads`): of a path, or of a name in a catalog.

    Args:
        path: a table's folder, or a metadata file.
        catalog: the number of an open catalog.
        namespace: the table's namespace.
        table: the table's name.
    """

    path: str | None = None
    catalog: int | None = None
    namespace: str = ""
    table: str = ""
