"""What the metastore holds of a table, a view or a namespace, and how Iceberg's metadata is shown there."""

from __future__ import annotations
