"""The matrix of ENGINES.md, cell by cell, so that a run can be held against it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import hms_iceberg.catalog
from tests.interop.engines.tables import Written

DOCUMENT = Path(hms_iceberg.catalog.__file__).with_name("ENGINES.md")
_LETTERS = {"Parquet": "P", "ORC": "O", "Avro": "A", "mixed": "all"}
_UUID = re.compile(r"\b([0-9a-f]{8})-([0-9a-f]{4})-([0-9a-f]{4})-([0-9a-f]{4})-([0-9a-f]{12})\b")


def documented(engine: str) -> dict[str, str]:
    """What the document says that an engine reads: a cell for each feature."""
    rows = [line.strip("| ").split("|") for line in DOCUMENT.read_text().splitlines() if line.startswith("|")]
    table = [[cell.strip() for cell in row] for row in rows]
    (head,) = (row for row in table if row[0] == "Feature")
    column = head.index(engine)
    start = table.index(head) + 2
    return {row[0]: row[column] for row in table[start:] if len(row) == len(head)}


def outcome(
    written: Written,
    columns: Sequence[str] | None,
    rows: Sequence[str] | None,
    expected: Sequence[str] | None = None,
) -> str:
    """`yes`, `no` where an engine refused, or `wrong` where it gave other rows than it should.

    Args:
        written: the table.
        columns: names of the columns that it gave, if it says them.
        rows: what it gave, or None if it refused.
        expected: what it should give, by default all rows.
    """
    if rows is None:
        return "no"
    # Engines show a UUID with dashes or as bytes.
    same = sorted(_UUID.sub(r"\1\2\3\4\5", row) for row in rows)
    wanted = sorted(_UUID.sub(r"\1\2\3\4\5", row) for row in (written.rows if expected is None else expected))
    return "yes" if same == wanted and (columns is None or tuple(columns) == written.columns) else "wrong"


def cells(outcomes: Mapping[tuple[str, str], str]) -> dict[str, str]:
    """The cells of one engine.

    Args:
        outcomes: feature and variant to outcome.
    """
    found: dict[str, str] = {}
    for feature in dict.fromkeys(feature for feature, _ in outcomes):
        letters = {
            result: " ".join(
                _LETTERS[variant] for (each, variant), given in outcomes.items() if each == feature and given == result
            )
            for result in ("yes", "wrong")
        }
        parts = [letters["yes"], f"wrong: {letters['wrong']}" if letters["wrong"] else ""]
        found[feature] = "; ".join(filter(None, parts)) or "–"
    return found
