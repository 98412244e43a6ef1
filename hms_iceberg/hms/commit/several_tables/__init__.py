"""One commit to several tables: rows that move one after the other, and the last of which decides for all."""

from __future__ import annotations
