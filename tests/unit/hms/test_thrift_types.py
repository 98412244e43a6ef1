"""What newer servers put into a table or database comes back to them, with the fast codec and with the plain one."""

from __future__ import annotations

from typing import Any

import pytest
from thrift.protocol.TBinaryProtocol import TBinaryProtocol, TBinaryProtocolAccelerated
from thrift.transport.TTransport import TMemoryBuffer

from hms_iceberg.hms.connection.thrift_types import ThriftHiveMetastore, ttypes

TABLE = ttypes.Table(dbName="db", tableName="t", parameters={"a": "1"})
DATABASE = ttypes.Database(name="db", parameters={"a": "1"})
SENT = [
    (TABLE, "catName", "hive"),
    (TABLE, "ownerType", 2),
    (DATABASE, "catalogName", "hive"),
    (DATABASE, "managedLocationUri", "file:/managed"),
    (DATABASE, "type", 1),
]


@pytest.mark.parametrize("protocol", [TBinaryProtocol, TBinaryProtocolAccelerated])
@pytest.mark.parametrize(("sent", "field", "value"), SENT)
def test_fields_of_newer_servers_are_read_and_written_within_requests_and_answers(
    protocol: Any, sent: Any, field: str, value: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sent, field, value, raising=False)
    if sent is TABLE:
        request: Any = ThriftHiveMetastore.alter_table_with_environment_context_args(new_tbl=sent)
        empty: Any = ThriftHiveMetastore.alter_table_with_environment_context_args()
        answer: Any = ThriftHiveMetastore.get_table_req_result(ttypes.GetTableResult(sent))
        no_answer: Any = ThriftHiveMetastore.get_table_req_result()
    else:
        request, empty = ThriftHiveMetastore.alter_database_args(db=sent), ThriftHiveMetastore.alter_database_args()
        answer, no_answer = ThriftHiveMetastore.get_database_result(sent), ThriftHiveMetastore.get_database_result()
    received = _copy(request, empty, protocol)
    assert getattr(received.new_tbl if sent is TABLE else received.db, field) == value
    received = _copy(answer, no_answer, protocol).success
    assert getattr(received.table if sent is TABLE else received, field) == value


def _copy(message: Any, empty: Any, protocol: Any) -> Any:
    buffer = TMemoryBuffer()
    message.write(protocol(buffer))
    empty.read(protocol(TMemoryBuffer(buffer.getvalue())))
    return empty
