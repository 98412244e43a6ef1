"""Definitions of tables and namespaces by SQL: each question of the bridge is a value, and a catalog carries it out."""
