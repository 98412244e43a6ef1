"""DELETE, UPDATE and MERGE of Spark, as the changes that the Python API makes."""
