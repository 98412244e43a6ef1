"""The Hive table that is migrated: its columns, partitions and files, and the reasons against a migration."""
