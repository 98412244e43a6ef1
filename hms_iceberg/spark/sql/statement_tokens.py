"""Text of a SQL statement cut into tokens, and errors that point at them.

Statements follow Spark's lexer: comments, backslashes in strings, double quotes for strings. Filter strings do not
(`hms_iceberg.expressions.text.functions`), and refuse every other character at once. So each has its own tokens.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from hms_iceberg.errors import SqlParseError

_TOKEN = re.compile(
    r"""
    (?P<space>\s+ | --(?:\\\n|[^\r\n])*)
  | (?P<comment>/\*(?!\+))
  | (?P<quoted>`(?:[^`]|``)*`)
  | (?P<string>'(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*")
  | (?P<number>\d+L?(?!\w))
  | (?P<name>\w+)
  | (?P<symbol>.)
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_COMMENT_EDGE = re.compile(r"/\*|\*/")


class StatementToken(NamedTuple):
    """One token: its kind ("name", "quoted", "string", "number", "symbol" or "end"), its value, and its place. The
    value of a quoted name is without quotes, that of a number without the suffix L."""

    kind: str
    value: str
    start: int
    end: int

    @property
    def word(self) -> str:
        """A name in upper case, which may be a key word, or a symbol; empty for all else."""
        if self.kind == "name":
            return self.value.upper()
        return self.value if self.kind == "symbol" else ""


def tokenize(text: str) -> list[StatementToken]:
    """The tokens of a statement without white space and (nested) comments, one of kind "end" last; characters without a
    meaning are tokens too, for callers that look at the first few only."""
    tokens: list[StatementToken] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        assert match is not None  # any character is at least a symbol
        kind, end = match.lastgroup or "space", match.end()
        if kind == "comment":
            end = _end_of_comment(text, position)
        elif kind != "space":
            tokens.append(StatementToken(kind, _value(kind, match[0]), position, end))
        position = end
    tokens.append(StatementToken("end", "", len(text), len(text)))
    return tokens


def _end_of_comment(text: str, position: int) -> int:
    depth = 0
    for edge in _COMMENT_EDGE.finditer(text, position):
        depth += 1 if edge[0] == "/*" else -1
        if depth == 0:
            return edge.end()
    return len(text)


def _value(kind: str, raw: str) -> str:
    if kind == "quoted":
        return raw[1:-1].replace("``", "`")
    return raw.rstrip("lL") if kind == "number" else raw


def parse_error(text: str, token: StatementToken, problem: str) -> SqlParseError:
    """The error for a problem with a token, with a line that points at it."""
    line_start = text.rfind("\n", 0, token.start) + 1
    line_end = text.find("\n", token.start)
    line = text[line_start : len(text) if line_end < 0 else line_end]
    column = token.start - line_start
    number = text.count("\n", 0, token.start) + 1
    pointer = re.sub(r"[^\t]", " ", line[:column]) + "^"
    message = f"Cannot read the statement at line {number}, position {column + 1}: {problem}\n  {line}\n  {pointer}"
    return SqlParseError(message, problem, text[token.start : token.end], number, column + 1)
