"""Pictures of tables: what there is and how it came, on a terminal, as one HTML page, and in notebooks."""

from __future__ import annotations

from hms_iceberg.report.gather import portrait_of
from hms_iceberg.report.page import html_page
from hms_iceberg.report.portrait import Failure, TablePortrait
from hms_iceberg.report.terminal import print_portrait

__all__ = ["Failure", "TablePortrait", "html_page", "portrait_of", "print_portrait"]
