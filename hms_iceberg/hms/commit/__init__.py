"""The metastore's side of a commit: the lease, the swap of a row's pointer, and compare-and-swap."""

from __future__ import annotations
