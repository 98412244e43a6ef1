"""Pending changes of a table: frozen intentions that are replayed on newer metadata."""

from __future__ import annotations
