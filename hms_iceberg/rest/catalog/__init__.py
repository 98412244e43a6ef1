"""Endpoints of the catalog: configuration, namespaces, tables, views, and the planning of scans."""
