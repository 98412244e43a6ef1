"""Changes that users make on a table: builders, and changes of rows that write files. Each ends in one of `updates`."""
