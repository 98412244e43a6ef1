"""Is the metastore, or the REST server, reachable and in order?"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import urlsplit

from hms_iceberg.errors import ConfigurationError, IcebergError, MetastoreError
from hms_iceberg.hms.connection.property_reader import PropertyReader
from hms_iceberg.hms.connection.reachability import check_reach
from hms_iceberg.hms.hive_metastore import HiveMetastore
from hms_iceberg.hms.locking.lock_admin import is_abandoned, list_locks
from hms_iceberg.hms.locking.lock_settings import LockSettings
from hms_iceberg.hms.rows.transaction_marks import FINISHED_BY, Mark
from hms_iceberg.hms.rows.unchanged_rows import TRUST_NOTIFICATIONS
from hms_iceberg.maintenance.doctor.diagnosis import Diagnosis, bad, doubtful, good
from hms_iceberg.maintenance.erasure.rewritten_history import OPEN_ERASURE
from hms_iceberg.maintenance.expire_with_files import cost_of_snapshots
from hms_iceberg.metastore import TableRow
from hms_iceberg.rest_client.rest_metastore import RestMetastore

_SLOW = 1.0
_CLOCK = 5.0
_COLUMNS = "hive.metastore.disallow.incompatible.col.type.changes"
_TIMEOUT = "hive.txn.timeout"
_TEST = "hive.in.test"


def examine_metastore(metastore: HiveMetastore, properties: Mapping[str, str]) -> Iterator[Diagnosis]:
    """Takes a lock on a name that no table has, and asks questions; makes no table, and errors become diagnoses."""
    address = str(metastore.client.pool)
    try:
        check_reach(properties)
        began = time.monotonic()
        databases = metastore.list_namespaces()
    except IcebergError as error:
        yield bad("metastore", f"{address} does not answer", str(error))
        return
    seconds = time.monotonic() - began
    said = f"{address} answers in {1000 * seconds:.0f} ms, with {len(databases)} namespaces"
    yield (
        good("metastore", said)
        if seconds < _SLOW
        else doubtful("metastore", said, "Look at the load of the server and of its database.")
    )
    yield _release(metastore)
    yield from _locks(metastore, properties)
    yield from _settings(metastore, properties)
    try:
        rows = list(metastore.table_rows.rows())
        yield from examine_snapshots(rows)
        yield from examine_transactions(rows)
        yield from examine_erasures(rows)
    except IcebergError as error:
        yield doubtful("tables", "not all of them are told", str(error))


def examine_snapshots(rows: Iterable[TableRow]) -> Iterator[Diagnosis]:
    """Names the tables that have so many snapshots that commits take long."""
    for row in rows:
        told = row.properties.get("snapshot-count", "")
        cost = cost_of_snapshots(int(told)) if row.is_iceberg and told.isdigit() else None
        if cost is not None:
            yield doubtful(f"table {row}", cost, f"Keep fewer: hms-iceberg expire-snapshots {row}")


def examine_transactions(rows: Iterable[TableRow]) -> Iterator[Diagnosis]:
    """Names the tables that a transaction on several tables has moved and not finished."""
    for row in rows:
        mark = Mark.of(row.properties) if row.is_iceberg else None
        if mark is not None and mark.unfinished is not None:
            yield doubtful(f"table {row}", mark.unfinished, FINISHED_BY)


def examine_erasures(rows: Iterable[TableRow]) -> Iterator[Diagnosis]:
    """Names the tables with an erasure whose old files are not all gone."""
    for row in rows:
        if row.is_iceberg and OPEN_ERASURE in row.properties:
            told = "rows were forgotten, and the old files are still there"
            yield doubtful(f"table {row}", told, f"When they are due, delete them: hms-iceberg forget {row} --resume")


def _release(metastore: HiveMetastore) -> Diagnosis:
    try:
        version = metastore.client.version()
        compares = metastore.capability.compares_under_a_lock()
    except IcebergError as error:
        return doubtful("release", "it does not tell its version", str(error))
    release = "Hive 2 or 3" if version == "3.0" else f"Hive {version}"
    how = "it compares before it changes a row (HIVE-26882)" if compares else "commits rely on its locks alone"
    return good("release", f"{release}; {how}")


# ------------------------------------------------------------------------------------------------------ locks


def _locks(metastore: HiveMetastore, properties: Mapping[str, str]) -> Iterator[Diagnosis]:
    name = f"hms_iceberg_doctor_{uuid.uuid4().hex[:12]}"
    began = time.monotonic()
    try:
        with metastore.lease(("default", name), {}) as lease:
            lease.acquire()
            seconds, now = time.monotonic() - began, time.time()
            own = list_locks(metastore.client, "default", name)
    except IcebergError as error:
        yield bad("locks", "none can be taken: no commit will succeed", str(error))
        return
    yield good(
        "locks", f"taken in {1000 * seconds:.0f} ms" if own else "not used by commits (engine.hive.lock-enabled)"
    )
    for lock in own:
        if lock.acquired_at is not None:
            yield _clock(lock.acquired_at - now)
    yield from _left_locks(metastore)


def _clock(ahead: float) -> Diagnosis:
    if abs(ahead) < _CLOCK:
        return good("metastore's clock", "that of this machine")
    order = "ahead of" if ahead > 0 else "behind"
    remedy = "Set both clocks by NTP: ages of locks and of snapshots are wrong."
    return doubtful("metastore's clock", f"{abs(ahead):.0f} s {order} this machine's", remedy)


def _left_locks(metastore: HiveMetastore) -> Iterator[Diagnosis]:
    try:
        locks = list_locks(metastore.client)
    except MetastoreError as error:
        yield doubtful("left locks", "the locks cannot be listed", str(error))
        return
    left = [lock for lock in locks if is_abandoned(lock)]
    for lock in left:
        yield doubtful("left locks", f"{lock}: its holder is dead", f"hms-iceberg locks release {lock.lock_id}")
    if not left:
        yield good("left locks", f"none; {len(locks)} in use")


# --------------------------------------------------------------------------------------------------- settings


def _settings(metastore: HiveMetastore, properties: Mapping[str, str]) -> Iterator[Diagnosis]:
    columns = _setting(metastore, _COLUMNS)
    if columns == "true":
        said = f"{_COLUMNS} is on: commits that drop or reorder columns are refused"
        yield bad("settings", said, _line(_COLUMNS, "false"))
    if _setting(metastore, _TEST) == "true":
        yield bad("settings", f"{_TEST} is on: locks are refused", _line(_TEST, "false"))
    timeout, beat = _setting(metastore, _TIMEOUT), LockSettings.from_properties(properties).heartbeat_interval
    seconds = _seconds(timeout)
    if seconds is not None and seconds <= beat:
        said = f"{_TIMEOUT} is {timeout}, and commits give a sign of life every {beat:g} s: their locks are lost"
        remedy = f"iceberg.hive.lock-heartbeat-interval-ms={int(seconds * 1000 / 3)} (in the catalog's properties)"
        yield bad("settings", said, remedy)
    try:
        metastore.check_settings()
    except ConfigurationError as error:
        yield bad("settings", f"{TRUST_NOTIFICATIONS} is set, and no table can be loaded", str(error))
    if columns != "true":
        yield good("settings", f"{_COLUMNS}={columns or 'unknown'}, {_TIMEOUT}={timeout or 'unknown'}")


def _setting(metastore: HiveMetastore, name: str) -> str | None:
    """A setting of the server; None if it does not tell."""
    try:
        return metastore.client.config_value(name, "").strip().lower() or None
    except MetastoreError:
        return None


def _seconds(text: str | None) -> float | None:
    try:
        return None if text is None else PropertyReader({_TIMEOUT: text}).seconds(_TIMEOUT, 0.0)
    except ConfigurationError:
        return None


def _line(name: str, value: str) -> str:
    return f"<property><name>{name}</name><value>{value}</value></property> (in the metastore's hive-site.xml)"


_SLOW_SECONDS = 2.0
_LOCAL = ("127.0.0.1", "::1", "localhost")
# What this package asks of a server; those without some of these have no views, or no purge.
_WANTED = (
    "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}",
    "POST /v1/{prefix}/namespaces/{namespace}/register",
    "POST /v1/{prefix}/tables/rename",
    "GET /v1/{prefix}/namespaces/{namespace}/views",
)


def examine_rest_catalog(metastore: RestMetastore) -> Iterator[Diagnosis]:
    """Checks a REST server: does it answer, how fast, what can it do, is the connection encrypted?"""
    channel, started = metastore.channel, time.monotonic()
    try:
        names = metastore.list_namespaces()
    except IcebergError as error:
        yield bad("metastore", f"the REST catalog at {channel} does not answer: {error}", f"curl {channel}/v1/config")
        return
    seconds = time.monotonic() - started
    said = f"the REST catalog at {channel} answers in {1000 * seconds:.0f} ms, and has {len(names)} namespaces"
    if seconds < _SLOW_SECONDS:
        yield good("metastore", said)
    else:
        yield doubtful("metastore", said, "Give the server more --workers, or look at its metastore.")
    missing = [each for each in _WANTED if channel.endpoints and each not in channel.endpoints]
    if missing:
        yield doubtful(
            "endpoints", f"the server lacks {', '.join(missing)}", "What needs these fails; ask who runs it."
        )
    address = urlsplit(str(channel))
    is_open = address.scheme == "http" and address.hostname not in _LOCAL
    if is_open and channel.has_login:
        remedy = "Have it serve TLS: hms-iceberg rest --tls-certificate … --tls-key …"
        yield bad("TLS", "the login goes over the network in plain text", remedy)
    elif is_open:
        yield doubtful(
            "login", "whoever reaches the server may do everything", "hms-iceberg rest --tokens … --policy …"
        )
