"""Does a table hold together: its metadata, its manifests and its files, each against the other."""
