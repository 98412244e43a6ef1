"""Catalogs: names, and the tables and views behind them."""

from __future__ import annotations

from hms_iceberg.catalog.catalog import Catalog
from hms_iceberg.catalog.loading import list_catalogs, load_catalog
from hms_iceberg.catalog.namespaces import PropertiesUpdateSummary

__all__ = ["Catalog", "PropertiesUpdateSummary", "list_catalogs", "load_catalog"]
