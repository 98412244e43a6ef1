"""Who asks, what they may do, and where files may be."""
