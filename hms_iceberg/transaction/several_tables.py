"""One commit to several tables: the transactions of all of them become part of their tables, or none does."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

from tenacity import RetryCallState, Retrying

from hms_iceberg.errors import CommitStateUnknownError, InvalidInputError, UnsupportedError
from hms_iceberg.metastore import Identifier, MetadataVersion, Metastore, SeveralLease, SwapsSeveral, TableSwitch
from hms_iceberg.spec.table_properties import COMMIT_NUM_RETRIES
from hms_iceberg.transaction.commit_reports import AttemptedCommit
from hms_iceberg.transaction.intents import checksum_of
from hms_iceberg.transaction.retry import Approach, Eagerness, commit_policy
from hms_iceberg.transaction.transaction import Transaction
from hms_iceberg.transaction.workspace import delete_dropped_versions

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Part:
    """One table's version that is to follow `base`, as it is written already."""

    base: MetadataVersion
    new: MetadataVersion
    checksum: str
    used: frozenset[str]

    @property
    def is_change(self) -> bool:
        return self.new is not self.base


class SeveralTables:
    """The attempts of one commit to several tables. The first attempt trusts the versions at hand. After a conflict the
    next takes the locks of all tables first, and replays only the updates of those that have moved on."""

    def __init__(self, transactions: Sequence[Transaction], metastore: Metastore) -> None:
        """Begins nothing yet; the transactions are of different tables, and none creates its table."""
        self._transactions = sorted(transactions, key=lambda each: each.identifier)
        self._metastore = metastore
        self._parts: dict[Identifier, _Part] = {}
        self._attempts = 0
        most = max(self._transactions, key=lambda each: COMMIT_NUM_RETRIES.of(each.metadata.properties))
        self._properties = most.metadata.properties
        self._eagerness = Eagerness.of(Approach.TRUST, self._properties)

    @property
    def _name(self) -> str:
        return ", ".join(".".join(each.identifier) for each in self._transactions)

    def commit(self) -> dict[Identifier, MetadataVersion]:
        """Makes all updates part of their tables, and returns the tables' versions after that. Raises as
        `Transaction.commit`, for all tables alike."""
        metastore = several_of(self._metastore)
        for each in self._transactions:
            each.begin_part()
        tables = {each.identifier: each.lock_properties for each in self._transactions}
        made: dict[Identifier, MetadataVersion] = {}
        is_known = False
        try:
            with ExitStack() as stack:
                reports = [
                    stack.enter_context(AttemptedCommit(".".join(each.identifier), each.origin.start, self._count))
                    for each in self._transactions
                ]
                lease = stack.enter_context(metastore.lease_of_several(tables))
                for attempt in self._policy(lease):
                    with attempt:
                        self._attempts += 1
                        made = self._attempt(lease)
                for each, report in zip(self._transactions, reports, strict=True):
                    report.made(made[each.identifier])
            is_known = True
            return made
        except CommitStateUnknownError:
            raise
        except Exception:
            is_known = True
            raise
        finally:
            if is_known:
                self._clean_up(made)

    def _count(self) -> int:
        return self._attempts

    def _attempt(self, lease: SeveralLease) -> dict[Identifier, MetadataVersion]:
        approach = self._eagerness.approach(self._attempts)
        if approach is Approach.LOCK:
            lease.acquire()
        for each in self._transactions:
            is_trusted = approach is Approach.TRUST
            base = each.origin.start if is_trusted else each.load(partial(lease.load, each.identifier))
            self._prepare(each, base)
        switches = [
            TableSwitch(name, part.base, part.new, part.checksum)
            for name, part in self._parts.items()
            if part.is_change
        ]
        stored = lease.swap(switches) if switches else None
        return {name: (stored or {}).get(name, part.new) for name, part in self._parts.items()}

    def _prepare(self, transaction: Transaction, base: MetadataVersion | None) -> None:
        """Writes the version that is to follow `base`, unless an attempt before has done so."""
        known = self._parts.get(transaction.identifier)
        if known is not None and base is not None and known.base.identity == base.identity:
            return
        new, workspace = transaction.part_on(base), transaction.workspace
        assert base is not None
        written = workspace.last_version
        checksum = ""
        if new is not base and written is not None:
            is_plain = written[0] == new.location and not new.location.endswith(".gz.metadata.json")
            checksum = checksum_of(written[1] if is_plain else workspace.read(new.location))
        self._parts[transaction.identifier] = _Part(base, new, checksum, workspace.used())

    def _policy(self, lease: SeveralLease) -> Retrying:
        policy = commit_policy(
            self._properties,
            lambda attempt: lease.blocks_others or self._eagerness.retries_without_waiting(attempt),
        )
        policy.before_sleep = self._log_retry
        return policy

    def _log_retry(self, state: RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome else None
        logger.info("Commit to %s lost attempt %d, trying again: %s", self._name, state.attempt_number, error)

    def _clean_up(self, made: Mapping[Identifier, MetadataVersion]) -> None:
        """Deletes what was created and is not used, now that the outcome is certain."""
        for each in self._transactions:
            part, version = self._parts.get(each.identifier), made.get(each.identifier)
            if part is None or version is None:
                each.workspace.clean_up(None)
                continue
            is_elsewhere = version.location != part.new.location  # a server writes a metadata file of its own
            each.workspace.clean_up(part.used - {part.new.location} if is_elsewhere else part.used)
            if part.is_change:
                delete_dropped_versions(part.base, version, each.workspace)


def several_of(metastore: Metastore) -> SwapsSeveral:
    """The metastore, if it can commit to several tables at once; else an UnsupportedError."""
    if not isinstance(metastore, SwapsSeveral):
        raise UnsupportedError(
            f"A transaction on several tables needs a Hive Metastore, or a REST catalog that has it: tables in folders "
            f"have nothing that could make all of them move at once ({type(metastore).__name__}). Commit to one table "
            "after the other."
        )
    metastore.check_several()
    return metastore


def check_different(transactions: Sequence[Transaction]) -> None:
    """Refuses transactions two of which are of one table, by whatever name; the InvalidInputError names both."""
    known: dict[object, Identifier] = {}
    for each in transactions:
        start = each.origin.start
        assert start is not None
        for key in (tuple(name.lower() for name in each.identifier), start.location):
            other = known.setdefault(key, each.identifier)
            if other is not each.identifier:
                raise InvalidInputError(
                    f"One transaction cannot have table {'.'.join(each.identifier)} twice: it is in it as "
                    f"{'.'.join(other)} already. Make all changes of it in one place."
                )
