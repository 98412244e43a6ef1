"""Locks of the metastore on tables: taken in order, kept alive, released, and recognised when their process is dead."""

from __future__ import annotations
