"""The rows of a statement as text, JSON or CSV."""

from __future__ import annotations

import csv
import datetime as dt
import json
import math
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import islice
from typing import Any

import click

from hms_iceberg.cli.output import Output
from hms_iceberg.spark.shell import Answer

_NULL = "NULL"
_NO_NUMBERS = {math.inf: "Infinity", -math.inf: "-Infinity"}


def tell_rows(answer: Answer, form: str, limit: int | None = None) -> int | None:
    """Tells the rows of a statement on standard output.

    Args:
        answer: the rows.
        form: `text` (a table on a terminal, else lines with tabs), `json` (an object a line) or `csv`.
        limit: how many are told at most.

    Returns:
        How many were told; None of a statement that has no columns, of which nothing is told.
    """
    if not answer.columns:
        return None
    rows: Iterator[Sequence[Any]] = ([plain(value) for value in row] for row in answer.rows)
    told = islice(rows, limit)
    if form == "json":
        count = _tell_json(answer.columns, told)
    elif form == "csv":
        count = _tell_csv(answer.columns, told)
    else:
        shown = list(told)
        Output().rows(answer.columns, shown, _NULL)
        count = len(shown)
    if limit is not None and next(rows, None) is not None:
        click.echo(f"Only the first {limit} rows are shown.", err=True)
    return count


def _tell_json(columns: Sequence[str], rows: Iterator[Sequence[Any]]) -> int:
    names = _distinct(columns)
    count = 0
    for row in rows:
        click.echo(json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False))
        count += 1
    return count


def _tell_csv(columns: Sequence[str], rows: Iterator[Sequence[Any]]) -> int:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(columns)
    count = 0
    for row in rows:
        writer.writerow(
            json.dumps(each, ensure_ascii=False) if isinstance(each, (dict, list)) else each for each in row
        )
        count += 1
    return count


def _distinct(columns: Sequence[str]) -> list[str]:
    """An object has each name once: the second `a` is `a_2`."""
    seen: Counter[str] = Counter()
    names: list[str] = []
    for column in columns:
        name = column
        while name in names:
            seen[column] += 1
            name = f"{column}_{seen[column] + 1}"
        names.append(name)
    return names


def plain(value: Any) -> Any:
    """A value of a row as what JSON has."""
    if isinstance(value, float) and not math.isfinite(value):
        return _NO_NUMBERS.get(value, "NaN")
    if isinstance(value, (dt.datetime, dt.date, dt.time)):
        return value.isoformat(" ") if isinstance(value, dt.datetime) else value.isoformat()
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).hex()
    fields = getattr(value, "__fields__", None)  # of a struct
    if fields is not None:
        return {name: plain(each) for name, each in zip(fields, value, strict=True)}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, dict):
        return {str(plain(key)): plain(each) for key, each in value.items()}
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)
