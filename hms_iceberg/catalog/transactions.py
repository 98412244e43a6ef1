"""A transaction on several tables of one catalog."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType

from hms_iceberg.errors import InvalidInputError
from hms_iceberg.metastore import CatalogMetastore, Identifier, table_identifier
from hms_iceberg.table import Table
from hms_iceberg.table.table import TableTransaction
from hms_iceberg.transaction.several_tables import SeveralTables, check_different, several_of
from hms_iceberg.transaction.transaction import Transaction


class CatalogTransaction:
    """Collects changes of several tables. As a context manager it commits all at the end, and on an error gives up.

    >>> with catalog.transaction() as transaction:
    ...     accounts, entries = transaction.table("bank.accounts"), transaction.table("bank.entries")
    ...     accounts.update({"balance": 90}, "id = 1")
    ...     entries.append(rows)
    """

    def __init__(self, name: str, metastore: CatalogMetastore, load: Callable[[Identifier], Table]) -> None:
        """Begins nothing yet; refuses a catalog that cannot commit to several tables. `load` loads one of them."""
        several_of(metastore)
        self._name = name
        self._metastore = metastore
        self._load = load
        self._joined: dict[Identifier, JoinedTransaction] = {}
        self._is_finished = False

    def __enter__(self) -> CatalogTransaction:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.commit_transaction()
        else:
            self.abandon()

    def table(self, identifier: str | Identifier | Table) -> JoinedTransaction:
        """Adds a table to the transaction, at its newest version.

        Args:
            identifier: its name; or the table, to change it at the version that it is at.

        Returns:
            the changes of the table, with the methods of its own transactions. They are committed with those of the
            other tables. The same name gives the same object again.

        Raises:
            NoSuchTableError: no table of that name.
            InvalidInputError: the table is in the transaction already under another spelling or name, or is of another
                catalog; or the transaction has ended.
        """
        if self._is_finished:
            raise InvalidInputError("The transaction was committed or given up already. Begin a new one.")
        if isinstance(identifier, Table) and identifier.metastore is not self._metastore:
            raise InvalidInputError(
                f"Table {'.'.join(identifier.name())} is not of catalog {self._name!r}: one transaction has "
                "tables of one catalog."
            )
        name = identifier.name() if isinstance(identifier, Table) else table_identifier(identifier)
        known = self._joined.get(name)
        if known is not None and not isinstance(identifier, Table):
            return known
        table = identifier if isinstance(identifier, Table) else self._load(name)
        begun = table.begin_transaction()
        check_different([*(each.begun for each in self._joined.values()), begun])
        joined = JoinedTransaction(begun, table)
        self._joined[name] = joined
        return joined

    def commit_transaction(self) -> dict[Identifier, Table]:
        """Commits the changes of all tables: every reader of this package sees all of them or none.

        Returns:
            the tables at the versions of the commit, by their names.

        Raises:
            CommitConflictError: a concurrent change took away what a change relied on; no table was changed.
            CommitFailedError: others were first in every attempt that `commit.retry.*` allows; no table was changed.
            CommitStateUnknownError: nobody can tell yet. Readers see all tables alike, and whoever commits to one of
                them next finishes the transaction; or others have committed on top of a part of it.
            NoSuchTableError: a table was dropped or renamed meanwhile; no table was changed.
        """
        if self._is_finished:
            raise InvalidInputError("The transaction was committed or given up already. Begin a new one.")
        self._is_finished = True
        if not self._joined:
            return {}
        if len(self._joined) == 1:
            ((_, only),) = self._joined.items()
            return {only.begun.identifier: only.moved(only.begun.commit())}
        made = SeveralTables([each.begun for each in self._joined.values()], self._metastore).commit()
        return {each.begun.identifier: each.moved(made[each.begun.identifier]) for each in self._joined.values()}

    def abandon(self) -> None:
        """Gives all changes up and deletes the files written for them."""
        self._is_finished = True
        for each in self._joined.values():
            each.abandon()


class JoinedTransaction(TableTransaction):
    """The changes of one table in a transaction on several; a `with` block of it does not commit."""

    def __init__(self, begun: Transaction, table: Table) -> None:
        super().__init__(begun, table.moved)
        self.begun = begun
        self.moved = table.moved

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Does nothing: the whole transaction is committed, or given up."""

    def commit_transaction(self) -> Table:
        """Refuses: the table is committed together with the others."""
        raise InvalidInputError(
            f"Table {'.'.join(self.begun.identifier)} is in a transaction on several tables: commit that."
        )
