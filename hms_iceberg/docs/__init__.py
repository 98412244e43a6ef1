"""The guides as one book: every Markdown page of the package, in the terminal or as one HTML page."""
