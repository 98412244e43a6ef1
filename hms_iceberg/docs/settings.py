"""The page of table properties, made from the table of them that the package itself reads."""

from __future__ import annotations

from itertools import groupby

from hms_iceberg.spec.table_properties import settings_rows


def settings_page() -> str:
    """Markdown: a table for each reader of properties, with name, values, default and meaning."""
    parts = [
        "# Table properties",
        "What `set_properties`, `create table … tblproperties` and `hms-iceberg properties` take, with its default.",
        "Properties that are not listed are kept, and change nothing here. Catalog properties are in the guides on "
        "[catalog and metastore](../catalog/README.md) and [storage](../arrow/storage/README.md).",
    ]
    order = {each.reader: number for number, each in reversed(list(enumerate(settings_rows())))}
    rows = sorted(settings_rows(), key=lambda each: order[each.reader])
    for reader, listed in groupby(rows, key=lambda each: each.reader):
        lines = [
            f"| `{each.name}` | {', '.join(each.choices) or each.kind} | {each.default or '-'} | {_cell(each.about)} |"
            for each in listed
        ]
        parts.append(f"## {reader[:1].upper()}{reader[1:]}")
        parts.append("\n".join(["| property | values | default | meaning |", "|---|---|---|---|", *lines]))
    return "\n\n".join(parts) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
