"""The `hms-iceberg` command: one file per group of commands, loaded when it is called."""
