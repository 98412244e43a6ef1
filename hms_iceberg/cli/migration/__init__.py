"""Commands that migrate Hive tables."""
