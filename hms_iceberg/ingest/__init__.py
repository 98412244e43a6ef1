"""Changes of tables from the events of a Kafka topic: see README.md in this folder."""
