"""Migrations of many tables: which, what becomes of each, the work itself and its report."""
