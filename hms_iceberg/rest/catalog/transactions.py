"""The endpoint of commits to several tables at once."""

from __future__ import annotations

from hms_iceberg.errors import CommitConflictError, InvalidInputError, UnsupportedError
from hms_iceberg.metastore import Identifier
from hms_iceberg.rest.access import Right
from hms_iceberg.rest.catalog.bodies import Commit, CommitTransaction
from hms_iceberg.rest.catalog.commits import change_table, transaction_with
from hms_iceberg.rest.catalog.loading import keep_json
from hms_iceberg.rest.errors import RefusedError
from hms_iceberg.rest.served_catalog import ServedCatalog
from hms_iceberg.rest.serving.calls import NOTHING, Answer, Call, exact_identifier, one_level
from hms_iceberg.spec.changes.requirements import read_table_requirements
from hms_iceberg.spec.changes.table_changes import added_snapshots, read_table_changes
from hms_iceberg.transaction.several_tables import SeveralTables, check_different
from hms_iceberg.transaction.transaction import Transaction
from hms_iceberg.updates.conditional_changes import RequestedChanges


def commit_transaction(served: ServedCatalog, call: Call) -> Answer:
    """Changes several tables, all or none; a concurrent commit is no conflict while the requirements hold."""
    asked = [(_identifier(each), each) for each in call.read(CommitTransaction).table_changes]
    if not asked:
        raise InvalidInputError("The transaction has no changes: `table-changes` is empty.")
    for identifier, _ in asked:
        served.check(call, Right.WRITE, *identifier)
    if len(asked) == 1:
        ((identifier, changes),) = asked
        change_table(served, call, identifier, changes)
        return NOTHING
    transactions: list[Transaction] = []
    try:
        for identifier, changes in asked:
            transactions.append(_transaction(served, call, identifier, changes))
            check_different(transactions)
        commit = SeveralTables(transactions, served.catalog.metastore)
    except (RefusedError, InvalidInputError, CommitConflictError):
        for each in transactions:
            each.abandon()
        raise
    made = commit.commit()
    for each in transactions:
        version = made[each.identifier]
        keep_json(served, version, each.workspace.last_version)
        served.remember(each.identifier, version)
    return NOTHING


def _identifier(asked: Commit) -> Identifier:
    if asked.identifier is None:
        raise InvalidInputError("Each of `table-changes` needs an `identifier`: the name of its table.")
    return exact_identifier(one_level(asked.identifier.namespace), asked.identifier.name)


def _transaction(served: ServedCatalog, call: Call, asked: Identifier, changes: Commit) -> Transaction:
    creates, requirements = read_table_requirements(changes.requirements or [])
    if creates:
        raise UnsupportedError(
            f"A transaction on several tables cannot create one of them ({'.'.join(asked)}). Create it first."
        )
    update = RequestedChanges(
        requirements, read_table_changes(changes.updates or []), added_snapshots(changes.updates or [])
    )
    identifier, start = served.writable(asked)
    return transaction_with(served, call, identifier, start, update)
