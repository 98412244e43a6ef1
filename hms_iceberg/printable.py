"""Names, paths and values as text without characters that a terminal or a browser obeys.

Whoever may name a table, a column or a file could otherwise move the cursor of those who look at it, colour what was
not written, or turn the order of letters round. What is shown goes through here; data stay as they are.
"""

from __future__ import annotations

import html
import json
import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime, timezone
from types import MappingProxyType
from typing import Any

# Control characters (C0, DEL, C1), what separates lines and paragraphs, what turns the direction of text or is
# invisible (but for the joiners of emoji and of some scripts), and halves of characters, which no terminal can be sent.
_OTHERS = (
    r"\x7f-\x9f\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f"
)
_UNSAFE = re.compile(rf"[\x00-\x1f{_OTHERS}]")
_UNSAFE_IN_LINES = re.compile(rf"[\x00-\x08\x0b-\x1f{_OTHERS}]")


def printable(text: str) -> str:
    """A text on one line, in which nothing is obeyed: such a character is shown as its escape, such as `\\x1b`."""
    return _UNSAFE.sub(_escape, text)


def printable_lines(text: str) -> str:
    """A text of several lines, in which nothing is obeyed but line breaks and tabs."""
    return _UNSAFE_IN_LINES.sub(_escape, text)


def printable_json(text: str) -> str:
    """JSON of the same value in which nothing is obeyed; only strings of JSON hold such characters."""
    return _UNSAFE.sub(_json_escape, text)


def printable_html(value: Any) -> str:
    return html.escape(printable_lines(str(value)))


def _escape(found: re.Match[str]) -> str:
    return ascii(found[0])[1:-1]


def _json_escape(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


class PrintableFormatter(logging.Formatter):
    """Lines of a log: a record is one line, whatever it names, and its traceback below it."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        return printable(super().formatMessage(record))

    def formatException(self, ei: Any) -> str:  # noqa: N802
        return printable_lines(super().formatException(ei))


_FIELDS: ContextVar[Mapping[str, str]] = ContextVar("log_fields", default=MappingProxyType({}))


@contextmanager
def log_fields(**fields: str) -> Iterator[None]:
    """Names what is at work, such as `run="4f2a"`, in every line of a JSON log that is written within the context."""
    token = _FIELDS.set({**_FIELDS.get(), **fields})
    try:
        yield
    finally:
        _FIELDS.reset(token)


class JsonFormatter(logging.Formatter):
    """Lines of a log that are objects of JSON: time (UTC), level, logger, message, `log_fields`, and a traceback."""

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, timezone.utc).isoformat(timespec="milliseconds")
        told = {"time": time, "level": record.levelname, "logger": record.name, "message": record.getMessage()}
        told.update(_FIELDS.get())
        if record.exc_info:
            told["traceback"] = self.formatException(record.exc_info)
        return printable_json(json.dumps(told, ensure_ascii=False, default=str))


def log_to_stderr(level: int | str, format: str, datefmt: str | None = None, form: str = "text") -> None:
    """Prints the log on standard error, unless the process has set one up already; `form` is `text` or `json`."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter() if form == "json" else PrintableFormatter(format, datefmt))
    logging.basicConfig(level=level, handlers=[handler])
