"""Files that were appended to a migrated table, taken into the Hive table on the way back."""
