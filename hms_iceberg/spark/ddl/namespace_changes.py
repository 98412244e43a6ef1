"""CREATE, ALTER and DROP NAMESPACE in a named catalog."""

from __future__ import annotations

from typing import Any

import msgspec

from hms_iceberg.catalog import Catalog
from hms_iceberg.errors import NamespaceNotEmptyError, NoSuchNamespaceError
from hms_iceberg.hms.hive_metastore import HiveMetastore
from hms_iceberg.spark.catalogs import OWNER, OWNER_OF_HIVE
from hms_iceberg.spark.staged_tables import Targets


class CreateNamespace(msgspec.Struct, frozen=True):
    """CREATE NAMESPACE; its properties have `comment`, `location` and `owner` among them."""

    catalog: int
    namespace: str
    properties: dict[str, str]


class AlterNamespace(msgspec.Struct, frozen=True):
    """ALTER NAMESPACE … SET PROPERTIES, SET LOCATION, UNSET PROPERTIES; COMMENT ON NAMESPACE."""

    catalog: int
    namespace: str
    updates: dict[str, str]
    removals: list[str]


class DropNamespace(msgspec.Struct, frozen=True):
    """DROP NAMESPACE; with `cascade` the tables and views in it are dropped first, and their files stay."""

    catalog: int
    namespace: str
    cascade: bool


def create_namespace(question: CreateNamespace, targets: Targets) -> None:
    catalog = targets.catalogs.numbered(question.catalog)
    if isinstance(catalog.metastore, HiveMetastore):
        properties = _for_hive(question.properties)
    else:  # Spark names an owner of every namespace; a folder has none
        properties = {key: value for key, value in question.properties.items() if key != OWNER}
    catalog.create_namespace(question.namespace, properties)


def alter_namespace(question: AlterNamespace, targets: Targets) -> None:
    catalog = targets.catalogs.numbered(question.catalog)
    catalog.update_namespace_properties(question.namespace, set(question.removals), _for_hive(question.updates))


def drop_namespace(question: DropNamespace, targets: Targets) -> dict[str, Any]:
    """Drops a namespace; the answer says whether there was one, as `dropped`."""
    catalog = targets.catalogs.numbered(question.catalog)
    try:
        if question.cascade:
            _empty(catalog, question.namespace)
        catalog.drop_namespace(question.namespace)
    except NoSuchNamespaceError:
        return {"dropped": False}
    return {"dropped": True}


def _empty(catalog: Catalog, namespace: str) -> None:
    """Drops all tables and views of a namespace; nothing if it holds anything else."""
    tables, metastore = catalog.list_tables(namespace), catalog.metastore
    views = catalog.list_views(namespace) if isinstance(metastore, HiveMetastore) else []
    ours = {each[-1] for each in (*tables, *views)}
    rows = metastore.list_rows(namespace) if isinstance(metastore, HiveMetastore) else []
    others = [row for row in rows if row not in ours]
    if others:
        raise NamespaceNotEmptyError(
            f"Cannot drop the namespace {namespace} of {catalog.name} with all that is in it: {', '.join(others[:5])} "
            "is not Iceberg's. Nothing was dropped. Drop it in the session catalog first."
        )
    for view in views:
        catalog.drop_view(view)
    for table in tables:
        catalog.drop_table(table)


def _for_hive(properties: dict[str, str]) -> dict[str, str]:
    renamed = {key: value for key, value in properties.items() if key != OWNER}
    owner = properties.get(OWNER)
    return renamed if owner is None or OWNER_OF_HIVE in renamed else {**renamed, OWNER_OF_HIVE: owner}
