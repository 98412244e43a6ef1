"""Manifests as updates read and write them."""
