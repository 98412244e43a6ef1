"""The prompt of `hms-iceberg sql`: history, completion of names, one statement after the other."""

from __future__ import annotations

import os
import readline
from contextlib import suppress
from pathlib import Path

import click

from hms_iceberg.cli.servers.running import Interruptible, run_statement
from hms_iceberg.cli.servers.split_statements import split_statements
from hms_iceberg.errors import SqlFailedError
from hms_iceberg.spark.shell import SqlSession

_FIRST, _NEXT = "iceberg> ", "      -> "
_ROWS_SHOWN = 1000
_LINES_KEPT = 5000
_LEAVE = ("exit", "quit")
_WORDS = """
    alter table|analyze|as|asc|between|branch|by|call|case|create|cross join|database|delete from|desc|describe|distinct
    drop|else|end|exists|explain|false|from|full join|group by|having|in|inner join|insert into|insert overwrite|is null
    join|left join|like|limit|matched|merge into|not|null|on|optimize|or|order by|partitioned by|refresh|rename|replace
    rollback|schema|select|set|show create table|show tables|show views|snapshot|system.|table|tag|tblproperties|then
    timestamp as of|true|truncate|union all|update|use|using iceberg|values|version as of|view|when|where|with
"""
KEYWORDS = tuple(word for line in _WORDS.split("\n") for word in line.strip().split("|") if word)


class Names:
    """Completes key words, and names of catalogs, namespaces and tables as far as dots go."""

    def __init__(self, session: SqlSession, interruptible: Interruptible) -> None:
        self._session = session
        self._interruptible = interruptible
        self._found: list[str] = []

    def complete(self, text: str, state: int) -> str | None:
        """What readline asks: the candidate of this number."""
        if state == 0:
            self._found = self._interruptible.run(lambda: self.candidates(text))
        return self._found[state] if state < len(self._found) else None

    def candidates(self, text: str) -> list[str]:
        """All that a text may become."""
        before, dot, _ = text.rpartition(".")
        names = [f"{before}{dot}{name}" for name in self._names(before)]
        words = () if dot else KEYWORDS
        return [each for each in (*names, *words) if each.lower().startswith(text.lower())]

    def _names(self, namespace: str) -> list[str]:
        if not namespace:
            catalogs = self._session.names("show catalogs", "catalog")
            return [
                *self._session.names("show tables", "tableName"),
                *self._session.names("show namespaces", "namespace"),
                *catalogs,
            ]
        if namespace in self._session.names("show catalogs", "catalog"):
            return self._session.names(f"show namespaces in {namespace}", "namespace")
        return self._session.names(f"show tables in {namespace}", "tableName")


class Prompt:
    """Reads statements from a terminal and runs them."""

    def __init__(self, session: SqlSession, output: str) -> None:
        self._session = session
        self._output = output
        self._interruptible = Interruptible(session)

    def run(self) -> None:
        """Until `exit`, or the end of the input."""
        history = _history_file()
        readline.set_completer(Names(self._session, self._interruptible).complete)
        readline.set_completer_delims(" \t\n,()=<>+-*/;'\"")
        readline.parse_and_bind("tab: complete")
        readline.set_history_length(_LINES_KEPT)
        with suppress(OSError):
            readline.read_history_file(history)
        try:
            self._read()
        finally:
            with suppress(OSError):
                history.parent.mkdir(parents=True, exist_ok=True)
                readline.write_history_file(history)

    def _read(self) -> None:
        rest = ""
        while True:
            try:
                line = input(_NEXT if rest else _FIRST)
            except EOFError:
                click.echo()
                return
            except KeyboardInterrupt:
                click.echo()
                rest = ""
                continue
            if not rest and line.strip().rstrip(";").lower() in _LEAVE:
                return
            statements, rest = split_statements(f"{rest}\n{line}" if rest else line)
            for statement in statements:
                self._run(statement)

    def _run(self, statement: str) -> None:
        try:
            self._interruptible.run(lambda: run_statement(self._session, statement, self._output, True, _ROWS_SHOWN))
        except SqlFailedError as error:
            click.echo(f"Error: {error}", err=True)
        except KeyboardInterrupt:
            click.echo("Stopped.", err=True)


def _history_file() -> Path:
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "hms_iceberg" / "sql_history"
