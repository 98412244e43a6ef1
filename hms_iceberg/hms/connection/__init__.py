"""Connections to a metastore: sockets, TLS and logins, a pool of connections, and the metastore's calls."""

from __future__ import annotations
