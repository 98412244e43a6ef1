"""Hive columns that hold less than the Iceberg columns that they became, and the values that do not fit them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from hms_iceberg.hms.rows.hive_rows import HiveTable
from hms_iceberg.migration.hive.source_columns import spark_schema_json
from hms_iceberg.table import Table

_BITS = {"tinyint": 8, "byte": 8, "smallint": 16, "short": 16}
_CHARS = re.compile(r"(?:var)?char\((\d+)\)")
_NESTED = re.compile(r"[<{\"].*\b(tinyint|smallint|byte|short|(?:var)?char)\b")
_CHAR_TYPE = "__CHAR_VARCHAR_TYPE_STRING"


@dataclass(frozen=True)
class Narrow:
    """The range of values of a column: `bits` of whole numbers, `length` of texts in characters; 0 for others."""

    type: str
    bits: int = 0
    length: int = 0

    def misfits(self, values: pa.Array) -> bool:
        """Whether one of these values does not fit."""
        if self.bits:
            found = pc.min_max(values).as_py()
            limit = 1 << (self.bits - 1)
            return found["min"] is not None and not -limit <= found["min"] <= found["max"] < limit
        longest = pc.max(pc.utf8_length(values)).as_py()
        return longest is not None and longest > self.length


def narrow_columns(table: HiveTable) -> tuple[dict[str, Narrow], list[str]]:
    """The narrow columns of a table by their names in lower case, and those columns in which such types are nested."""
    types = {column.name.lower(): column.type for column in (*table.columns, *table.partition_keys)}
    for column in (spark_schema_json(table.parameters) or {"fields": ()})["fields"]:
        kind = (column.get("metadata") or {}).get(_CHAR_TYPE) or column["type"]
        types[column["name"].lower()] = kind if isinstance(kind, str) else repr(kind).replace("'", '"')
    found: dict[str, Narrow] = {}
    nested = []
    for name, text in types.items():
        kind = text.strip().lower()
        chars = _CHARS.fullmatch(kind)
        if kind in _BITS:
            found[name] = Narrow(kind, bits=_BITS[kind])
        elif chars:
            found[name] = Narrow(kind, length=int(chars[1]))
        elif _NESTED.search(kind):
            nested.append(name)
    return found, nested


def misfitting(table: Table, files: frozenset[str], narrow: Mapping[str, Narrow]) -> Iterator[str]:
    """A sentence for each narrower Hive column that values of these files do not fit; the files are read for that."""
    columns = [field.name for field in table.schema().fields if field.name.lower() in narrow]
    if not columns or not files:
        return
    scan = table.scan().select(*columns)
    unfit: set[str] = set()
    with scan.read(task for task in scan.plan_files() if task.file.file_path in files) as batches:
        for batch in batches:
            unfit |= {name for name in set(columns) - unfit if narrow[name.lower()].misfits(batch.column(name))}
    for name in sorted(unfit):
        yield f"column {name!r} has values that Hive's {narrow[name.lower()].type} cannot hold."
