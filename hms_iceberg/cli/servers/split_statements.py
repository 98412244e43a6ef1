"""A text cut into statements."""

from __future__ import annotations

from hms_iceberg.spark.sql.statement_tokens import tokenize

_QUOTES = ("'", '"', "`")


def split_statements(text: str) -> tuple[list[str], str]:
    """The statements of a text that a semicolon ends, and what follows the last of them.

    Semicolons in strings, quoted names and comments end nothing. A quote that is not closed makes all behind it the
    rest.

    Returns:
        The statements without their semicolons, none of them empty; and the rest.
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
