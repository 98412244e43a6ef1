"""The Thrift classes of the Hive Metastore, as `hmsclient` brings them, and what they lack.

`hmsclient` knows the interface of Hive 2.3. A `Table` or `Database` of Hive 3 and newer carries more fields, and an
alter writes the whole of it: what this client would not know, it would erase. So the fields that a server takes over on
an alter are added to the description that the codec works by, in classes of this package's own (see `genthrift`).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from thrift.Thrift import TApplicationException, TException, TType
from thrift.transport.TTransport import CReadableTransport

from hms_iceberg.hms.connection import genthrift

if TYPE_CHECKING:
    from hmsclient.genthrift.hive_metastore import ThriftHiveMetastore, ttypes
else:
    _MODULES = f"{genthrift.__name__}.hive_metastore"
    ttypes = import_module(f"{_MODULES}.ttypes")
    ThriftHiveMetastore = import_module(f"{_MODULES}.ThriftHiveMetastore")

# Fields of hive_metastore.thrift, Hive 3.1: the catalog, and whether the owner is a role.
_TABLE_FIELDS = (
    None,  # 16 creationMetadata: of materialized views, rebuilt by the server
    (17, TType.STRING, "catName", "UTF8", None),
    (18, TType.I32, "ownerType", None, None),
)
# Hive 3.1 and 4: the catalog, the folder of managed tables, and what a database of another system is reached by.
_DATABASE_FIELDS = (
    (8, TType.STRING, "catalogName", "UTF8", None),
    (9, TType.I32, "createTime", None, None),
    (10, TType.STRING, "managedLocationUri", "UTF8", None),
    (11, TType.I32, "type", None, None),
    (12, TType.STRING, "connector_name", "UTF8", None),
    (13, TType.STRING, "remote_dbname", "UTF8", None),
)


def _extend(struct: Any, known: int, fields: tuple[Any, ...]) -> None:
    """Adds fields to a struct, unless this hmsclient knows more of it than up to field number `known`."""
    if len(struct.thrift_spec) != known + 1:
        return
    struct.thrift_spec = (*struct.thrift_spec, *fields)
    for field in filter(None, fields):
        setattr(struct, field[2], None)
    struct.read, struct.write = _read, _write
    for module in (ttypes, ThriftHiveMetastore):
        for other in vars(module).values():
            for field in filter(None, getattr(other, "thrift_spec", None) or ()):
                _refer(field[3], struct)


def _refer(arguments: Any, struct: Any) -> None:
    """Makes the type of a field, if it is or holds `struct`, refer to the longer description of it."""
    if isinstance(arguments, list):
        if arguments[0] is struct:
            arguments[1] = struct.thrift_spec
    elif isinstance(arguments, tuple):
        for inner in arguments:
            _refer(inner, struct)


def _read(struct: Any, protocol: Any) -> None:
    # The generated methods know the fields of Hive 2.3 by heart.
    if protocol._fast_decode is not None and isinstance(protocol.trans, CReadableTransport):
        protocol._fast_decode(struct, protocol, [type(struct), struct.thrift_spec])
    else:
        protocol.readStruct(struct, struct.thrift_spec)


def _write(struct: Any, protocol: Any) -> None:
    if protocol._fast_encode is not None:
        protocol.trans.write(protocol._fast_encode(struct, [type(struct), struct.thrift_spec]))
    else:
        protocol.writeStruct(struct, struct.thrift_spec)


_extend(ttypes.Table, 15, _TABLE_FIELDS)
_extend(ttypes.Database, 7, _DATABASE_FIELDS)

ThriftClient = ThriftHiveMetastore.Client

__all__ = ["TApplicationException", "TException", "ThriftClient", "ThriftHiveMetastore", "ttypes"]
