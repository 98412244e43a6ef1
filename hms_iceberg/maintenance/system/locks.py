"""`system.locks`: the locks of a Hive Metastore, granted and waiting; other catalogs have none."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone

import pyarrow as pa

from hms_iceberg.hms.hive_metastore import HiveMetastore
from hms_iceberg.hms.locking.lock_admin import is_abandoned, list_locks
from hms_iceberg.hms.locking.lock_info import LockInfo
from hms_iceberg.maintenance.system.request import Row, SystemTable, SystemTableRequest, columns
from hms_iceberg.spec.data_types import BooleanType, DoubleType, LongType, StringType, TimestamptzType

COLUMNS = columns(
    ("partition", StringType(), "the locked partition; null for the whole table"),
    ("lock_id", LongType(), "its number; numbers grow with time"),
    ("state", StringType(), "acquired or waiting"),
    ("type", StringType(), "exclusive, shared read and so on"),
    ("user", StringType(), "who asked for it"),
    ("host", StringType(), "on which machine"),
    ("agent", StringType(), "by which program; that of Iceberg's writers begins with Iceberg-"),
    ("acquired_at", TimestamptzType(), "when it was granted; null while it waits"),
    ("age_seconds", DoubleType(), "how long ago that was"),
    ("last_heartbeat_at", TimestamptzType(), "when its holder last gave a sign of life"),
    ("silence_seconds", DoubleType(), "how long ago that was"),
    ("transaction_id", LongType(), "the Hive transaction that it belongs to; null for none"),
    ("waits_for", LongType(), "number of the lock that it waits for; null if the server does not say"),
    ("is_abandoned", BooleanType(), "whether a process of this machine that has ended left it behind"),
    has_error=False,
)


def _read(request: SystemTableRequest, schema: pa.Schema) -> Iterator[pa.Table]:
    metastore = request.catalog.metastore
    found = list_locks(metastore.client) if isinstance(metastore, HiveMetastore) else []
    selected = request.selected
    wanted = (
        each
        for each in found
        if selected.of_namespace(each.database) and (not each.table or selected.of_table((each.database, each.table)))
    )
    yield pa.Table.from_pylist(list(map(_row, wanted)), schema)


def _row(lock: LockInfo) -> Row:
    return {
        "namespace": lock.database,
        "table": lock.table,
        "partition": lock.partition,
        "lock_id": lock.lock_id,
        "state": lock.state,
        "type": lock.type,
        "user": lock.user,
        "host": lock.host,
        "agent": lock.agent,
        "acquired_at": _time(lock.acquired_at),
        "age_seconds": lock.age,
        "last_heartbeat_at": _time(lock.last_heartbeat),
        "silence_seconds": lock.silence,
        "transaction_id": lock.transaction_id or None,
        "waits_for": lock.blocked_by,
        "is_abandoned": is_abandoned(lock),
    }


def _time(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, timezone.utc)


LOCKS = SystemTable(COLUMNS, _read)
