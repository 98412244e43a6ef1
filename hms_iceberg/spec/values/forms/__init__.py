"""One record per primitive type: its values as bytes, JSON, Python values, text, hashes, and in Avro."""
