"""The Thrift classes of the Hive Metastore, as `hmsclient` brings them, and what they lack.

`hmsclient` knows the interface of Hive 2.3. A `Table` of Hive 3 and newer carries more fields, and an alter writes
the whole table: what this client would not know, it would erase. So the fields that a server takes over on an alter
are added to the description that the codec works by.
"""

from __future__ import annotations

from hmsclient.genthrift.hive_metastore import ThriftHiveMetastore, ttypes
from thrift.Thrift import TApplicationException, TException, TType

# Fields of hive_metastore.thrift, struct Table, of Hive 3.1: the catalog, and whether the owner is a role.
_TABLE_FIELDS_OF_HIVE_3 = (
    None,  # 16 creationMetadata: of materialized views, rebuilt by the server
    (17, TType.STRING, "catName", "UTF8", None),
    (18, TType.I32, "ownerType", None, None),
)


def _extend_table() -> None:
    spec = ttypes.Table.thrift_spec
    if len(spec) == 16:
        ttypes.Table.thrift_spec = (*spec, *_TABLE_FIELDS_OF_HIVE_3)
        ttypes.Table.catName = None
        ttypes.Table.ownerType = None


_extend_table()

ThriftClient = ThriftHiveMetastore.Client

__all__ = ["TApplicationException", "TException", "ThriftClient", "ttypes"]
