"""Whether a metastore compares a parameter before it alters a table (HIVE-26882): asked once, by trying it.

A server that does not know the comparison ignores it, and would let a concurrent commit be overwritten. Version numbers
do not tell: the change was ported back to some releases and not to others. So a scratch row is altered, never a table
of the user.
"""

from __future__ import annotations

import hashlib
import logging
import threading
import time
import uuid
from pathlib import Path

from hms_iceberg.errors import (
    IcebergError,
    MetastoreAnswerLostError,
    MetastoreError,
    MetastoreUnavailableError,
    TableAlreadyExistsError,
)
from hms_iceberg.hms.commit.scratch_rows import PARAMETER, drop, drop_left_behind, new_name, scratch_row
from hms_iceberg.hms.connection.client import HmsClient
from hms_iceberg.hms.locking.host_lock import private_folder

logger = logging.getLogger(__name__)

EXPECTED_KEY = "expected_parameter_key"
EXPECTED_VALUE = "expected_parameter_value"
MODIFIED = "The table has been modified"


# How long a process believes what another one of this machine found out.
_NOTE_SECONDS = 86_400.0

_mutex = threading.Lock()
_known: dict[str, bool] = {}
_noted: dict[str, bool | None] = {}


def known_support(client: HmsClient) -> bool | None:
    """What an earlier probe found, by this process or one whose note `learn_support` read; None where there is none.

    Good for commits that hold the lock as well: a note may be older than the server's last change of version.
    """
    server = str(client.pool)
    return _known.get(server, _noted.get(server))


def learn_support(client: HmsClient, database: str) -> None:
    """Sees to it that `known_support` knows, if that can be found out; once for a server, and never an error.

    Args:
        client: the metastore.
        database: an existing namespace, in which the scratch row lives for the time of a probe.
    """
    server = str(client.pool)
    if server in _known or server in _noted:
        return
    noted = _read_note(server)
    if noted is None:
        try:
            supports_compare_and_swap(client, database)
        except IcebergError as error:
            logger.info("Metastore %s: commits hold the lock only. %s", server, error)
    _noted[server] = noted


def supports_compare_and_swap(client: HmsClient, database: str) -> bool:
    """Whether the metastore compares before it alters; probed at the first call for a server, then remembered.

    Args:
        client: the metastore.
        database: an existing namespace, in which the scratch row lives for the time of the probe.

    Raises:
        MetastoreError: the scratch row cannot be created there.
    """
    server = str(client.pool)
    with _mutex:
        if server not in _known:
            _known[server] = _probe_until_answered(client, database)
            logger.info("Metastore %s %s compare-and-swap", server, "supports" if _known[server] else "lacks")
            _write_note(server, _known[server])
        return _known[server]


def _note(server: str) -> Path:
    return private_folder() / f"compares-{hashlib.sha256(server.encode()).hexdigest()[:32]}"


def _read_note(server: str) -> bool | None:
    """What a process of this user on this machine found lately."""
    try:
        note = _note(server)
        fresh = time.time() - note.stat().st_mtime < _NOTE_SECONDS
        return {"true": True, "false": False}.get(note.read_text(encoding="ascii")) if fresh else None
    except (OSError, ValueError, AttributeError):
        return None


def _write_note(server: str, supports: bool) -> None:
    try:
        note = _note(server)
        partial = note.with_suffix(f".{uuid.uuid4().hex}")
        partial.write_text(str(supports).lower(), encoding="ascii")
        partial.replace(note)
    except (OSError, AttributeError) as error:
        logger.debug("What metastore %s supports cannot be noted: %s", server, error)


def expectation(key: str, value: str) -> dict[str, str]:
    """The environment of an alter that is refused where the parameter has another value."""
    return {EXPECTED_KEY: key, EXPECTED_VALUE: value}


def _probe_until_answered(client: HmsClient, database: str) -> bool:
    """Probes again where an answer was lost, as each probe has a scratch row of its own: another address may answer."""
    for attempt in range(1, client.pool.settings.attempts + 1):
        try:
            return _probe(client, database)
        except MetastoreAnswerLostError as error:
            if attempt == client.pool.settings.attempts:
                raise MetastoreUnavailableError(
                    "The metastore was lost while it was asked whether it supports commits without locks, before "
                    f"anything was committed. {error}"
                ) from error
            logger.info("Asking again whether the metastore supports commits without locks: %s", error)
    raise AssertionError("unreachable")


def _probe(client: HmsClient, database: str) -> bool:
    name = new_name()
    try:
        client.create_table(scratch_row(database, name, "1"))
    except TableAlreadyExistsError:
        pass  # by us: nobody else draws this name, and a request may arrive twice
    except MetastoreUnavailableError:
        raise
    except IcebergError as error:
        raise MetastoreError(
            f"It cannot be found out whether the metastore supports commits without locks: the scratch view "
            f"{database}.{name} could not be created ({error}). Allow it, or commit with locks "
            "(engine.hive.lock-enabled=true)."
        ) from error
    try:
        supports = _refuses_wrong_value(client, database, name) and _accepts_right_value(client, database, name)
    finally:
        drop(client, database, name)
    drop_left_behind(client, database)
    return supports


def _refuses_wrong_value(client: HmsClient, database: str, name: str) -> bool:
    try:
        client.alter_table(database, name, scratch_row(database, name, "2"), expectation(PARAMETER, "0"))
    except MetastoreUnavailableError:
        raise
    except MetastoreError as error:
        if MODIFIED in str(error):
            return True
        raise
    return False


def _accepts_right_value(client: HmsClient, database: str, name: str) -> bool:
    """Whether a change with the right expectation is made: a first version on MySQL refuses them all (HIVE-28121)."""
    try:
        client.alter_table(database, name, scratch_row(database, name, "2"), expectation(PARAMETER, "1"))
    except MetastoreUnavailableError:
        raise
    except MetastoreError as error:
        if MODIFIED not in str(error):  # else the row says: a request that arrived twice was refused the second time
            raise
    return bool((client.get_table(database, name).parameters or {}).get(PARAMETER) == "2")
