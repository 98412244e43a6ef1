"""Endpoints of the catalog: configuration, namespaces, tables and views."""
