"""Pending changes of a table, one file each: frozen intentions that are replayed on newer metadata."""

from __future__ import annotations
