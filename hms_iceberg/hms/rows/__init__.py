"""Rows of the metastore for tables, views and namespaces, and how Iceberg's metadata is shown in them."""

from __future__ import annotations
