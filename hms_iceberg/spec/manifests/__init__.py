"""Manifests and manifest lists, and their Avro files."""
