"""A `with` block around the statements of a transaction on several tables."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)


@contextmanager
def transaction(spark: SparkSession, catalog: str | None = None, tables: Sequence[str] = ()) -> Iterator[None]:
    """Makes the statements of a block one commit: it is made at the end of the block, and on an error given up.

    >>> with transaction(spark):
    ...     spark.sql("update bank.accounts set balance = balance - 30 where id = 1")
    ...     spark.sql("insert into bank.entries values (1, -30)")

    Args:
        spark: an extended session, or one of a Spark Connect server whose sessions are. Every statement of this session
            is a part of the transaction, in whatever thread; other sessions see nothing of it before its end.
        catalog: the name of the catalog that has the tables; None for the current one.
        tables: names of tables that are read as they are now, all of them at one moment. Others are read as they are
            when the first statement names them.

    Raises:
        UnsupportedError, as an exception of PySpark: the catalog cannot commit to several tables at once.
        CommitConflictError, CommitFailedError, CommitStateUnknownError, as an exception of PySpark: see
            `Catalog.transaction`.
    """
    system = "system" if catalog is None else f"{_quoted(catalog)}.system"
    pinned = f"tables => array({', '.join(_text(each) for each in tables)})" if tables else ""
    spark.sql(f"call {system}.begin_transaction({pinned})")
    try:
        yield
    except BaseException:
        try:
            spark.sql(f"call {system}.rollback_transaction()")
        except Exception as error:  # the block's own error says more
            logger.warning("The transaction was not rolled back; nothing of it is in a table: %s", error)
        raise
    spark.sql(f"call {system}.commit_transaction()")


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
