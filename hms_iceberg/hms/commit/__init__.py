"""A commit's part in the metastore: the lease, the swap of a row's pointer, and what a server can compare."""

from __future__ import annotations
