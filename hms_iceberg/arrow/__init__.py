"""Arrow adapters: storage over pyarrow.fs, schema mapping, writing, statistics and reading of data files."""
