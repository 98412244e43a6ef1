"""Procedures that begin and end the transaction of a session on several tables."""

from __future__ import annotations

from collections.abc import Sequence

from hms_iceberg.errors import InvalidInputError
from hms_iceberg.metastore import Identifier
from hms_iceberg.spark.procedures.procedure import Call, Column, Parameter, Procedure, SessionTransactionChange
from hms_iceberg.spark.transactions import ChangedTable, SessionTransaction


def _begin(call: Call) -> SessionTransactionChange:
    if call.transaction is not None:
        raise InvalidInputError(
            f"Transaction {call.transaction.number} of this session is open already, on tables of the catalog "
            f"{call.transaction.name}. Commit it or roll it back first."
        )
    pinned = [call.named(each) for each in call.get("tables", ())]
    begun = call.transactions.begin(call.catalog, tuple(dict.fromkeys(pinned)))
    return SessionTransactionChange([(begun.number,)], open=begun.number)


def _commit(call: Call) -> SessionTransactionChange:
    changed = call.transactions.commit(_open(call))
    rows = [(_text(each), each.before, each.after) for each in changed]
    return SessionTransactionChange(rows, changed=_identifiers(changed))


def _rollback(call: Call) -> SessionTransactionChange:
    changed = call.transactions.roll_back(_open(call))
    return SessionTransactionChange([(_text(each),) for each in changed], changed=_identifiers(changed))


def _open(call: Call) -> SessionTransaction:
    if call.transaction is None:
        raise InvalidInputError("This session has no open transaction: call system.begin_transaction() first.")
    return call.transaction


def _text(table: ChangedTable) -> str:
    return ".".join(table.identifier)


def _identifiers(tables: Sequence[ChangedTable]) -> tuple[Identifier, ...]:
    return tuple(each.identifier for each in tables)


BEGIN_TRANSACTION = Procedure(
    "begin_transaction",
    (Parameter("tables", "array<string>"),),
    (Column("transaction_id", "bigint", nullable=False),),
    _begin,
    transaction="begins",
)
COMMIT_TRANSACTION = Procedure(
    "commit_transaction",
    (),
    (
        Column("table_name", "string", nullable=False),
        Column("previous_snapshot_id", "bigint"),
        Column("current_snapshot_id", "bigint"),
    ),
    _commit,
    transaction="ends",
)
ROLLBACK_TRANSACTION = Procedure(
    "rollback_transaction",
    (),
    (Column("table_name", "string", nullable=False),),
    _rollback,
    transaction="ends",
)
