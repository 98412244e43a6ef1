"""Changelogs for Spark: the clause CHANGES, its streams, and the metadata table ``db.t.changes``."""
