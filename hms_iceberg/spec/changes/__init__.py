"""Changes of tables and views, and what must hold for them, in the JSON of the Iceberg REST protocol."""
