"""Commands of a table's history: snapshots, branches, tags, and what changed between two of them."""
