"""Migrations of many tables: their plan, its execution, and the outcome of each table."""
