"""The names under which Hive finds its columns in Avro files.

Hive resolves the file's schema against one of its own by exact names: the table's `avro.schema.literal` or
`avro.schema.url`, else one made of its columns. Source: Apache Hive, `AvroSerdeUtils.determineSchemaOrThrowException`;
Apache Avro specification, "Schema Resolution".
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hms_iceberg.errors import UnsupportedError
from hms_iceberg.hms.rows.hive_rows import HiveTable

LITERAL, URL = "avro.schema.literal", "avro.schema.url"


@dataclass(frozen=True)
class AvroNames:
    """Facts about a table's columns from Hive's own Avro schema.

    Attributes:
        names: for each column, lower-case, the names that it may have in files; a column that is not in it has its own.
        defaults: columns that are not null if a file lacks them, with their value.
        exact: whether names in files must be equal in case too.
    """

    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    exact: bool = True

    def of(self, column: str) -> tuple[str, ...]:
        """The names that a column may have in files."""
        return self.names.get(column.lower(), (column.lower(),))


def declared_schema(table: HiveTable, key: str) -> str | None:
    """The value of `avro.schema.literal` or `avro.schema.url`; None if there is none.

    Args:
        table: the table.
        key: `LITERAL` or `URL`.
    """
    value = table.storage.serde_parameters.get(key) or table.parameters.get(key)
    return None if value is None or value.strip().lower() in ("", "none") else value


def avro_names(literal: str) -> AvroNames:
    """Reads column names from the text of an Avro schema.

    Raises:
        UnsupportedError: it is not the schema of a record.
    """
    try:
        schema = json.loads(literal)
        fields = schema["fields"]
        names = {each["name"].lower(): (each["name"], *each.get("aliases", ())) for each in fields}
        defaults = {each["name"].lower(): each["default"] for each in fields if each.get("default") is not None}
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise UnsupportedError(f"its {LITERAL} is not the schema of a record in Avro: {error}") from error
    return AvroNames(names, defaults)
