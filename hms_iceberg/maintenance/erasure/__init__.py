"""Provable erasure: rows that match a predicate go from every version of a table, and the versions stay.

Data files that hold such rows are written anew without them, and so are the deletes, manifests, manifest lists and
metadata that name them; a journal beside the metadata says which old files are still to be deleted.
"""
