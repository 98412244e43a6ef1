"""Whether a metastore compares a parameter before it alters a table (HIVE-26882).

A server that does not know the comparison ignores it, and would let a concurrent commit be overwritten. The release of
most servers says whether they compare. Of the others, some releases have the change and some have not: there it is
tried out on a scratch view, never on a table of the user, and only by a commit that can make use of the answer.
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
from hms_iceberg.private_files import shared_folder

logger = logging.getLogger(__name__)

EXPECTED_KEY = "expected_parameter_key"
EXPECTED_VALUE = "expected_parameter_value"
MODIFIED = "The table has been modified"

_DEFAULT_DATABASE = "default"  # which every metastore has, and which is nobody's own
# The first release of Hive 4 that compares on every kind of database (HIVE-28121). Hive 2.3.10 does as well, but it
# tells the same version as all of Hive 2 and 3.
_COMPARES_FROM = (4, 0, 1)
# How long a process believes what another one of this machine found out.
_NOTE_SECONDS = 86_400.0


class Capability:
    """The capabilities of one metastore, each tested once, when it is first needed."""

    def __init__(self, client: HmsClient) -> None:
        self._client = client
        self._mutex = threading.Lock()
        self._proven: bool | None = None
        self._believed: bool | None = None

    def compares_for_certain(self, database: str) -> bool:
        """Whether commits may rely on the server's comparison alone; a scratch view goes into `database` if the
        default one is denied."""
        with self._mutex:
            if self._proven is None:
                self._proven = compares_by_release(self._client) or self._probe(database)
            return self._proven

    def compares_under_a_lock(self) -> bool:
        """Whether the server should also compare while a lock is held; False if that cannot be found out."""
        with self._mutex:
            if self._proven is not None:
                return self._proven
            if self._believed is None:
                self._believed = self._find_out()
            return self._believed

    def _find_out(self) -> bool:
        """Whether the server compares, by its release, by a recent note of this machine, or by a trial."""
        said = compares_by_release(self._client)
        if said is None:
            said = _read_note(str(self._client.pool))
        if said is not None:
            return said
        try:
            return self._probe()
        except IcebergError as error:
            logger.info("Metastore %s: commits hold the lock only. %s", self._client.pool, error)
            return False

    def _probe(self, database: str = _DEFAULT_DATABASE) -> bool:
        try:
            compares = _probe_until_answered(self._client, _DEFAULT_DATABASE)
        except MetastoreUnavailableError:
            raise
        except MetastoreError:
            if database == _DEFAULT_DATABASE:
                raise
            compares = _probe_until_answered(self._client, database)
        logger.info("Metastore %s %s compare-and-swap", self._client.pool, "supports" if compares else "lacks")
        _write_note(str(self._client.pool), compares)
        return compares


def compares_by_release(client: HmsClient) -> bool | None:
    """Whether a server compares, as far as its release says; None if it does not. No release of Hive 3 compares. Builds
    of vendors may, so that False is good for commits that hold the lock."""
    try:
        release = client.release()
    except MetastoreUnavailableError:
        raise
    except MetastoreError as error:
        logger.info("Metastore %s does not tell what it supports: %s", client.pool, error)
        return None
    if release == (3,):
        return False
    return True if release is not None and release >= _COMPARES_FROM else None


def _note(server: str) -> Path:
    return shared_folder() / f"compares-{hashlib.sha256(server.encode()).hexdigest()[:32]}"


def _read_note(server: str) -> bool | None:
    """Reads what a process of this user on this machine noted recently about the server; None without a note."""
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
    """The environment of an alter that is refused unless the parameter has the value."""
    return {EXPECTED_KEY: key, EXPECTED_VALUE: value}


def _probe_until_answered(client: HmsClient, database: str) -> bool:
    """Probes again if an answer was lost, as each probe has a scratch row of its own: another address may answer."""
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
