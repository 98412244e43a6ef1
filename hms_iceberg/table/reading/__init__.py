"""Scans as their user holds them."""
