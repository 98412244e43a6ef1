"""Locks of the metastore on tables: taken in order, kept alive, given back, and told from those of dead processes."""

from __future__ import annotations
