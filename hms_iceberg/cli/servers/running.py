"""One statement, run and told."""

from __future__ import annotations

import time

import click

from hms_iceberg.cli.servers.told_rows import tell_rows
from hms_iceberg.spark.shell import SqlSession


def run_statement(session: SqlSession, statement: str, output: str, timing: bool, limit: int | None = None) -> None:
    """Runs a statement and tells its rows.

    Args:
        session: where it runs.
        statement: without the semicolon.
        output: `text`, `json` or `csv`.
        timing: whether the time is told, on standard error.
        limit: how many rows are told at most.

    Raises:
        SqlFailedError: it failed; its message is Spark's.
    """
    started = time.monotonic()
    wanted = None if limit is None else limit + 1  # one more tells that there are more
    count = tell_rows(session.run(statement, wanted, streamed=output != "text"), output, limit)
    if timing:
        rows = "" if count is None else f"{count} row{'s' * (count != 1)}, "
        click.echo(f"{rows}{time.monotonic() - started:.2f} s", err=True)
