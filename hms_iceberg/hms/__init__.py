"""The Hive Metastore: client, locks, swap of the pointer, and the embedded server."""

from __future__ import annotations
