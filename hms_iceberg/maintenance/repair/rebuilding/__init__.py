"""Manifest lists and manifests that are lost, made anew."""
