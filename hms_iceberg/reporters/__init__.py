"""Listeners to reports of scans and commits: for Prometheus, and for OpenLineage."""
