"""Tables of HTML for notebooks, with their style inside, in the colours of the report in light and dark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from hms_iceberg.printable import printable_html

_STYLE = """<style>
.hms-iceberg table { border-collapse: collapse; margin: .25rem 0 .75rem; }
.hms-iceberg th, .hms-iceberg td { padding: .2rem .75rem .2rem 0; text-align: left; vertical-align: top; }
.hms-iceberg thead th { border-bottom: 1px solid #8884; }
.hms-iceberg tbody th { color: #5b6b7b; font-weight: normal; }
.hms-iceberg summary { cursor: pointer; color: #1f77b4; }
@media (prefers-color-scheme: dark) {
  .hms-iceberg tbody th { color: #9aa9b8; } .hms-iceberg summary { color: #6cb6ec; }
}
</style>"""


def framed(*parts: str) -> str:
    """Parts of HTML as a notebook shows them."""
    return f'<div class="hms-iceberg">{_STYLE}{"".join(parts)}</div>'


def heading(text: str) -> str:
    return f"<b>{printable_html(text)}</b>"


def folded(heading: str, shown: str, is_open: bool = False) -> str:
    """HTML that is shown when its heading is clicked."""
    return f"<details{' open' if is_open else ''}><summary>{printable_html(heading)}</summary>{shown}</details>"


def pairs_table(pairs: Iterable[tuple[str, Any]]) -> str:
    """Names and their values below one another."""
    lines = "".join(
        f"<tr><th>{printable_html(name)}</th><td>{printable_html(value)}</td></tr>" for name, value in pairs
    )
    return f"<table>{lines}</table>"


def rows_table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Rows below the names of their columns."""
    head = "".join(f"<th>{printable_html(name)}</th>" for name in columns)
    lines = "".join(f"<tr>{''.join(f'<td>{printable_html(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>"
