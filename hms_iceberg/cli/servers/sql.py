"""`hms-iceberg sql`: statements on Iceberg and Hive tables, from the command line, a file or a prompt."""

from __future__ import annotations

import sys
from functools import partial
from typing import Any, TextIO

import click

from hms_iceberg.cli.output import output_form
from hms_iceberg.cli.servers.prompt import split_statements
from hms_iceberg.cli.servers.running import Interruptible, run_statement
from hms_iceberg.cli.servers.session_options import spark_on_catalog, spark_options
from hms_iceberg.spark.shell import SqlSession


@click.command()
@click.option("-e", "--execute", "texts", multiple=True, metavar="SQL", help="Run this, and end; may be repeated.")
@click.option("-f", "--file", "files", multiple=True, type=click.File(encoding="utf-8"), help="Run a file, and end.")
@click.option(
    "--output",
    type=click.Choice(["text", "json", "csv"]),
    callback=lambda ctx, param, value: output_form(ctx, param, value) or "text",
    help="How rows are told.  [default: text]",
)
@click.option("--timing", is_flag=True, help="Tell how long each statement took; at a prompt it is told anyway.")
@spark_options
def sql(texts: tuple[str, ...], files: tuple[TextIO, ...], output: str, timing: bool, **options: Any) -> None:
    """Run SQL: statements that are given, those of files or of a pipe, or what is typed at a prompt.

    Statements end with a semicolon. The first one that fails ends the command with exit code 1, but not at a prompt.
    The prompt has a history, and `help`. The tab key completes tables, columns, branches and tags. Ctrl-C ends the
    statement that runs. `exit` leaves. New databases are in the metastore's warehouse.

    Example: hms-iceberg sql -e "select count(*) from web.visits"
    """
    given = [*texts, *(file.read() for file in files)]
    interactive = not given and sys.stdin.isatty()
    if not given and not interactive:
        given = [sys.stdin.read()]
    with spark_on_catalog("hms-iceberg sql", quiet=True, **options) as spark:
        session = SqlSession(spark)
        if interactive:
            from hms_iceberg.cli.servers.prompt import Prompt

            Prompt(session, output).run()
            return
        interruptible = Interruptible(session)
        for text in given:
            whole, rest = split_statements(text)
            for statement in (*whole, rest):
                if statement:
                    interruptible.run(partial(run_statement, session, statement, output, timing))
