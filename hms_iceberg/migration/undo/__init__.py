"""Gives a Hive table its name back: by a rollback, or because its migration did not come to its end."""
