"""Forgetting rows: planned, carried out, finished after a delay, and reported.

The table moves once, by an ordinary commit, from the history with the rows to the same history without them. Then the
old files wait for those who read them still, and go; a second commit takes the old metadata files out of the log.
"""

from __future__ import annotations

import datetime as dt
import logging
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace

from hms_iceberg.encryption.encrypted_tables import is_encrypted
from hms_iceberg.errors import InvalidInputError, UnsupportedError
from hms_iceberg.maintenance.erasure.erasure import Erasure
from hms_iceberg.maintenance.erasure.erasure_journal import ErasureIntent, ErasureJournal, open_erasures
from hms_iceberg.maintenance.erasure.erasure_plan import ErasurePlan, ErasureResult
from hms_iceberg.maintenance.erasure.erasure_report import check_key, digest_of, is_digest_of, signed
from hms_iceberg.maintenance.erasure.rewritten_history import OPEN_ERASURE
from hms_iceberg.rest_client.rest_metastore import RestMetastore
from hms_iceberg.spec.metadata.table_metadata import now_ms
from hms_iceberg.spec.table_properties import GC_ENABLED
from hms_iceberg.spec.values.datetimes import format_milliseconds
from hms_iceberg.table.table import Table
from hms_iceberg.transaction.workspace import refuse_previewed

logger = logging.getLogger(__name__)

DELAY = dt.timedelta(hours=24)
"""How long the old files stay, unless a caller says otherwise: for queries that began before."""


