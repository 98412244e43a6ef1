"""Complex queries at random over Iceberg tables and over plain Parquet copies of their rows, in one Spark session.

    python -m tests.support.random_queries --seed 7 --minutes 10

A batch is three tables with a history (`tables`), whose rows a model in Python keeps; plain Parquet files are made of
the model, never of what was read. Queries (`queries`) are drawn over the tables' names, and run on both under the same
random settings (`settings`); what differs is told with a smaller query and fewer settings that still differ (`trials`).
"""
