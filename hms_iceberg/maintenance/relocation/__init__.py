"""Tables that move: metadata, manifests and delete files with other paths in them."""
