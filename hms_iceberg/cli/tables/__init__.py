"""Everyday commands of namespaces, tables and their rows."""
