"""The prompt of `hms-iceberg sql`: statements split, history, completion of names, one statement after the other."""

from __future__ import annotations

import os
import re
import readline
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

from hms_iceberg.cli.output import say
from hms_iceberg.cli.servers.statement_output import Interruptible, run_statement
from hms_iceberg.errors import SqlFailedError
from hms_iceberg.spark.shell import SqlSession
from hms_iceberg.spark.sql.statement_tokens import tokenize

_QUOTES = ("'", '"', "`")


def split_statements(text: str) -> tuple[list[str], str]:
    """The complete statements of a text, without the semicolon that ends each, and the incomplete rest.

    Semicolons in strings, quoted names and comments end nothing. A quote that is not closed makes all behind it the
    rest.
    """
    statements: list[str] = []
    start = end = 0
    has_words = False
    for token in tokenize(text):
        if token.kind == "symbol" and token.value in _QUOTES:
            return statements, text[start:].strip()
        if token.kind == "symbol" and token.value == ";":
            if has_words:
                statements.append(text[start : token.start].strip())
            start, has_words = token.end, False
        elif token.kind != "end":
            has_words, end = True, token.end
    return statements, text[start:].strip() if has_words and end else ""


_FIRST, _NEXT = "iceberg> ", "      -> "
_ROWS_SHOWN = 1000
_LINES_KEPT = 5000
_LEAVE = ("exit", "quit", "\\q")
_HELP = ("help", "\\?", "\\h")
_HELP_TEXT = """\
Statements end with a semicolon and may take several lines. The tab key completes names, Ctrl-C stops a statement.

  \\l                the namespaces
  \\d                the tables of this namespace; \\d NAMESPACE. those of another
  \\d TABLE          columns and partitioning of a table; \\d+ TABLE also its location and properties
  \\s TABLE          the snapshots of an Iceberg table; \\r TABLE its branches and tags
  \\c NAMESPACE      make it the one of names without a dot
  \\q, exit          leave

Guides: hms-iceberg docs spark"""
_SHORT_FORMS = {
    "\\l": ("show namespaces", ""),
    "\\d": ("show tables", "describe {0}"),
    "\\d+": ("show tables", "describe extended {0}"),
    "\\s": ("", "select committed_at, snapshot_id, operation, summary['added-records'] as added from {0}.snapshots"),
    "\\r": ("", "select name, type, snapshot_id from {0}.refs"),
    "\\c": ("", "use {0}"),
}
_WORDS = """
    alter table|analyze|as|asc|between|branch|by|call|case|create|cross join|database|delete from|desc|describe|distinct
    drop|else|end|exists|explain|false|from|full join|group by|having|in|inner join|insert into|insert overwrite|is null
    join|left join|like|limit|matched|merge into|not|null|on|optimize|or|order by|partitioned by|refresh|rename|replace
    rollback|schema|select|set|show create table|show tables|show views|snapshot|system.|table|tag|tblproperties|then
    timestamp as of|true|truncate|union all|update|use|using iceberg|values|version as of|view|when|where|with
"""
KEYWORDS = tuple(word for line in _WORDS.split("\n") for word in line.strip().split("|") if word)


# What stands behind these words names a table, and a version of the table before it.
_TABLES = re.compile(r"\b(?:from|join|into|update|table)\s+([\w.`]+)", re.I)
_VERSION = re.compile(r"\bversion\s+as\s+of\s+'?[\w-]*$", re.I)


def statement_of(line: str) -> str | None:
    r"""The statement that a line such as `\d web.visits` is short for; None if it is no short form."""
    word, _, name = line.strip().rstrip(";").partition(" ")
    if not word.startswith("\\"):
        return None
    if word not in _SHORT_FORMS:
        raise SqlFailedError(f"There is no {word}. Type help for what there is.")
    alone, named = _SHORT_FORMS[word]
    name = name.strip()
    if name.endswith(".") and word in ("\\d", "\\d+"):
        return f"show tables in {name[:-1]}"
    if name and named:
        return named.format(name)
    if not alone:
        raise SqlFailedError(f"{word} wants a name. Type help for what there is.")
    return alone


class Names:
    """Completes key words, dotted names of catalogs, namespaces and tables, columns of the tables in the line, and
    branches and tags after `version as of`."""

    def __init__(self, session: SqlSession, interruptible: Interruptible) -> None:
        self._session = session
        self._interruptible = interruptible
        self._found: list[str] = []

    def complete(self, text: str, state: int) -> str | None:
        """The completion candidate number `state`, as readline asks for it."""
        if state == 0:
            line = readline.get_line_buffer()
            self._found = self._interruptible.run(lambda: self.candidates(text, line))
        return self._found[state] if state < len(self._found) else None

    def candidates(self, text: str, line: str = "") -> list[str]:
        """All completions of a text, in a line that may name tables."""
        tables = _TABLES.findall(line)
        if _VERSION.search(line):
            refs = [name for table in tables for name in self._session.names(f"select name from {table}.refs", "name")]
            return [name for name in refs if name.startswith(text)]
        before, dot, _ = text.rpartition(".")
        names = [f"{before}{dot}{name}" for name in self._names(before)]
        columns = [] if dot else [name for table in tables if table != text for name in self._columns(table)]
        words = () if dot else KEYWORDS
        found = (each for each in (*columns, *names, *words) if each.lower().startswith(text.lower()))
        return list(dict.fromkeys(found))

    def _columns(self, table: str) -> list[str]:
        return self._session.names(f"show columns in {table}", "col_name")

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
        """Reads until `exit`, or the end of the input."""
        history = _history_file()
        readline.set_completer(Names(self._session, self._interruptible).complete)
        readline.set_completer_delims(" \t\n,()=<>+-*/;'\"")
        readline.parse_and_bind("tab: complete")
        readline.set_history_length(_LINES_KEPT)
        with suppress(OSError):
            readline.read_history_file(history)
        place = self._session.metastore
        say(f"hms_iceberg {version('hms_iceberg')} on Spark {self._session.version}, metastore {place}")
        say("Statements end with a semicolon. Type help for help, exit to leave.")
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
                say()
                return
            except KeyboardInterrupt:
                say()
                rest = ""
                continue
            if not rest and line.strip().rstrip(";").lower() in _LEAVE:
                return
            if not rest and self._is_short(line):
                continue
            statements, rest = split_statements(f"{rest}\n{line}" if rest else line)
            for statement in statements:
                self._run(statement)

    def _is_short(self, line: str) -> bool:
        """Handles `help` and lines that begin with a backslash; False for any other line."""
        if line.strip().rstrip(";").lower() in _HELP:
            say(_HELP_TEXT)
            return True
        try:
            statement = statement_of(line)
        except SqlFailedError as error:
            say(f"Error: {error}", err=True)
            return True
        if statement is not None:
            self._run(statement)
        return statement is not None

    def _run(self, statement: str) -> None:
        try:
            self._interruptible.run(lambda: run_statement(self._session, statement, self._output, True, _ROWS_SHOWN))
        except SqlFailedError as error:
            say(f"Error: {error}", err=True)
        except KeyboardInterrupt:
            say("Stopped.", err=True)


def _history_file() -> Path:
    state = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    return Path(state) / "hms_iceberg" / "sql_history"
