"""Lists the rows of one kind in a namespace."""

from __future__ import annotations

import logging
from collections.abc import Callable

from hms_iceberg.errors import MetastoreError, NoSuchNamespaceError
from hms_iceberg.hms.connection.client import HmsClient
from hms_iceberg.hms.connection.thrift_types import ttypes
from hms_iceberg.hms.rows.table_rows import TABLE_TYPE

logger = logging.getLogger(__name__)


def list_names(
    client: HmsClient, namespace: str, table_type: str, is_wanted: Callable[[ttypes.Table], bool]
) -> list[str]:
    """Names of a namespace's rows of one kind, sorted.

    Args:
        client: the metastore.
        namespace: the namespace, in lower case.
        table_type: the parameter `table_type` of such rows, by which the server filters.
        is_wanted: tells such a row, if the server does not filter.

    Raises:
        NoSuchNamespaceError: no namespace of that name.
    """
    try:
        names = client.list_tables_by_parameter(namespace, TABLE_TYPE, table_type)
    except NoSuchNamespaceError:
        raise
    except MetastoreError as error:  # filters on parameters can be switched off on the server
        logger.info("Listing %s without the server's filter: %s", namespace, error)
        rows = client.get_tables(namespace, client.list_tables(namespace))
        names = [row.tableName for row in rows if is_wanted(row)]
    if not names:
        client.get_database(namespace)  # a metastore lists nothing for a namespace that does not exist
    return sorted(names)
