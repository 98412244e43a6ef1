"""A REST catalog behind the ports that commits and catalogs use: the client's side of `hms_iceberg.rest`."""
