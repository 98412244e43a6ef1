"""The Hive table that is migrated: its columns, partitions and files, and what of them Iceberg cannot take."""
