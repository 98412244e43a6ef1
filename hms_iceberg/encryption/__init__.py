"""Encryption of tables (format version 3): keys, the streams that metadata files become, and services that keep keys.

Every file of an encrypted table has a key of its own. The key of a data file is in its manifest, that of a manifest in
the manifest list, and that of a manifest list in the table's metadata, encrypted by a key that is itself encrypted by
the table's key, which never leaves its key service.

Source: Iceberg specification, "Encryption Keys" and "AES GCM Stream file format extension"; Apache Iceberg's
documentation, "Encryption".
"""
