"""The words of a filter, and errors that point at one."""

from __future__ import annotations

import re
from typing import NamedTuple

from hms_iceberg.errors import ExpressionParseError

_TOKEN = re.compile(
    r"""
    (?P<space>\s+)
  | (?P<string>'(?:[^']|'')*')
  | (?P<quoted>`(?:[^`]|``)*`|"(?:[^"]|"")*")
  | (?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?P<suffix>\w*))
  | (?P<name>[^\W\d][\w$]*)
  | (?P<operator><=>|<=|>=|<>|!=|==|[=<>(),.+\-])
    """,
    re.VERBOSE,
)
_SHOWN = 60  # characters of the filter on either side of an error
_SURROGATE = re.compile("[\ud800-\udfff]")


class Token(NamedTuple):
    """One token: its kind (the groups above, or "end"), its value without quotes, and where it starts and ends."""

    kind: str
    value: str
    start: int
    end: int
    suffix: str = ""

    @property
    def word(self) -> str:
        """The lower-case text of a name that is not quoted; empty for everything else."""
        return self.value.lower() if self.kind == "name" else ""


def tokenize(text: str) -> list[Token]:
    """The tokens of a filter string, white space left out, one of kind "end" last."""
    half = _SURROGATE.search(text)
    if half is not None:
        raise parse_error(text, half.start(), f"{half[0]!r} is half of a surrogate pair, which no text in UTF-8 holds")
    tokens: list[Token] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise _unreadable(text, position)
        kind = match.lastgroup or "space"
        if kind == "suffix":
            kind = "number"
        raw = match[0]
        if kind in ("string", "quoted"):
            raw = raw[1:-1].replace(raw[0] * 2, raw[0])
        if kind == "number" and match["suffix"]:
            raw = raw[: -len(match["suffix"])]
        if kind != "space":
            tokens.append(Token(kind, raw, position, match.end(), match["suffix"] or ""))
        position = match.end()
    tokens.append(Token("end", "", len(text), len(text)))
    return tokens


def _unreadable(text: str, position: int) -> ExpressionParseError:
    character = text[position]
    if character in "'`\"":
        doubled = f"; inside of quotes it is written twice: {character * 2}"
        return parse_error(text, position, f"the quote {character} is not closed{doubled}")
    hints = {
        "&": "; combine conditions with 'and'",
        "|": "; combine conditions with 'or'",
        "!": "; negate with 'not'",
        "*": "; arithmetic is not possible in a filter",
        "/": "; arithmetic is not possible in a filter",
        "%": "; arithmetic is not possible in a filter",
        ";": "; a filter is a single condition",
    }
    return parse_error(text, position, f"unexpected character {character!r}{hints.get(character, '')}")


def parse_error(text: str, position: int, problem: str) -> ExpressionParseError:
    """The error for a problem at a position (counted from 0) of a filter string, with a line that points at it."""
    first, last = max(0, position - _SHOWN), position + _SHOWN
    before = ("…" if first else "") + _one_line(text[first:position])
    after = _one_line(text[position:last]) + ("…" if last < len(text) else "")
    return ExpressionParseError(
        f"Cannot read the filter at position {position + 1}: {problem}\n  {before}{after}\n  {' ' * len(before)}^"
    )


def _one_line(text: str) -> str:
    return re.sub(r"\s", " ", _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text))
