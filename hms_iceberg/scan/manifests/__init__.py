"""Manifests of a snapshot: which matter, and their entries as columns."""
