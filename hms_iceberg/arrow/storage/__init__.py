"""Files on any storage that pyarrow reaches."""
