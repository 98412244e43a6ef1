"""The machinery of updates: manifests as they read and write them, conflicts, snapshots and their summaries."""
