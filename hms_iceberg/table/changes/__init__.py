"""Changes of a table: builders, and changes of rows that write files. Each ends in one of `updates`."""
