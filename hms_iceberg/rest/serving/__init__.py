"""What every endpoint has in common: the request, its answer, errors, limits, and who asks."""
