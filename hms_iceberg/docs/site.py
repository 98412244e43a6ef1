"""The guides and the API reference as a static site."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

from hms_iceberg.docs.book import Page, book_page, pages
from hms_iceberg.errors import MissingDependencyError

# What users import, or reach from there; of others the names may change.
PUBLIC_MODULES = (
    "hms_iceberg",
    *("hms_iceberg.catalog", "hms_iceberg.catalog.catalog", "hms_iceberg.errors", "hms_iceberg.expressions"),
    *("hms_iceberg.hms.embedded", "hms_iceberg.maintenance", "hms_iceberg.maintenance.table_maintenance"),
    *("hms_iceberg.metastore", "hms_iceberg.migration", "hms_iceberg.partitioning", "hms_iceberg.reporters"),
    *("hms_iceberg.reports", "hms_iceberg.schema", "hms_iceberg.spark", "hms_iceberg.spark.session"),
    *("hms_iceberg.storage", "hms_iceberg.table", "hms_iceberg.table.changes.manage_snapshots"),
    *("hms_iceberg.table.changes.row_delta_builder", "hms_iceberg.table.changes.update_schema"),
    *("hms_iceberg.table.changes.update_spec", "hms_iceberg.table.inspect", "hms_iceberg.table.reading.scan"),
    *("hms_iceberg.table.table", "hms_iceberg.transforms", "hms_iceberg.types", "hms_iceberg.view"),
)
_LINK = re.compile(r'<a href="([^"#:]*)#([^"]+)">(.*?)</a>', re.S)
_API = Page("api", "API.md", "# API reference\n\n[Classes and functions](api/index.html), made of their docstrings.\n")


def write_site(folder: Path) -> None:
    """Writes the guides as `index.html`, and the API reference below `api/`, over those that are there."""
    try:
        from pdoc import pdoc, render
    except ImportError as error:
        raise MissingDependencyError("The API reference needs pdoc: pip install 'hms_iceberg[docs]'") from error
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "index.html").write_text(book_page([*pages(), _API]), encoding="utf-8")
    render.configure(docformat="google", show_source=False, search=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of annotations that pdoc cannot take apart
        pdoc(*PUBLIC_MODULES, output_directory=folder / "api")
    _only_live_links(folder / "api")


def _only_live_links(folder: Path) -> None:
    """Makes text of links to what pdoc does not show, such as classes whose names begin with an underscore."""
    pages = {path.resolve(): path.read_text(encoding="utf-8") for path in folder.rglob("*.html")}
    names = {path: set(re.findall(r'id="([^"]+)"', text)) for path, text in pages.items()}
    for path, text in pages.items():

        def live(found: re.Match[str], path: Path = path) -> str:
            target, anchor, shown = found.groups()
            known = names.get((path.parent / target).resolve() if target else path, set())
            return found[0] if anchor in known else shown

        path.write_text(_LINK.sub(live, text), encoding="utf-8")
