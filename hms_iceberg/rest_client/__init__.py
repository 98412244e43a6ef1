"""A REST catalog as the port that commits and catalogs use: the other side of `hms_iceberg.rest`."""