def forget(
    table: Table,
    where: str,
    *,
    dry_run: bool = True,
    after: dt.timedelta = DELAY,
    sign_key: bytes | None = None,
    give_up_backup: bool = False,
    case_sensitive: bool = True,
    reported: bool = False,
) -> ErasureResult:
    """Forgets rows: they go from every snapshot, branch and tag, and from all that describes them.

    Every snapshot keeps its id, its time, its order and its refs, and reads the same rows but those. Files with such
    rows are written anew without them, also where deletes hide them; deletes, manifests, manifest lists and metadata
    follow. Row ids and sequence numbers of other rows stay. Statistics of the snapshots that change go.

    Args:
        table: the table, which moves to its newest version.
        where: which rows, such as "user_id = 7". A name that no column has today means the newest one that had it.
        dry_run: only plan; the default.
        after: how long the old files stay for queries that began earlier; 0 for queries that may fail. Until
            `resume_forget` has deleted them, the rows can be read from them.
        sign_key: signs the report: a private Ed25519 key (PEM) or any secret of at least 16 bytes.
        give_up_backup: also deletes files that the original Hive table of a migration needs: there is no way back then.
        case_sensitive: how names of columns are matched.
        reported: whether the report is needed, as it is with `sign_key`: then only `resume_forget`, which returns it,
            deletes the old files. Without either the maintenance service may do so when they are due.

    Returns:
        the plan; what waits until when, or the report if nothing waits.

    Raises:
        UnknownColumnError, ExpressionParseError, TypeMismatchError: the predicate does not fit any schema of the table.
        InvalidInputError: every row matches, an erasure is open already, or `sign_key` cannot be used.
        UnsupportedError: other tables or a way back need the files, the table is another one's by `gc.enabled=false`,
            or its catalog is a REST server. Nothing was written.
        CommitFailedError, CommitStateUnknownError: see `TableTransaction.commit_transaction`; in the second case
            `resume_forget` finds out and goes on.
        CorruptFileError, StorageError: something of the table cannot be read, so that nothing can be proven.
    """
    if sign_key is not None:
        check_key(sign_key)
    name = ".".join(table.identifier)
    table.refresh()
    _refuse(table, name)
    work = Erasure(table, where, case_sensitive, give_up_backup)
    plan = work.plan(trusts_statistics=dry_run)
    plan = plan if plan.is_empty else replace(plan, needed_by=work.needed_by(plan.files))
    if dry_run:
        return ErasureResult(plan)
    intent = ErasureIntent(
        erasure_id=str(uuid.uuid4()),
        table=name,
        table_uuid=str(table.metadata.table_uuid),
        where=None if is_encrypted(table.properties) else where,
        digest=digest_of(where),
        case_sensitive=case_sensitive,
        begun_ms=now_ms(),
        delay_ms=max(0, after // dt.timedelta(milliseconds=1)),
        give_up_backup=give_up_backup,
        snapshots=len(table.metadata.snapshots),
        rows=plan.rows,
        is_reported=reported or sign_key is not None,
    )
    if plan.is_empty:
        report = work.report(intent, {"deleted": {}, "rewritten": {}}, work.proof())
        return ErasureResult(plan, report=report if sign_key is None else signed(report, sign_key))
    work.refuse(plan.needed_by)
    journal = ErasureJournal.begin(intent, table.metadata, table.storage)
    work.move(journal)
    journal.moved(now_ms() + intent.delay_ms)
    return _finished(work, journal, plan, sign_key)


def resume_forget(
    table: Table, *, where: str | None = None, sign_key: bytes | None = None, now: bool = False
) -> ErasureResult | None:
    """Goes on with the erasure of a table that is not finished: one that was killed, or whose files wait.

    Args:
        table: the table, which moves to its newest version.
        where: the predicate, which has to be given again for an encrypted table only: its journal does not hold it.
        sign_key: signs the report, as of `forget`.
        now: deletes the old files although they are not due yet.

    Returns:
        how far it is; None if no erasure is open.

    Raises:
        InvalidInputError: the predicate is needed, or is another one than the erasure's.
        UnsupportedError, CommitFailedError, CommitStateUnknownError, CorruptFileError, StorageError: as of `forget`.
    """
    if sign_key is not None:
        check_key(sign_key)
    table.refresh()
    journals = open_erasures(table.metadata, table.metadata_location, table.storage)
    if not journals:
        return None
    journal = journals[0]
    intent = journal.intent
    where = intent.where if where is None else where
    if where is None or not is_digest_of(intent.digest, where):
        raise InvalidInputError(
            f"Cannot go on with the erasure of {intent.table}: its journal ({journal.location}) "
            f"{'does not hold the predicate' if where is None else 'is about another predicate'}. Give the predicate "
            "that it was begun with, letter by letter (--where)."
        )
    work = Erasure(table, where, intent.case_sensitive, intent.give_up_backup)
    plan = work.plan(trusts_statistics=False)
    if not plan.is_empty:  # it was killed before the table moved, or somebody wrote such rows since
        work.refuse(work.needed_by(plan.files))
        work.move(journal)
    if not plan.is_empty or journal.due_ms is None:
        journal.moved(now_ms() + intent.delay_ms)
    return _finished(work, journal, plan, sign_key, now)


@dataclass(frozen=True)
class DueErasure:
    """An erasure whose old files may go by now."""

    table: Table
    journal: ErasureJournal

    @classmethod
    def of(cls, table: Table, at_ms: int) -> DueErasure | None:
        """The erasure of a table that is due at a time, or that nobody noted to have moved the table; None if there is
        none."""
        if OPEN_ERASURE not in table.properties:
            return None
        for journal in open_erasures(table.metadata, table.metadata_location, table.storage):
            if (journal.due_ms or 0) <= at_ms:
                return cls(table, journal)
        return None

    def finish(self) -> tuple[int, Mapping[str, str]] | None:
        """Deletes the old files where nobody waits for the report: how many went, and what could not be deleted; None
        if they have to wait, since it was not known that the table has moved."""
        intent = self.journal.intent
        if intent.is_reported or intent.where is None:
            why = "its report is waited for" if intent.where is not None else "its journal does not hold the predicate"
            raise InvalidInputError(
                f"The old files of the erasure of {intent.table} are due, and {why}. Delete them with: "
                f"hms-iceberg forget {'.'.join(self.table.identifier)} --resume"
            )
        if self.journal.due_ms is None:
            self.journal.moved(now_ms() + intent.delay_ms)
            return None
        work = Erasure(self.table, intent.where, intent.case_sensitive, intent.give_up_backup)
        report, left = work.clean(self.journal)
        if not left:
            self.journal.end()
        return len(report["deleted"]), left


def _refuse(table: Table, name: str) -> None:
    metadata = table.metadata
    refuse_previewed(metadata, name)
    if isinstance(table.metastore, RestMetastore):
        raise UnsupportedError(
            f"Cannot forget rows of table {name}: a REST server takes no other manifest list for a snapshot that is "
            "there. Do it through the catalog behind the server."
        )
    if not GC_ENABLED.of(metadata.properties):
        raise UnsupportedError(
            f"Cannot forget rows of table {name}: its property gc.enabled is false, for its files may belong to "
            "others. Forget them there; set it to true if they do not."
        )
    for journal in open_erasures(metadata, table.metadata_location, table.storage):
        raise InvalidInputError(
            f"Cannot forget rows of table {name}: an erasure is open already ({journal.location}). Finish it first: "
            f"hms-iceberg forget {name} --resume"
        )


def _finished(
    work: Erasure,
    journal: ErasureJournal,
    plan: ErasurePlan,
    sign_key: bytes | None,
    now: bool = False,
) -> ErasureResult:
    """Deletes the old files if they are due, and reports."""
    due_ms = journal.due_ms or 0
    if due_ms > now_ms() and not now:
        due = dt.datetime.fromtimestamp(due_ms / 1000, dt.timezone.utc)
        logger.info("The old files of the erasure of %s go after %s", plan.table, format_milliseconds(due_ms))
        return ErasureResult(plan, journal.location, due)
    report, left = work.clean(journal)
    if left:
        return ErasureResult(plan, journal.location, left=left)
    report = report if sign_key is None else signed(report, sign_key)
    journal.end()
    return ErasureResult(plan, report=report, left={})
