"""Values of type variant: their bytes, taken apart and put together."""
