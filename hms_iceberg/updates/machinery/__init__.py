"""What updates share: manifests, conflicts, snapshots and their summaries."""
